/* SPDX-License-Identifier: GPL-2.0-only */
/* Fills in events and writes them to the event queue. */
#ifndef THALWEG_FLOW_EMIT_H
#define THALWEG_FLOW_EMIT_H

#include "flow.h"

/*
 * The event queue, in memory shared with the agent: see RECORD_SLOTS. The kernel's own ring buffer takes a lock and
 * disables interrupts for each event.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RECORD_SLOTS);
	__type(key, u32);
	__type(value, struct record_slot);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct record_progress);
} progress SEC(".maps");

/* Used only to wake the reader; its size is the minimum, a page. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} waker SEC(".maps");

PERCPU_ARRAY(counters, 1, struct record_counters);

static __always_inline struct record_counters *counters_here(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&counters, &only);
}

/* Atomic, because an interrupt may run the program while the same CPU runs it in a system call. */
#define COUNT(member)                                                                                                  \
	({                                                                                                             \
		struct record_counters *here = counters_here();                                                        \
                                                                                                                       \
		if (here)                                                                                              \
			__sync_fetch_and_add(&here->member, 1);                                                        \
	})

/* Maximum number of attempts to reserve a slot; an attempt fails if another CPU takes the number first. */
#define TRIES 16

/* A slot that its owner fills in and then submits. */
struct reserved {
	struct record_slot *slot;
	u64 number;
	s64 unread;
};

/* Reserves the next slot for an event of `bytes` bytes, if that slot has been read. */
static __always_inline struct record_event *reserve(struct reserved *reserved, u64 bytes)
{
	struct record_progress *so_far;
	u32 only = 0, at;
	u64 number;

	so_far = bpf_map_lookup_elem(&progress, &only);
	if (!so_far)
		return NULL;
#pragma clang loop unroll(disable)
	for (int tries = 0; tries < TRIES; tries++) {
		number = *(volatile u64 *)&so_far->taken;
		/* Negative if other events were written and read between the two loads; the number is then taken. */
		reserved->unread = number - *(volatile u64 *)&so_far->read;
		if (reserved->unread >= RECORD_SLOTS)
			return NULL;
		if (__sync_val_compare_and_swap(&so_far->taken, number, number + 1) != number)
			continue;
		at = number % RECORD_SLOTS;
		reserved->number = number;
		reserved->slot = bpf_map_lookup_elem(&events, &at);
		if (!reserved->slot)
			return NULL;
		reserved->slot->bytes = bytes;
		return &reserved->slot->event;
	}
	return NULL;
}

/* Interval, in events, of the check of the queue's fill level. */
#define SELDOM 16

/*
 * Publishes the slot: a reader that observes its number also observes the event. The reader polls, and is woken only
 * when a quarter of the queue is full, because a wakeup is expensive.
 */
static __always_inline void submit(const struct reserved *reserved)
{
	u64 number = reserved->number;

#ifdef __TARGET_ARCH_x86
	/* On x86, stores become visible in order. */
	barrier();
	*(volatile u64 *)&reserved->slot->number = number + 1;
#else
	__sync_lock_test_and_set(&reserved->slot->number, number + 1);
#endif
	/* If the ring buffer is full, the previous wakeup is still pending. */
	if (number % SELDOM == 0 && reserved->unread > RECORD_SLOTS / 4)
		bpf_ringbuf_output(&waker, &number, sizeof(number), BPF_RB_FORCE_WAKEUP);
}

static __always_inline void fill_endpoints(struct record_event *event, struct tcp_sock *tp)
{
	struct sock *sk = sock_of(tp);

	event->family = sk->__sk_common.skc_family;
	if (event->family == AF_INET) {
		/* Copied in memory order, independent of the byte order. */
		event->local_address[0] = event->local_address[1] = 0;
		event->remote_address[0] = event->remote_address[1] = 0;
		*(u32 *)event->local_address = sk->__sk_common.skc_rcv_saddr;
		*(u32 *)event->remote_address = sk->__sk_common.skc_daddr;
	} else {
		event->local_address[0] = eight_at(&sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8[0]);
		event->local_address[1] = eight_at(&sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8[8]);
		event->remote_address[0] = eight_at(&sk->__sk_common.skc_v6_daddr.in6_u.u6_addr8[0]);
		event->remote_address[1] = eight_at(&sk->__sk_common.skc_v6_daddr.in6_u.u6_addr8[8]);
	}
	event->local_port = sk->__sk_common.skc_num;
	event->remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	event->cgroup = sk->sk_cgrp_data.cgroup->kn->id;
}

