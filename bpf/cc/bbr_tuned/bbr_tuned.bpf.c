// SPDX-License-Identifier: GPL-2.0-only
/*
 * bbr_tuned: the kernel's own BBR (version 1) with parameters (tuned.h). Before an ACK, this program disables the
 * decisions that BBR bases on constants; after BBR has handled the ACK, it decides by the parameters, as
 * docs/concepts/bbr-tuned.md describes. With the default parameters it only passes calls on and counts. bbr_auto is the
 * same program with the parameters of its rule (auto_gain.h).
 *
 * Hooks: struct_ops tcp_congestion_ops. Kernel: 6.1 or newer with BTF and BBR, built in or as a module. The loader
 * (thalweg-agent) creates one of the registrations below: `bbr_main` has two arguments up to Linux 6.9, and four from
 * 6.10.
 */
#include "kernel.h"
#include "tuned.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

/* Settings of the loader. PROBE_RTT's times are in microseconds. */
struct settings {
	struct tuned_params params;
	u32 is_changed; /* whether any parameter differs from those of the kernel's BBR */
};

/* In a separate section, so that the loader needs no offset. */
const volatile struct settings settings SEC(".rodata.params") = {};

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
	struct tuned_state tuned;
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
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

/* Offset on the kernel's coarse clock for times that are never reached, or long past. */
#define FAR_JIFFIES (1U << 29)

static __always_inline struct counters *counters_here(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&counters, &only);
}

