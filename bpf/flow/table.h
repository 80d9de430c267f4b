/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of connections, keyed by the cookies of their sockets.
 *
 *     cookie / 8 ──► a set: 8 cookies in a cache line ──► a slot for each in one large array
 *                    first one of the near sets; if that is full, one of all sets; if that is full, a hash table
 *
 * Inserting into and deleting from the kernel's hash table is expensive for a short connection; an array takes an
 * inlined bounds check. Each CPU assigns consecutive cookies, so its successive connections have adjacent slots. If
 * slots were used in rotation, successive short connections would access the entire array, most of which is not cached.
 * Therefore, a connection first gets a slot in one of a few "near" sets, which stay cached. If long connections fill a
 * near set, the next one gets a slot in its set among all sets; if that is full, too, it gets an entry of the kernel's
 * hash table.
 *
 * The loader sets the number of sets, a power of two, and the size of the hash table.
 */
#ifndef THALWEG_FLOW_TABLE_H
#define THALWEG_FLOW_TABLE_H

#include "flow.h"

#define WAYS 8

/* Number of near sets, a power of two. With the state of their connections they should fit a second-level cache. */
#define NEAR_SETS 64

/* Cookies of the connections in a set; 0 for a free slot. */
struct set {
	u64 cookies[WAYS];
};

/* Mappable, because that aligns the map to a page, so that no set spans two cache lines. */
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

/* Initial state of a connection in the hash table: it is too large for the stack. */
ARRAY(blank, 1, struct flow);

/* A connection, and the slot of its cookie; NULL if it is in the hash table. */
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

/* Returns the index of a cookie in a set; WAYS if it is absent. */
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
	/* A cookie of 0 means that the socket has none yet. */
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
		/* The cookie is already present if a socket reconnects whose first close was not reported. */
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

/* Takes a slot for a new connection, and zeroes it except for its RTTs. */
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
 * Frees a slot. `scan` is reset so that a search does not take the slot's next connection for closed; `opened_us` is
 * reset so that a scan skips the slot until that connection is initialised.
 */
static __always_inline void leave(const struct place *place, u64 cookie)
{
	if (!place->cookie) {
		bpf_map_delete_elem(&more_flows, &cookie);
		return;
	}
	place->flow->scan = 0;
	place->flow->opened_us = 0;
	*(volatile u64 *)place->cookie = 0;
}

#endif
