/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of connections, by their sockets' cookies.
 *
 *     cookie / 8 ──► a set: 8 cookies in a cache line ──► the slot of each, if it is taken, in one large array
 *                    one of the near ones, or, if that is full, one of all
 *
 * For a short connection, the kernel's own tables cost more than all other work: inserting into and deleting from a
 * hash table takes 250 to 400 ns, creating a socket's own storage 1400. An array takes an inlined bounds check. Cookies
 * are consecutive, so connections that open together are neighbours. Successive short connections would touch the whole
 * array, most of which is not cached, so each is first assigned a slot in a few sets, which are cached. In a set the
 * first free slot is taken: if few connections are open at a time, it is the one that was freed last. A set that is
 * full, because many connections that stay open share it, sends the next to its set among all, and that one to a hash
 * table of the kernel.
 *
 * All memory is there from the start; the loader sets how much: a power of two of sets, and as many entries of the hash
 * table.
 *
 * Included by record.bpf.c.
 */
#ifndef THALWEG_FLOW_TABLE_H
#define THALWEG_FLOW_TABLE_H

#include "flow.h"

#define WAYS 8

/*
 * With the state of the connections that have a slot in them, 0.2 MB: part of a CPU's second-level cache. A power of
 * two.
 */
#define NEAR_SETS 64

/* A cookie of 0 is a free slot. */
struct set {
	u64 cookies[WAYS];
};

/* On separate pages, so that a set does not span two cache lines. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct set);
} sets SEC(".maps");

ARRAY(flows, WAYS, struct flow);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct flow);
} more_flows SEC(".maps");

/* Initial state of a connection in the hash table: the kernel copies it. It is too large for the stack. */
ARRAY(blank, 1, struct flow);

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

static __always_inline u32 set_of(u64 cookie)
{
	return cookie / WAYS & settings.set_mask;
}

static __always_inline u32 near_set_of(u64 cookie)
{
	return set_of(cookie) & (NEAR_SETS - 1);
}

/* Index of a cookie in a set; WAYS: absent. */
static __always_inline u32 way_of(struct set *set, u64 cookie)
{
	u32 way;

#pragma clang loop unroll(disable)
	for (way = 0; way < WAYS; way++)
		if (set->cookies[way] == cookie)
			break;
	return way;
}

static __always_inline void find_in(struct place *place, struct set *set, u32 set_number, u32 way)
{
	place->cookie = &set->cookies[way];
	place->flow = flow_in(set_number, way);
}

/* Finds a connection whose near set was full. */
static __noinline int find_far(struct place *place, u64 cookie)
{
	u32 number = set_of(cookie), way;
	struct set *set = bpf_map_lookup_elem(&sets, &number);

	if (!set)
		return 0;
	way = way_of(set, cookie);
	if (way < WAYS)
		find_in(place, set, number, way);
	else
		place->flow = bpf_map_lookup_elem(&more_flows, &cookie);
	return 0;
}

static __always_inline bool find(struct place *place, u64 cookie)
{
	u32 number = near_set_of(cookie), way;
	struct set *set = bpf_map_lookup_elem(&sets, &number);

	place->flow = NULL;
	place->cookie = NULL;
	/* The socket has no cookie yet. */
	if (!set || !cookie)
		return false;
	way = way_of(set, cookie);
	if (way < WAYS)
		find_in(place, set, number, way);
	else
		find_far(place, cookie);
	return place->flow;
}

/* Takes a slot of a set and returns its index; WAYS if the set is full. */
static __always_inline u32 take_way(u32 set_number, u64 cookie)
{
	struct set *set = bpf_map_lookup_elem(&sets, &set_number);
	u32 way;
	u64 taken;

	if (!set)
		return WAYS;
#pragma clang loop unroll(disable)
	for (way = 0; way < WAYS; way++) {
		taken = __sync_val_compare_and_swap(&set->cookies[way], 0, cookie);
		/* The slot of a socket that was connected again, and whose first close was not reported. */
		if (!taken || taken == cookie)
			break;
	}
	return way;
}

static __noinline u32 take_far_way(u64 cookie)
{
	return take_way(set_of(cookie), cookie);
}

static __noinline int add_more(u64 cookie)
{
	u32 only = 0;
	struct flow *nothing = bpf_map_lookup_elem(&blank, &only);

	return nothing ? bpf_map_update_elem(&more_flows, &cookie, nothing, BPF_ANY) : -1;
}

/* A new flow, all zero except for its RTTs, which are marked as empty. */
static __always_inline struct flow *take_place(u64 cookie)
{
	u32 number = near_set_of(cookie), way;
	struct flow *flow;

	way = take_way(number, cookie);
	if (way >= WAYS) {
		number = set_of(cookie);
		way = take_far_way(cookie);
	}
	if (way >= WAYS)
		return add_more(cookie) ? NULL : bpf_map_lookup_elem(&more_flows, &cookie);
	flow = flow_in(number, way);
	if (flow)
		__builtin_memset(flow, 0, __builtin_offsetof(struct flow, rtt_histogram));
	return flow;
}

/*
 * The next owner of the slot is not marked as scanned, so a search must not take it for closed. A scan that reaches it
 * before it has begun must not report its previous owner. */
static __always_inline void leave(const struct place *place, u64 cookie)
{
	if (!place->cookie) {
		bpf_map_delete_elem(&more_flows, &cookie);
		return;
	}
	place->flow->walk = 0;
	place->flow->opened_us = 0;
	*(volatile u64 *)place->cookie = 0;
}

#endif