static __always_inline struct bbr *bbr_of(struct sock *sk)
{
	return (struct bbr *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* Returns the parameters. The compiler must not assume that the values above are final: the loader sets them. */
static __always_inline const struct tuned_params *params_here(void)
{
	const struct tuned_params *params = (const struct tuned_params *)&settings.params;

	asm volatile("" : "+r"(params));
	return params;
}

/* Returns the state of a connection to which parameters apply. */
static __always_inline struct flow *flow_of(struct sock *sk)
{
	return settings.is_changed ? bpf_sk_storage_get(&flows, sk, NULL, 0) : NULL;
}

static __always_inline void read_model(struct bbr *bbr, struct tuned_model *model)
{
	model->mode = BPF_CORE_READ_BITFIELD(bbr, mode);
	model->min_rtt_us = bbr->min_rtt_us;
	model->is_policed = BPF_CORE_READ_BITFIELD(bbr, lt_use_bw);
	model->prior_ca_state = BPF_CORE_READ_BITFIELD(bbr, prev_ca_state);
	model->has_seen_rtt = BPF_CORE_READ_BITFIELD(bbr, has_seen_rtt);
}

static __always_inline void read_connection(struct sock *sk, struct tuned_ack *ack)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 clock_ns = tp->tcp_clock_cache, departure_ns = tp->tcp_wstamp_ns;

	ack->now_us = tp->delivered_mstamp;
	ack->clock = tp->tcp_mstamp;
	ack->departure_us = departure_ns > clock_ns ? (departure_ns - clock_ns) / 1000 : 0;
	ack->mss = tp->mss_cache;
	ack->srtt_us = tp->srtt_us >> 3;
	ack->cwnd = tp->snd_cwnd;
	ack->cwnd_clamp = tp->snd_cwnd_clamp;
	ack->inflight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	ack->delivered = tp->delivered;
	ack->lost = tp->lost;
	ack->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	ack->pacing_shift = sk->sk_pacing_shift;
	ack->pacing_rate = sk->sk_pacing_rate;
	ack->max_pacing_rate = sk->sk_max_pacing_rate;
	ack->random[0] = bpf_get_prandom_u32();
	ack->random[1] = bpf_get_prandom_u32();
}

static __always_inline void read_sample(const struct rate_sample *rs, struct tuned_ack *ack)
{
	long rtt_us = rs->rtt_us;
	int losses = rs->losses;

	ack->prior_inflight = rs->prior_in_flight;
	ack->acked = rs->acked_sacked;
	ack->losses = losses > 0 ? losses : 0;
	ack->rtt_us = rtt_us >= 0 ? rtt_us : TUNED_NO_RTT;
}

static __always_inline void read_bbr(struct bbr *bbr, struct tuned_ack *ack)
{
	u32 extra[2] = { bbr->extra_acked[0], bbr->extra_acked[1] };

	read_model(bbr, &ack->after);
	ack->max_bw = bbr->bw.s[0].v;
	ack->bw = ack->after.is_policed ? bbr->lt_bw : ack->max_bw;
	ack->is_round_start = BPF_CORE_READ_BITFIELD(bbr, round_start);
	ack->is_pipe_full = BPF_CORE_READ_BITFIELD(bbr, full_bw_reached);
	ack->is_conserving = BPF_CORE_READ_BITFIELD(bbr, packet_conservation);
	ack->extra_acked = extra[0] > extra[1] ? extra[0] : extra[1];
	ack->prior_cwnd = bbr->prior_cwnd;
}

/* Returns the earliest end of PROBE_RTT for the kernel's BBR; 0 if too much is still in flight. */
static __always_inline u32 probe_rtt_stamp(const struct tuned_state *it, u64 clock, u32 jiffies)
{
	if (!it->probe_rtt_done_at)
		return 0;
	return (tuned_is_probe_rtt_due(it, clock) ? jiffies - 2 : jiffies + FAR_JIFFIES) | 1;
}

/* Returns whether this ACK begins a round, by the count of the kernel's BBR. */
static __always_inline u32 begins_round(struct bbr *bbr, const struct rate_sample *rs)
{
	long interval_us = rs->interval_us;
	s32 delivered = rs->delivered;

	return delivered >= 0 && interval_us > 0 && (s32)(rs->prior_delivered - bbr->next_rtt_delivered) >= 0;
}

/*
 * Called before the kernel's BBR handles an ACK: sets its state so that it decides by the parameters. Returns the
 * stamp of min_rtt.
 */
static __always_inline u32 steer(struct bbr *bbr, struct tuned_state *it, const struct rate_sample *rs,
				 struct tuned_ack *ack)
{
	const struct tuned_params *params = params_here();
	u32 jiffies = bpf_jiffies64(), min_rtt_stamp;

	if (!params->is_policer_detected) {
		BPF_CORE_WRITE_BITFIELD(bbr, lt_is_sampling, 0);
		BPF_CORE_WRITE_BITFIELD(bbr, lt_use_bw, 0);
	}
	read_model(bbr, &ack->before);
	/*
	 * Stops the cycle of the kernel's BBR: the phase appears to have just begun, and lasts for a round-trip time.
	 */
	if (ack->before.mode == TUNED_PROBE_BW) {
		bbr->cycle_mstamp = ack->now_us;
		BPF_CORE_WRITE_BITFIELD(bbr, pacing_gain, TUNED_UNIT);
	}
	min_rtt_stamp = tuned_is_min_rtt_expired(it, params, ack->clock) ? jiffies - FAR_JIFFIES : jiffies - 1;
	bbr->min_rtt_stamp = min_rtt_stamp;
	if (ack->before.mode == TUNED_PROBE_RTT)
		bbr->probe_rtt_done_stamp = probe_rtt_stamp(it, ack->clock, jiffies);
	/* The bandwidth maximum of the kernel's BBR lasts for ten counts. */
	if (begins_round(bbr, rs) && !tuned_tick(it, params, ack->now_us))
		bbr->rtt_cnt--;
	return min_rtt_stamp;
}

/* The time in PROBE_RTT begins when little is in flight; this threshold may differ from the kernel's. */
static __always_inline void set_probe_rtt(struct bbr *bbr, const struct tuned_state *it, const struct tuned_ack *ack,
					  u32 is_drained, u32 round_end)
{
	if (is_drained) {
		bbr->probe_rtt_done_stamp = ((u32)bpf_jiffies64() + FAR_JIFFIES) | 1;
		BPF_CORE_WRITE_BITFIELD(bbr, probe_rtt_round_done, 0);
		bbr->next_rtt_delivered = ack->delivered;
	} else if (ack->after.mode == TUNED_PROBE_RTT && !it->probe_rtt_done_at && bbr->probe_rtt_done_stamp) {
		bbr->probe_rtt_done_stamp = 0;
		if (!ack->is_round_start)
			bbr->next_rtt_delivered = round_end;
	}
}

/*
 * A global function, because the verifier checks it once, for any input. Inlined, the decisions would have too many
 * paths for the verifier. The null checks are for the verifier, too.
 */
__noinline int bbr_tuned_decide(struct tuned_state *it, struct tuned_ack *ack, struct tuned_output *out)
{
	if (it && ack && out)
		tuned_step(it, params_here(), ack, out);
	return 0;
}

static __always_inline void apply(struct sock *sk, struct bbr *bbr, const struct tuned_output *out)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	sk->sk_pacing_rate = out->pacing_rate;
	tp->snd_cwnd = out->cwnd;
	BPF_CORE_WRITE_BITFIELD(bbr, pacing_gain, out->pacing_gain);
	BPF_CORE_WRITE_BITFIELD(bbr, cwnd_gain, out->cwnd_gain);
}

