/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where connections are kept, by their sockets' cookies.
 *
 *     cookie / 8 ──► a set: 8 cookies in a cache line ──► the place of each, if it is taken, in one large array
 *
 * The kernel's own tables cost a short connection more than all that is done with what they hold: entering and leaving
 * a hash table takes 250 to 400 ns, making a socket's own storage 1400. An array takes an inlined bounds check. Cookies are
 * numbers in a row, so that connections that open together are neighbours. A set that is full, because many connections
 * that stay open share it, sends the next to a hash table of the kernel.
 *
 * All memory is there from the start; the loader sets how much: a power of two of sets, and as many entries of the hash table.
 *
 * Included by record.bpf.c.
 */
#ifndef THALWEG_FLOW_TABLE_H
#define THALWEG_FLOW_TABLE_H

#include "flow.h"

#define WAYS 8

/* A cookie that is 0 is a free place. */
struct set {
	u64 cookies[WAYS];
};

/* On pages of their own, so that a set does not lie across two cache lines. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct set);
} sets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WAYS);
	__type(key, u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct flow);
} more_flows SEC(".maps");

/* What a connection in the hash table begins with: the kernel copies it. It is too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct flow);
} blank SEC(".maps");

/* A connection, and where its cookie is; nowhere in the hash table. */
struct place {
	struct flow *flow;
	u64 *cookie;
};

static __always_inline struct flow *flow_in(u32 set_number, u32 way)
{
	u32 number = set_number * WAYS + way;

	return bpf_map_lookup_elem(&flows, &number);
}

static __always_inline bool find(struct place *place, u64 cookie)
{
	u32 number = cookie / WAYS & settings.set_mask, likely = cookie % WAYS, way;
	struct set *set = bpf_map_lookup_elem(&sets, &number);

	place->flow = NULL;
	place->cookie = NULL;
	/* Nobody has asked for the socket's cookie yet. */
	if (!set || !cookie)
		return false;
	way = likely;
	if (set->cookies[way & (WAYS - 1)] != cookie) {
#pragma clang loop unroll(disable)
		for (way = 0; way < WAYS; way++)
			if (set->cookies[way] == cookie)
				break;
	}
	if (way < WAYS) {
		place->cookie = &set->cookies[way];
		place->flow = flow_in(number, way);
	} else {
		place->flow = bpf_map_lookup_elem(&more_flows, &cookie);
	}
	return place->flow;
}

/* A new one, all zero. */
static __always_inline struct flow *take_place(u64 cookie)
{
	u32 number = cookie / WAYS & settings.set_mask, only = 0, way;
	struct set *set = bpf_map_lookup_elem(&sets, &number);
	struct flow *flow = NULL, *nothing;
	u64 taken;

	if (!set)
		return NULL;
	way = cookie % WAYS;
	taken = __sync_val_compare_and_swap(&set->cookies[way], 0, cookie);
	/* A socket that is connected again, and of whose first end nobody has told, has its place. */
	if (taken && taken != cookie) {
#pragma clang loop unroll(disable)
		for (way = 0; way < WAYS; way++)
			if (!__sync_val_compare_and_swap(&set->cookies[way], 0, cookie))
				break;
	}
	if (way < WAYS) {
		flow = flow_in(number, way);
		if (flow)
			__builtin_memset(flow, 0, sizeof(*flow));
		return flow;
	}
	nothing = bpf_map_lookup_elem(&blank, &only);
	if (nothing && !bpf_map_update_elem(&more_flows, &cookie, nothing, BPF_ANY))
		flow = bpf_map_lookup_elem(&more_flows, &cookie);
	return flow;
}

/* Whoever gets the place next has not been met by a walk: a search must not take it for gone. */
static __always_inline void leave(const struct place *place, u64 cookie)
{
	if (!place->cookie) {
		bpf_map_delete_elem(&more_flows, &cookie);
		return;
	}
	place->flow->walk = 0;
	*(volatile u64 *)place->cookie = 0;
}

#endif
