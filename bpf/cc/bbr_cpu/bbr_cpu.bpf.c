// SPDX-License-Identifier: GPL-2.0-only
/*
 * bbr_cpu: the kernel's own BBR (version 1), with a rule on top that keeps it at work when its sender shares a CPU (rule.h).
 * This file is the glue: it passes every call on to BBR, shows the rule what is known after an ACK, and does what it says.
 *
 * Hooks: struct_ops tcp_congestion_ops. Kernel: 6.1 or newer with BTF and BBR, built in or as a module.
 * The loader (thalweg-agent) creates one of the two registrations below: `bbr_main` has two arguments up to Linux 6.9, and
 * four from 6.10.
 */
#include "kernel.h"
#include "rule.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

/* Which rule: one of `enum rule`. In a section of its own, where the loader finds it without knowing any offset. */
const volatile u32 rule SEC(".rodata.rule") = RULE_PAPER;

extern void bbr_init(struct sock *sk) __ksym;
extern void bbr_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) __ksym __weak;
extern void bbr_main___until_6_9(struct sock *sk, const struct rate_sample *rs) __ksym __weak;
extern u32 bbr_sndbuf_expand(struct sock *sk) __ksym;
extern u32 bbr_undo_cwnd(struct sock *sk) __ksym;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern u32 bbr_ssthresh(struct sock *sk) __ksym;
extern u32 bbr_min_tso_segs(struct sock *sk) __ksym;
extern void bbr_set_state(struct sock *sk, u8 new_state) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rule_state);
} flows SEC(".maps");

/* What `thalweg-agent cc status` shows (crates/agent/src/cc/counters.rs), per CPU. */
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

/* BBR's own state. Its members are found by name in the running kernel, as those of all structures are. */
static __always_inline void *bbr_of(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline void look(struct sock *sk, const struct rate_sample *rs, struct rule_input *in)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct bbr *bbr = bbr_of(sk);

	in->now_us = tp->tcp_mstamp;
	in->mss = tp->mss_cache;
	in->snd_cwnd = tp->snd_cwnd;
	in->packets_out = tp->packets_out;
	in->srtt_us = tp->srtt_us >> 3;
	in->inflight_bytes = tp->bytes_sent - tp->bytes_acked;
	in->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	in->delivered = tp->delivered;
	in->lost = tp->lost;
	in->rate_app_limited = BPF_CORE_READ_BITFIELD(tp, rate_app_limited);
	in->pacing_rate_bytes_per_s = sk->sk_pacing_rate;
	in->max_pacing_rate_bytes_per_s = sk->sk_max_pacing_rate;

	in->sample_delivered = rs->delivered;
	in->sample_losses = rs->losses;
	in->sample_interval_us = rs->interval_us;
	in->sample_rtt_us = rs->rtt_us;
	in->sample_acked = rs->acked_sacked;
	in->sample_app_limited = rs->is_app_limited;

	in->bw = BPF_CORE_READ_BITFIELD(bbr, lt_use_bw) ? bbr->lt_bw : bbr->bw.s[0].v;
	in->min_rtt_us = bbr->min_rtt_us;
	in->mode = BPF_CORE_READ_BITFIELD(bbr, mode);
	in->cycle_index = BPF_CORE_READ_BITFIELD(bbr, cycle_idx);
	in->pacing_gain = BPF_CORE_READ_BITFIELD(bbr, pacing_gain);
	in->cwnd_gain = BPF_CORE_READ_BITFIELD(bbr, cwnd_gain);
	in->full_bw_reached = BPF_CORE_READ_BITFIELD(bbr, full_bw_reached);
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
}

/* After an ACK that BBR has handled. */
static __always_inline void after_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct counters *counters = counters_here();
	struct rule_output out = {};
	struct rule_input in = {};
	struct rule_state *state;

	state = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	/* Without memory for its state a connection is an ordinary one of BBR. */
	if (!state || !counters)
		return;
	look(sk, rs, &in);
	rule_step(rule, state, &in, &out);
	apply(sk, &out);
	counters->acks++;
	counters->boosted_acks += out.boosted;
}

SEC("struct_ops")
void BPF_PROG(bbr_cpu_main, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	bbr_main(sk, ack, flag, rs);
	after_ack(sk, rs);
}

SEC("struct_ops")
void BPF_PROG(bbr_cpu_main_6_9, struct sock *sk, const struct rate_sample *rs)
{
	bbr_main___until_6_9(sk, rs);
	after_ack(sk, rs);
}

SEC("struct_ops")
void BPF_PROG(bbr_cpu_init, struct sock *sk)
{
	struct counters *counters = counters_here();

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
	bbr_cwnd_event(sk, ca_event);
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

/* The two registrations differ in `cong_control` alone. */
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
