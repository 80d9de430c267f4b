// SPDX-License-Identifier: GPL-2.0-only
/*
 * bbr_cpu: the kernel's own BBR (version 1), with a rule on top that compensates for a shared CPU of the sender
 * (cpu_rules/rule.h). This file passes the calls to BBR, passes the state after an ACK to the rule, and applies the
 * result of the rule.
 *
 * Hooks: struct_ops tcp_congestion_ops. Kernel: 6.1 or newer with BTF and BBR, built in or as a module. The loader
 * (thalweg-agent) creates one of the two registrations below: `bbr_main` has two arguments up to Linux 6.9, and four
 * from 6.10.
 */
#include "kernel.h"
#include "../cpu_rules/rule.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

/* The rule, a value of `enum rule`. In a separate section, so that the loader needs no offset. */
const volatile u32 rule SEC(".rodata.rule") = RULE_SCHEDULE;

extern void bbr_init(struct sock *sk) __ksym;
extern void bbr_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) __ksym __weak;
extern void bbr_main___until_6_9(struct sock *sk, const struct rate_sample *rs) __ksym __weak;
extern u32 bbr_sndbuf_expand(struct sock *sk) __ksym;
extern u32 bbr_undo_cwnd(struct sock *sk) __ksym;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern u32 bbr_ssthresh(struct sock *sk) __ksym;
extern u32 bbr_min_tso_segs(struct sock *sk) __ksym;
extern void bbr_set_state(struct sock *sk, u8 new_state) __ksym;

struct flow {
	struct rule_state rule;
	/*
	 * The pacing rate as set by BBR, which is restored before BBR handles an ACK or a cwnd_event: in STARTUP, BBR
	 * derives its next rate from it.
	 */
	u64 bbr_pacing_rate;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

/* Counters of `thalweg-agent cc status`, per CPU. */
struct counters {
	u64 flows_begun;
	u64 flows_ended;
	u64 acks;
	u64 boosted_acks;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

static __always_inline struct counters *counters_here(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&counters, &only);
}

static __always_inline void *bbr_of(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline struct flow *flow_of(struct sock *sk, u64 flags)
{
	return bpf_sk_storage_get(&flows, sk, NULL, flags);
}

/* Returns whether the application or the receiver limits the sender. */
static __always_inline u32 is_held_back(const struct tcp_sock *tp)
{
	return tp->app_limited || tp->snd_nxt - tp->snd_una + tp->mss_cache > tp->snd_wnd;
}

static __always_inline void read_input(struct sock *sk, const struct rate_sample *rs, struct rule_input *in)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct bbr *bbr = bbr_of(sk);

	in->now_us = tp->tcp_mstamp;
	in->departure_us = tp->tcp_wstamp_ns / 1000;
	in->bytes_sent = tp->bytes_sent;
	in->inflight_bytes = unacked_bytes(tp);
	in->mss = tp->mss_cache;
	in->srtt_us = tp->srtt_us >> 3;
	in->rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 0;
	in->snd_cwnd = tp->snd_cwnd;
	in->inflight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	in->prior_inflight = rs->prior_in_flight;
	in->acked = rs->acked_sacked;
	in->delivered = tp->delivered;
	in->lost = tp->lost;
	in->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	in->is_held_back = is_held_back(tp);
	in->rate_app_limited = BPF_CORE_READ_BITFIELD(tp, rate_app_limited);
	in->pacing_rate_bytes_per_s = sk->sk_pacing_rate;
	in->max_pacing_rate_bytes_per_s = sk->sk_max_pacing_rate;

	in->bw = BPF_CORE_READ_BITFIELD(bbr, lt_use_bw) ? bbr->lt_bw : bbr->bw.s[0].v;
	in->min_rtt_us = bbr->min_rtt_us;
	in->mode = BPF_CORE_READ_BITFIELD(bbr, mode);
	in->full_bw_count = BPF_CORE_READ_BITFIELD(bbr, full_bw_cnt);
}

static __always_inline void apply(struct sock *sk, const struct rule_output *out)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct bbr *bbr = bbr_of(sk);

	if (out->pacing_rate_bytes_per_s)
		sk->sk_pacing_rate = out->pacing_rate_bytes_per_s;
	if (out->pacing_gain)
		BPF_CORE_WRITE_BITFIELD(bbr, pacing_gain, out->pacing_gain);
	if (out->snd_cwnd)
		tp->snd_cwnd = out->snd_cwnd;
	if (out->is_startup_over)
		BPF_CORE_WRITE_BITFIELD(bbr, full_bw_reached, 1);
	if (out->full_bw_count)
		BPF_CORE_WRITE_BITFIELD(bbr, full_bw_cnt, out->full_bw_count);
	if (out->is_min_rtt_fresh)
		bbr->min_rtt_stamp = bpf_jiffies64();
}

/* Maximum supported size of the kernel's `struct rate_sample`. */
#define SAMPLE_BYTES 96