static __always_inline void fill_span(struct record_event *event, struct tcp_sock *tp, const struct flow *flow,
				      const struct sums *end)
{
	event->connection = sock_of(tp)->__sk_common.skc_cookie.counter;
	event->end_us = end->at_us;
	fill_endpoints(event, tp);
	cc_name(tp, event->cc);
	event->rtt_smoothed_us = tp->srtt_us >> 3;
	event->transfer = flow->transfer;
	event->netns = flow->netns;
	event->cc_at_open[0] = flow->cc_at_open[0];
	event->cc_at_open[1] = flow->cc_at_open[1];
}

static __always_inline void fill_kept(struct record_event *event, const struct flow *flow, const struct sums *now)
{
	event->flags = flow->flags & (RECORD_OUTGOING | RECORD_JOINED | RECORD_BLIND | RECORD_CHOICE);
	event->start_us = flow->opened_us;
	event->sent_bytes = now->sent_bytes;
	event->acked_bytes = now->acked_bytes;
	event->retransmitted_bytes = now->retransmitted_bytes;
	event->segments = now->segments;
	event->retransmits = now->retransmits;
	event->busy_jiffies = now->busy;
	event->rwnd_limited_jiffies = now->rwnd_limited;
	event->sndbuf_limited_jiffies = now->sndbuf_limited;
	event->rtt_min_us = flow->rtt_min_us;
	event->rtt_max_us = flow->rtt_max_us;
	event->rtt_samples = flow->samples;
	event->app_limited_samples = flow->app_limited;
	event->rtt_handshake_us = flow->handshake_rtt_us;
	event->rate_max_packets = flow->rate_max_packets;
	event->rate_max_interval_us = flow->rate_max_interval_us;
	event->marks = flow->marks;
#pragma unroll
	for (int mark = 0; mark < RECORD_MARKS; mark++)
		event->acked_after_bytes[mark] = flow->acked_after_bytes[mark];
	event->bbr_samples = flow->bbr_samples;
	event->bbr_short_samples = flow->bbr_short_samples;
}

static __always_inline bool has_histogram(const struct flow *flow)
{
	return settings.has_histograms && flow->samples >= RECORD_RTT_FEW;
}

static __always_inline void fill_histogram(struct record_event *event, const struct flow *flow)
{
	if (!has_histogram(flow)) {
		__builtin_memset(event->rtt_histogram, 0, sizeof(event->rtt_histogram));
		return;
	}
#pragma unroll
	for (int word = 0; word < RECORD_RTT_OCTAVES; word++)
		event->rtt_histogram[word] = ((const u64 *)flow->rtt_histogram)[word];
}

/* Fills in the members of a connection except its kind, last transfer and histogram. */
static __always_inline void fill_connection(struct record_event *event, struct tcp_sock *tp, const struct flow *flow,
					    const struct sums *now, u32 state)
{
	struct bbr *bbr = bbr_of(tp);

	fill_span(event, tp, flow, now);
	fill_kept(event, flow, now);
	event->rtt_min_us = smallest_rtt_us(flow, tp);
	event->state = state;
	event->received_bytes = received_bytes(tp);
	event->error = sock_of(tp)->sk_err;
	event->segments_out = tp->segs_out;
	event->segments_in = tp->segs_in;
	event->lost_packets = tp->lost;
	event->reordering = tp->reordering;
	event->reorderings = tp->reord_seen;
	event->ecn_flags = tp->ecn_flags;
	event->ce_packets = tp->delivered_ce;
	event->mss_bytes = tp->mss_cache;
	event->cwnd_packets = tp->snd_cwnd;
	event->rate_packets = tp->rate_delivered;
	event->rate_interval_us = tp->rate_interval_us;
	event->rate_is_app_limited = BPF_CORE_READ_BITFIELD(tp, rate_app_limited);
	event->bbr_bw = bbr ? bbr_bw(bbr) : 0;
	event->bbr_min_rtt_us = bbr ? bbr->min_rtt_us : 0;
}

