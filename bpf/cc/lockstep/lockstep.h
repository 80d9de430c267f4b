/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a call of the kernel's own controller and reports it: `lockstep_begin` stores the controller's inputs,
 * `lockstep_end` its outputs, and passes the event to the recorder through a ring buffer. An event is dropped and
 * counted if the buffer is full.
 *
 * Hooks: struct_ops tcp_congestion_ops. Kernel: 6.1, for BBR 6.10 (cong_control with four arguments); BTF. For
 * recordings, not for production.
 */
#ifndef THALWEG_LOCKSTEP_H
#define THALWEG_LOCKSTEP_H

#include "kernel.h"
#include "lockstep_event.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

struct flow_state {
	u64 flow;
	u64 events;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow_state);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} events SEC(".maps");

/* Number of connections, and number of events that were lost because the buffer was full or memory was short. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

enum { COUNTER_FLOWS, COUNTER_LOST };

static __always_inline u64 count(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&counters, &which);

	return counter ? __sync_fetch_and_add(counter, 1) : 0;
}

/* Starts an event. Returns NULL if the buffer is full, or the connection cannot be counted. */
static __always_inline struct lockstep_event *lockstep_begin(struct sock *sk, u64 call)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct lockstep_event *event;
	struct flow_state *state;

	state = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!state) {
		count(COUNTER_LOST);
		return NULL;
	}
	if (!state->flow)
		state->flow = count(COUNTER_FLOWS) + 1;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count(COUNTER_LOST);
		return NULL;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->call = call;
	event->flow = state->flow;
	event->number = state->events++;

	event->clock_ns = tp->tcp_clock_cache;
	event->wstamp_ns = tp->tcp_wstamp_ns;
	event->lsndtime = tp->lsndtime;

	event->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	event->mss = tp->mss_cache;
	event->srtt_us_8 = tp->srtt_us;
	event->min_rtt_us = tp->rtt_min.s[0].v;
	event->inflight = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	event->delivered = tp->delivered;
	event->delivered_ce = tp->delivered_ce;
	event->delivered_mstamp_us = tp->delivered_mstamp;
	event->lost = tp->lost;
	event->snd_una = tp->snd_una;
	event->snd_nxt = tp->snd_nxt;
	/* In slow start, a window of which more than half is used counts as used. */
	event->is_cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ||
				 (tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out);
	event->app_limited = tp->app_limited;
	event->prior_cwnd = tp->prior_cwnd;
	event->gso_max_size = sk->sk_gso_max_size;
	event->pacing_shift = sk->sk_pacing_shift;
	event->pacing_status = sk->sk_pacing_status;

	event->cwnd = tp->snd_cwnd;
	event->ssthresh = tp->snd_ssthresh;
	event->pacing_rate = sk->sk_pacing_rate;
	event->cwnd_cnt = tp->snd_cwnd_cnt;
	/* Last, so that it is as close to the call as possible. */
	event->jiffies = bpf_jiffies64();
	return event;
}

static __always_inline void lockstep_end(struct sock *sk, struct lockstep_event *event)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!event)
		return;
	event->jiffies_after = bpf_jiffies64();
	event->app_limited_after = tp->app_limited;
	event->cwnd_after = tp->snd_cwnd;
	event->ssthresh_after = tp->snd_ssthresh;
	event->pacing_rate_after = sk->sk_pacing_rate;
	event->cwnd_cnt_after = tp->snd_cwnd_cnt;
#pragma unroll
	for (int word = 0; word < LOCKSTEP_PRIV_WORDS; word++)
		event->priv[word] = icsk->icsk_ca_priv[word];
	bpf_ringbuf_submit(event, 0);
}

/* Reports a query of the kernel to its controller, `call`, which `own` answers with a number. */
#define LOCKSTEP_REPORT_RESULT(name, call, own)                                                                \
	SEC("struct_ops")                                                                                      \
	u32 BPF_PROG(name, struct sock *sk)                                                                    \
	{                                                                                                      \
		struct lockstep_event *event = lockstep_begin(sk, call);                                       \
		u32 result = own(sk);                                                                          \
                                                                                                               \
		if (event)                                                                                     \
			event->result = result;                                                                \
		lockstep_end(sk, event);                                                                       \
		return result;                                                                                 \
	}

/* Reports a call with one argument of this type, which `own` handles. */
#define LOCKSTEP_REPORT_ARG(name, call, type, own)                                                             \
	SEC("struct_ops")                                                                                      \
	void BPF_PROG(name, struct sock *sk, type number)                                                      \
	{                                                                                                      \
		struct lockstep_event *event = lockstep_begin(sk, call);                                       \
                                                                                                               \
		own(sk, number);                                                                               \
		if (event)                                                                                     \
			event->arg = number;                                                                   \
		lockstep_end(sk, event);                                                                       \
	}

/* Placeholder for a function that the controller lacks. */
static __always_inline void lockstep_nothing(struct sock *sk, u32 number)
{
}

/* Reports the acknowledgement of segments, for which `own` raises cwnd. */
#define LOCKSTEP_REPORT_CONG_AVOID(name, own)                                                                  \
	SEC("struct_ops")                                                                                      \
	void BPF_PROG(name, struct sock *sk, u32 ack, u32 acked)                                               \
	{                                                                                                      \
		struct lockstep_event *event = lockstep_begin(sk, LOCKSTEP_CONG_AVOID);                        \
                                                                                                               \
		own(sk, ack, acked);                                                                           \
		if (event)                                                                                     \
			event->acked = acked;                                                                  \
		lockstep_end(sk, event);                                                                       \
	}

/* Reports that the connection releases its controller. */
#define LOCKSTEP_REPORT_RELEASE(name)                                                                                  \
	SEC("struct_ops")                                                                                              \
	void BPF_PROG(name, struct sock *sk)                                                                           \
	{                                                                                                              \
		lockstep_end(sk, lockstep_begin(sk, LOCKSTEP_RELEASE));                                                \
	}

#endif