/* Returns the rate sample for BBR: the kernel's own, or a copy in `copy` with the rule's interval. */
static __always_inline const struct rate_sample *sample_for_bbr(struct sock *sk, const struct flow *flow,
								 const struct rate_sample *rs, u8 *copy)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 interval_us;

	if (rs->delivered <= 0 || rs->interval_us <= 0 || bpf_core_type_size(struct rate_sample) > SAMPLE_BYTES)
		return rs;
	interval_us = rule_interval(rule, &flow->rule, tp->tcp_mstamp, ((struct bbr *)bbr_of(sk))->min_rtt_us,
				    rs->delivered, rs->interval_us);
	if (interval_us <= rs->interval_us || bpf_probe_read_kernel(copy, bpf_core_type_size(struct rate_sample), rs))
		return rs;
	*(long *)(copy + bpf_core_field_offset(struct rate_sample, interval_us)) = interval_us;
	return (const struct rate_sample *)copy;
}

static __always_inline void after_ack(struct sock *sk, struct flow *flow, const struct rate_sample *rs, u32 prior_cwnd)
{
	struct counters *counters = counters_here();
	struct rule_output out = {};
	struct rule_input in = {};

	if (!counters)
		return;
	read_input(sk, rs, &in);
	in.prior_cwnd = prior_cwnd;
	flow->bbr_pacing_rate = in.pacing_rate_bytes_per_s;
	rule_step(rule, &rule_version_1, &flow->rule, &in, &out);
	apply(sk, &out);
	counters->acks++;
	counters->boosted_acks += out.boosted;
}

/* Handles an ACK: BBR first, then the rule. Without memory for its state, a connection uses plain BBR. */
#define ON_ACK(bbr)                                                                                                    \
	struct flow *flow = flow_of(sk, BPF_SK_STORAGE_GET_F_CREATE);                                                      \
	u8 copy[SAMPLE_BYTES] __attribute__((aligned(8)));                                                                 \
	u32 prior_cwnd = ((struct tcp_sock *)sk)->snd_cwnd;                                                                \
                                                                                                                       \
	if (!flow) {                                                                                                   \
		bbr(rs);                                                                                               \
		return;                                                                                                \
	}                                                                                                              \
	if (flow->bbr_pacing_rate)                                                                                     \
		sk->sk_pacing_rate = flow->bbr_pacing_rate;                                                            \
	bbr(sample_for_bbr(sk, flow, rs, copy));                                                                       \
	after_ack(sk, flow, rs, prior_cwnd)

SEC("struct_ops")
void BPF_PROG(bbr_cpu_main, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
#define BBR(sample) bbr_main(sk, ack, flag, sample)
	ON_ACK(BBR);
}

SEC("struct_ops")
void BPF_PROG(bbr_cpu_main_6_9, struct sock *sk, const struct rate_sample *rs)
{
#define BBR_6_9(sample) bbr_main___until_6_9(sk, sample)
	ON_ACK(BBR_6_9);
}

SEC("struct_ops")
void BPF_PROG(bbr_cpu_init, struct sock *sk)
{
	struct counters *counters = counters_here();

	/* The socket may have used this algorithm before, with another one in between. */
	bpf_sk_storage_delete(&flows, sk);
	bbr_init(sk);
	if (counters)
		counters->flows_begun++;
}

SEC("struct_ops")
void BPF_PROG(bbr_cpu_release, struct sock *sk)
{
	struct counters *counters = counters_here();

	if (counters)
		counters->flows_ended++;
}

SEC("struct_ops")
u32 BPF_PROG(bbr_cpu_ssthresh, struct sock *sk)
{
	return bbr_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(bbr_cpu_set_state, struct sock *sk, u8 new_state)
{
	bbr_set_state(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(bbr_cpu_cwnd_event, struct sock *sk, enum tcp_ca_event ca_event)
{
	struct flow *flow = flow_of(sk, 0);

	if (flow && flow->bbr_pacing_rate)
		sk->sk_pacing_rate = flow->bbr_pacing_rate;
	bbr_cwnd_event(sk, ca_event);
	if (flow)
		flow->bbr_pacing_rate = sk->sk_pacing_rate;
}

SEC("struct_ops")
u32 BPF_PROG(bbr_cpu_undo_cwnd, struct sock *sk)
{
	return bbr_undo_cwnd(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bbr_cpu_min_tso_segs, struct sock *sk)
{
	return bbr_min_tso_segs(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bbr_cpu_sndbuf_expand, struct sock *sk)
{
	return bbr_sndbuf_expand(sk);
}

/* The two registrations differ only in `cong_control`. */
#define REGISTRATION(main)                                                                                             \
	{                                                                                                              \
		.init = (void *)bbr_cpu_init,                                                                          \
		.release = (void *)bbr_cpu_release,                                                                    \
		.cong_control = (void *)main,                                                                          \
		.ssthresh = (void *)bbr_cpu_ssthresh,                                                                  \
		.set_state = (void *)bbr_cpu_set_state,                                                                \
		.cwnd_event = (void *)bbr_cpu_cwnd_event,                                                              \
		.undo_cwnd = (void *)bbr_cpu_undo_cwnd,                                                                \
		.min_tso_segs = (void *)bbr_cpu_min_tso_segs,                                                          \
		.sndbuf_expand = (void *)bbr_cpu_sndbuf_expand,                                                        \
		.flags = TCP_CONG_NON_RESTRICTED,                                                                      \
		.name = "bbr_cpu",                                                                                     \
	}

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr_cpu = REGISTRATION(bbr_cpu_main);

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr_cpu_6_9 = REGISTRATION(bbr_cpu_main_6_9);