/* Fills in the sums and RTTs of a transfer that ends at `end`, in members that begin with `prefix`. */
#define FILL_TRANSFER(event, prefix, flow, end)                                                                       \
	do {                                                                                                          \
		const struct sums *begin = &(flow)->begin;                                                            \
                                                                                                                      \
		(event)->prefix##sent_bytes = (end)->sent_bytes - begin->sent_bytes;                                  \
		(event)->prefix##acked_bytes = (end)->acked_bytes - begin->acked_bytes;                               \
		(event)->prefix##retransmitted_bytes = (end)->retransmitted_bytes - begin->retransmitted_bytes;       \
		(event)->prefix##segments = (end)->segments - begin->segments;                                        \
		(event)->prefix##retransmits = (end)->retransmits - begin->retransmits;                               \
		(event)->prefix##busy_jiffies = (end)->busy - begin->busy;                                            \
		(event)->prefix##rwnd_limited_jiffies = (end)->rwnd_limited - begin->rwnd_limited;                    \
		(event)->prefix##sndbuf_limited_jiffies = (end)->sndbuf_limited - begin->sndbuf_limited;              \
		(event)->prefix##rtt_min_us = (flow)->transfer_rtt_min_us;                                            \
		(event)->prefix##rtt_max_us = (flow)->transfer_rtt_max_us;                                            \
		(event)->prefix##rtt_samples = (flow)->transfer_samples;                                              \
		(event)->prefix##app_limited_samples = (flow)->transfer_app_limited;                                  \
	} while (0)

static __always_inline void fill_last_transfer(struct record_event *event, const struct flow *flow,
					       const struct sums *end)
{
	event->last_is_complete = flow->flags & FLOW_IS_COMPLETE ? 1 : 0;
	event->last_start_us = flow->begin.at_us;
	event->last_end_us = end->at_us;
	FILL_TRANSFER(event, last_, flow, end);
}

static __always_inline void emit_close(struct tcp_sock *tp, struct flow *flow, const struct sums *now, u32 state)
{
	bool is_short = !has_histogram(flow);
	struct record_event *event;
	struct reserved reserved;

	event = reserve(&reserved, is_short ? RECORD_SHORT_BYTES : sizeof(*event));
	if (!event) {
		COUNT(lost_events);
		COUNT(lost_closes);
		return;
	}
	if (!is_short)
		fill_histogram(event, flow);
	event->kind = RECORD_CLOSE;
	fill_connection(event, tp, flow, now, state);
	fill_last_transfer(event, flow, &flow->last);
	submit(&reserved);
}

/*
 * Reports the transfer from `begin` to `end`, whose bytes are all acknowledged, and begins the next one at `end`. Does
 * nothing if no bytes were sent.
 */
static __noinline int emit_transfer(struct tcp_sock *tp, struct flow *flow, const struct sums *end)
{
	struct record_event *event;
	struct reserved reserved;

	if (end->sent_bytes == flow->begin.sent_bytes)
		return 0;
	event = reserve(&reserved, RECORD_TRANSFER_BYTES);
	if (event) {
		event->kind = RECORD_TRANSFER;
		fill_span(event, tp, flow, end);
		event->flags = (flow->flags & (RECORD_OUTGOING | RECORD_JOINED | RECORD_CHOICE)) | RECORD_COMPLETE;
		event->state = 0;
		event->start_us = flow->begin.at_us;
		FILL_TRANSFER(event, , flow, end);
		submit(&reserved);
	} else {
		COUNT(lost_events);
	}
	flow->begin = *end;
	flow->transfer++;
	flow->transfer_rtt_min_us = 0;
	flow->transfer_rtt_max_us = 0;
	flow->transfer_samples = 0;
	flow->transfer_app_limited = 0;
	return 0;
}

#endif