static __always_inline void count_ack(void)
{
	struct counters *counters = counters_here();

	if (counters)
		counters->acks++;
}

/* Handles an ACK. Without memory for its state, a connection uses plain BBR. */
#define ON_ACK(bbr_main)                                                                                               \
	struct flow *flow = flow_of(sk);                                                                               \
	struct bbr *bbr = bbr_of(sk);                                                                                  \
	struct tuned_output out = {};                                                                                  \
	struct tuned_ack in = {};                                                                                      \
	u32 min_rtt_stamp, round_end;                                                                                  \
                                                                                                                       \
	count_ack();                                                                                                   \
	if (!flow) {                                                                                                   \
		bbr_main;                                                                                              \
		return;                                                                                                \
	}                                                                                                              \
	read_connection(sk, &in);                                                                                      \
	read_sample(rs, &in);                                                                                          \
	min_rtt_stamp = steer(bbr, &flow->tuned, rs, &in);                                                             \
	round_end = bbr->next_rtt_delivered;                                                                           \
	bbr_main;                                                                                                      \
	read_bbr(bbr, &in);                                                                                            \
	in.is_min_rtt_fresh = bbr->min_rtt_stamp != min_rtt_stamp;                                                     \
	bbr_tuned_decide(&flow->tuned, &in, &out);                                                                     \
	set_probe_rtt(bbr, &flow->tuned, &in, out.is_probe_rtt_drained, round_end);                                    \
	apply(sk, bbr, &out)

SEC("struct_ops")
void BPF_PROG(bbr_tuned_main, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	ON_ACK(bbr_main(sk, ack, flag, rs));
}

SEC("struct_ops")
void BPF_PROG(bbr_tuned_main_6_9, struct sock *sk, const struct rate_sample *rs)
{
	ON_ACK(bbr_main___until_6_9(sk, rs));
}

static __always_inline void begin(struct sock *sk)
{
	const struct tuned_params *params = params_here();
	struct bbr *bbr = bbr_of(sk);
	struct tuned_ack in = {};
	struct flow *flow;

	/* The socket may have used this algorithm before, with another one in between. */
	bpf_sk_storage_delete(&flows, sk);
	flow = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return;
	read_connection(sk, &in);
	tuned_begin(&flow->tuned, params, &in);
	sk->sk_pacing_rate = tuned_initial_rate(params, &in);
	BPF_CORE_WRITE_BITFIELD(bbr, pacing_gain, params->startup_gain);
	BPF_CORE_WRITE_BITFIELD(bbr, cwnd_gain, params->startup_cwnd_gain);
}

SEC("struct_ops")
void BPF_PROG(bbr_tuned_init, struct sock *sk)
{
	struct counters *counters = counters_here();

	bbr_init(sk);
	if (settings.is_changed)
		begin(sk);
	if (counters)
		counters->flows_begun++;
}

SEC("struct_ops")
void BPF_PROG(bbr_tuned_release, struct sock *sk)
{
	struct counters *counters = counters_here();

	if (counters)
		counters->flows_ended++;
}

SEC("struct_ops")
u32 BPF_PROG(bbr_tuned_ssthresh, struct sock *sk)
{
	return bbr_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(bbr_tuned_set_state, struct sock *sk, u8 new_state)
{
	struct flow *flow = flow_of(sk);
	struct bbr *bbr = bbr_of(sk);
	struct tuned_ack in = {};

	if (!flow) {
		bbr_set_state(sk, new_state);
		return;
	}
	read_connection(sk, &in);
	read_model(bbr, &in.before);
	bbr_set_state(sk, new_state);
	read_bbr(bbr, &in);
	tuned_event(&flow->tuned, params_here(), &in);
}

SEC("struct_ops")
void BPF_PROG(bbr_tuned_cwnd_event, struct sock *sk, enum tcp_ca_event ca_event)
{
	struct flow *flow = flow_of(sk);
	struct bbr *bbr = bbr_of(sk);
	struct tuned_ack in = {};

	if (!flow) {
		bbr_cwnd_event(sk, ca_event);
		return;
	}
	read_connection(sk, &in);
	read_model(bbr, &in.before);
	if (in.before.mode == TUNED_PROBE_RTT)
		bbr->probe_rtt_done_stamp = probe_rtt_stamp(&flow->tuned, in.clock, bpf_jiffies64());
	bbr_cwnd_event(sk, ca_event);
	read_bbr(bbr, &in);
	tuned_event(&flow->tuned, params_here(), &in);
}

SEC("struct_ops")
u32 BPF_PROG(bbr_tuned_undo_cwnd, struct sock *sk)
{
	return bbr_undo_cwnd(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bbr_tuned_min_tso_segs, struct sock *sk)
{
	return bbr_min_tso_segs(sk);
}

SEC("struct_ops")
u32 BPF_PROG(bbr_tuned_sndbuf_expand, struct sock *sk)
{
	return bbr_sndbuf_expand(sk);
}

/* The registrations of an algorithm differ only in `cong_control`. */
#define REGISTRATION(algorithm, main)                                                                                  \
	{                                                                                                              \
		.init = (void *)bbr_tuned_init,                                                                        \
		.release = (void *)bbr_tuned_release,                                                                  \
		.cong_control = (void *)main,                                                                          \
		.ssthresh = (void *)bbr_tuned_ssthresh,                                                                \
		.set_state = (void *)bbr_tuned_set_state,                                                              \
		.cwnd_event = (void *)bbr_tuned_cwnd_event,                                                            \
		.undo_cwnd = (void *)bbr_tuned_undo_cwnd,                                                              \
		.min_tso_segs = (void *)bbr_tuned_min_tso_segs,                                                        \
		.sndbuf_expand = (void *)bbr_tuned_sndbuf_expand,                                                      \
		.flags = TCP_CONG_NON_RESTRICTED,                                                                      \
		.name = algorithm,                                                                                     \
	}

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr_tuned = REGISTRATION("bbr_tuned", bbr_tuned_main);

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr_tuned_6_9 = REGISTRATION("bbr_tuned", bbr_tuned_main_6_9);

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr_auto = REGISTRATION("bbr_auto", bbr_tuned_main);

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr_auto_6_9 = REGISTRATION("bbr_auto", bbr_tuned_main_6_9);
