/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bbr3: BBR version 3 for kernels without it. This file connects the algorithm (bbr3.h) to the kernel: it reads the
 * socket, calls the algorithm, and writes window and pacing rate. A rule (cpu_rules/rule.h) may change the
 * algorithm's decision, for a sender on a shared CPU.
 *
 * Hooks: struct_ops tcp_congestion_ops. Kernel: 6.1 or newer with BTF. docs/concepts/bbr3-ebpf.md lists the differences
 * from the kernel's own version 3. The loader (thalweg-agent) creates one of the two registrations below:
 * `cong_control` has two arguments up to Linux 6.9, and four from 6.10.
 */
#include "kernel.h"
#include "bbr3.h"
#include "inflight_ring.h"
#include "../cpu_rules/rule.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

/*
 * The rule: 0 for no rule, otherwise a value of `enum rule` plus 1. In a separate section, so that the loader needs
 * no offset.
 */
const volatile u32 rule SEC(".rodata.rule") = 0;

struct flow {
	struct bbr3 bbr;
	struct bbr3_ring ring;
	struct rule_state rule;
	/* Input and output of the rule at an ACK. They do not fit on the stack. */
	struct rule_input in;
	struct rule_output out;
	/* The pacing rate as set by BBR, which BBR uses in place of the one that a rule has set. */
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

static __always_inline struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, NULL, 0);
}

static __always_inline u32 inflight_of(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* Returns the latest call of min_tso_segs, which is stored in the socket's memory for its algorithm. */
static __always_inline struct bbr3_call *call_of(struct sock *sk)
{
	return (struct bbr3_call *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* Called when packets were sent after the latest call. */
static __always_inline void settle_call(struct flow *flow, struct bbr3_call *call, u32 sent, u32 srtt_us)
{
	/* Usually no ACK was handled since the call, so its marks still apply. */
	u32 is_app_limited = call->is_app_limited || bbr3_is_marked(&flow->bbr, call->delivered);

	bbr3_ring_settle(&flow->ring, call, sent, srtt_us, is_app_limited);
}

/* Reads the part of the input that every call needs. */
static __always_inline void read_socket(struct sock *sk, struct bbr3_ack *ack)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 clock_ns = tp->tcp_clock_cache, departure_ns = tp->tcp_wstamp_ns;

	ack->now_us = tp->tcp_mstamp;
	/* A multiplication replaces the division: 2^32 / 1000, rounded up. */
	ack->pacing_delay_us = departure_ns > clock_ns ? (u64)(u32)(departure_ns - clock_ns) * 4294968 >> 32 : 0;
	ack->max_pacing_rate = sk->sk_max_pacing_rate;
	ack->pacing_shift = sk->sk_pacing_shift;
	ack->mss = tp->mss_cache;
	ack->srtt_us = tp->srtt_us >> 3;
	ack->inflight = inflight_of(tp);
	ack->delivered = tp->delivered;
	ack->lost = tp->lost;
	ack->cwnd_clamp = tp->snd_cwnd_clamp;
	ack->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	ack->is_cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	ack->has_ecn = tp->ecn_flags & TCP_ECN_OK;
	ack->delivered_ce = tp->delivered_ce;
	ack->pacing_rate = sk->sk_pacing_rate;
	ack->cwnd = tp->snd_cwnd;
	ack->ssthresh = 0;
}

static __always_inline void read_sample(struct sock *sk, const struct rate_sample *rs, struct bbr3_ack *ack)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	long interval_us = rs->interval_us, rtt_us = rs->rtt_us;
	s32 delivered = rs->delivered;

	ack->delivered_us = tp->delivered_mstamp;
	ack->interval_us = interval_us > 0 && delivered >= 0 ? interval_us : 0;
	ack->sample_delivered = delivered > 0 ? delivered : 0;
	ack->sample_ce = bpf_core_field_exists(rs->delivered_ce) && rs->delivered_ce > 0 ? rs->delivered_ce : 0;
	ack->prior_delivered = rs->prior_delivered;
	ack->prior_inflight = rs->prior_in_flight;
	ack->acked = rs->acked_sacked;
	ack->losses = rs->losses;
	ack->rtt_us = rtt_us >= 0 ? rtt_us : BBR3_INFINITE;
	ack->is_app_limited = rs->is_app_limited;
	ack->is_ack_delayed = rs->is_ack_delayed;
	ack->bw = 0;
	ack->unbounded_cwnd = 0;
}

/* Reads the state of the connection when the last acknowledged packet was sent. */
static __always_inline void read_ring(struct sock *sk, struct flow *flow, struct bbr3_ack *ack)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	struct bbr3_call *call = call_of(sk);
	u32 sent = tp->data_segs_out;
	struct bbr3_moment *moment;

	if (bbr3_ring_is_due(call, sent))
		settle_call(flow, call, sent, ack->srtt_us);
	moment = bbr3_ring_find(&flow->ring, bbr3_ring_time(tp->first_tx_mstamp));
	ack->tx_in_flight = moment ? moment->inflight : 0;
	ack->tx_lost = moment ? moment->lost : 0;
	ack->tx_is_app_limited = moment ? moment->is_app_limited : 0;
}

static __always_inline void write_socket(struct sock *sk, const struct bbr3_ack *ack)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (sk->sk_pacing_rate != ack->pacing_rate)
		sk->sk_pacing_rate = ack->pacing_rate;
	if (tp->snd_cwnd != ack->cwnd)
		tp->snd_cwnd = ack->cwnd;
	if (ack->ssthresh)
		tp->snd_ssthresh = ack->ssthresh;
}

/*
 * Called when a connection starts, or returns to this algorithm, and at ACKs while it has no state. Not inlined, so
 * that the code of an ACK is compact.
 */
static __noinline void begin(struct sock *sk, struct bbr3_ack *ack)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	struct bbr3_call *call = call_of(sk);

	if (!flow)
		return;
	read_socket(sk, ack);
	bbr3_on_init(&flow->bbr, ack, tp->rtt_min.s[0].v, tp->prior_cwnd, bpf_get_prandom_u32());
	call->last = 0;
	call->is_pending = 0;
	write_socket(sk, ack);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/*
 * A global function, because the verifier checks it once, for any input. Inlined, the algorithm would have too many
 * paths for the verifier. The null checks are for the verifier, too.
 */
__noinline int bbr3_handle_ack(struct bbr3 *it, struct bbr3_ack *ack)
{
	if (it && ack)
		bbr3_on_ack(it, ack);
	return 0;
}

/* Returns BBR's mode, numbered as in the rules. */
static __always_inline u32 rule_mode_of(const struct bbr3 *it)
{
	if (it->state == BBR3_STARTUP)
		return RULE_STARTUP;
	if (it->state == BBR3_DRAIN)
		return RULE_DRAIN;
	return it->state == BBR3_PROBE_RTT ? RULE_PROBE_RTT : RULE_PROBE_BW;
}

static __always_inline u32 is_held_back(const struct tcp_sock *tp)
{
	return tp->app_limited || tp->snd_nxt - tp->snd_una + tp->mss_cache > tp->snd_wnd;
}

static __always_inline void fill_rule_input(struct sock *sk, const struct bbr3 *it, const struct bbr3_ack *ack,
					    struct rule_input *in)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	in->now_us = ack->now_us;
	in->departure_us = tp->tcp_wstamp_ns / 1000;
	in->bytes_sent = tp->bytes_sent;
	in->inflight_bytes = unacked_bytes(tp);
	in->mss = ack->mss;
	in->srtt_us = ack->srtt_us;
	in->rtt_us = ack->rtt_us == BBR3_INFINITE ? 0 : ack->rtt_us;
	in->snd_cwnd = ack->cwnd;
	in->inflight = ack->inflight;
	in->prior_inflight = ack->prior_inflight;
	in->acked = ack->acked;
	in->delivered = ack->delivered;
	in->lost = ack->lost;
	in->ca_state = ack->ca_state;
	in->is_held_back = is_held_back(tp);
	in->rate_app_limited = BPF_CORE_READ_BITFIELD(tp, rate_app_limited);
	in->pacing_rate_bytes_per_s = ack->pacing_rate;
	in->max_pacing_rate_bytes_per_s = ack->max_pacing_rate;
	in->bw = bbr3_bw(it);
	in->min_rtt_us = it->min_rtt_us;
	in->mode = rule_mode_of(it);
	in->full_bw_count = it->full_bw_count;
	in->inflight_bound = it->inflight_shortterm == BBR3_INFINITE ? 0 : it->inflight_shortterm;
	in->unbounded_cwnd = in->mode == RULE_PROBE_BW ? ack->unbounded_cwnd : 0;
}

/* A global function for the same reason as bbr3_handle_ack(). */
__noinline int bbr3_step_rule(struct rule_state *state, struct rule_input *in, struct rule_output *out)
{
	if (state && in && out)
		rule_step(rule - 1, &rule_version_3, state, in, out);
	return 0;
}

/*
 * Called after BBR has handled an ACK. The gain that the rule `paper` sets is not stored, because BBR derives its own
 * gain from its state.
 */
static __always_inline u32 after_ack(struct sock *sk, struct flow *flow, struct bbr3_ack *ack, u32 prior_cwnd)
{
	struct rule_output *out = &flow->out;
	struct bbr3 *it = &flow->bbr;

	flow->bbr_pacing_rate = ack->pacing_rate;
	fill_rule_input(sk, it, ack, &flow->in);
	flow->in.prior_cwnd = prior_cwnd;
	__builtin_memset(out, 0, sizeof(*out));
	bbr3_step_rule(&flow->rule, &flow->in, out);
	if (out->pacing_rate_bytes_per_s)
		ack->pacing_rate = out->pacing_rate_bytes_per_s;
	if (out->snd_cwnd)
		ack->cwnd = out->snd_cwnd;
	if (out->is_startup_over)
		it->is_full_bw_reached = 1;
	if (out->full_bw_count)
		it->full_bw_count = out->full_bw_count;
	if (out->is_min_rtt_fresh) {
		it->min_rtt_at_us = ack->now_us;
		it->probe_rtt_min_at_us = ack->now_us;
	}
	return out->boosted;
}

/*
 * Called before BBR handles an ACK: restores BBR's own pacing rate, and applies the rule to the rate sample.
 */
static __always_inline void before_ack(const struct flow *flow, struct bbr3_ack *ack)
{
	u64 interval_us;

	if (flow->bbr_pacing_rate)
		ack->pacing_rate = flow->bbr_pacing_rate;
	if (!ack->interval_us || !ack->sample_delivered)
		return;
	interval_us = rule_interval(rule - 1, &flow->rule, ack->now_us, flow->bbr.min_rtt_us, ack->sample_delivered,
				    ack->interval_us);
	ack->interval_us = interval_us > ack->interval_us ? interval_us : ack->interval_us;
}

/*
 * Handles an ACK. Without state, because memory is short, the window stays unchanged until the state can be
 * allocated. The ACK that opens a connection arrives before the connection starts.
 */
static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct counters *counters = counters_here();
	struct flow *flow = flow_of(sk);
	u8 state = sk->__sk_common.skc_state;
	u32 prior_cwnd, boosted = 0;
	struct bbr3_ack ack;

	if (!flow) {
		if (state != TCP_SYN_SENT && state != TCP_SYN_RECV)
			begin(sk, &ack);
		return;
	}
	read_socket(sk, &ack);
	read_sample(sk, rs, &ack);
	read_ring(sk, flow, &ack);
	prior_cwnd = ack.cwnd;
	if (rule)
		before_ack(flow, &ack);
	bbr3_handle_ack(&flow->bbr, &ack);
	if (rule)
		boosted = after_ack(sk, flow, &ack, prior_cwnd);
	write_socket(sk, &ack);
	if (!counters)
		return;
	counters->acks++;
	counters->boosted_acks += boosted;
}

SEC("struct_ops")
void BPF_PROG(bbr3_main, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

SEC("struct_ops")
void BPF_PROG(bbr3_main_6_9, struct sock *sk, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

SEC("struct_ops")
void BPF_PROG(bbr3_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct counters *counters = counters_here();
	struct bbr3_ack ack = {};

	/* The socket may have used this algorithm before, with another one in between. */
	bpf_sk_storage_delete(&flows, sk);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	begin(sk, &ack);
	if (counters)
		counters->flows_begun++;
}

SEC("struct_ops")
void BPF_PROG(bbr3_release, struct sock *sk)
{
	struct counters *counters = counters_here();

	if (counters)
		counters->flows_ended++;
}

SEC("struct_ops")
u32 BPF_PROG(bbr3_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = flow_of(sk);
	struct bbr3_ack ack = {};

	if (flow) {
		read_socket(sk, &ack);
		bbr3_on_recovery(&flow->bbr, &ack);
	}
	return tp->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(bbr3_set_state, struct sock *sk, u8 new_state)
{
	struct flow *flow = flow_of(sk);
	struct bbr3_ack ack = {};

	if (!flow)
		return;
	read_socket(sk, &ack);
	if (new_state == TCP_CA_Loss)
		read_ring(sk, flow, &ack);
	bbr3_on_ca_state(&flow->bbr, &ack, new_state);
	write_socket(sk, &ack);
}

SEC("struct_ops")
void BPF_PROG(bbr3_cwnd_event, struct sock *sk, enum tcp_ca_event ca_event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct bbr3_ack ack = {};
	struct flow *flow;

	if (ca_event != CA_EVENT_TX_START)
		return;
	flow = flow_of(sk);
	if (!flow || !(tp->app_limited || bbr3_is_marked(&flow->bbr, tp->delivered)))
		return;
	ack.now_us = tp->tcp_mstamp;
	ack.max_pacing_rate = sk->sk_max_pacing_rate;
	ack.mss = tp->mss_cache;
	ack.srtt_us = tp->srtt_us >> 3;
	ack.delivered = tp->delivered;
	ack.cwnd = tp->snd_cwnd;
	ack.pacing_rate = rule && flow->bbr_pacing_rate ? flow->bbr_pacing_rate : sk->sk_pacing_rate;
	bbr3_on_restart(&flow->bbr, &ack);
	if (rule)
		flow->bbr_pacing_rate = ack.pacing_rate;
	write_socket(sk, &ack);
}

SEC("struct_ops")
u32 BPF_PROG(bbr3_undo_cwnd, struct sock *sk)
{
	/*
	 * Read before the branch: otherwise the compiler merges this load with another one, and the verifier rejects
	 * that.
	 */
	u32 cwnd = ((struct tcp_sock *)sk)->snd_cwnd;
	struct flow *flow = flow_of(sk);

	return flow ? bbr3_on_undo(&flow->bbr) : cwnd;
}

/* Called before packets are sent. Since Linux 5.18, TCP itself sizes bursts by rate and RTT as version 3 does. */
SEC("struct_ops")
u32 BPF_PROG(bbr3_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 clock_ns = tp->tcp_clock_cache, departure_ns = tp->tcp_wstamp_ns;
	u32 at = (departure_ns > clock_ns ? departure_ns : clock_ns) >> BBR3_RING_TIME_SHIFT;
	u32 min_segments = sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_min_tso_segs;
	u32 sent = tp->data_segs_out, srtt_us = tp->srtt_us >> 3;
	struct bbr3_call *call = call_of(sk);
	struct bbr3_moment now = { .at = at };

	if (bbr3_ring_is_due(call, sent)) {
		struct flow *flow = flow_of(sk);

		if (!flow)
			return min_segments;
		settle_call(flow, call, sent, srtt_us);
	}
	if (bbr3_ring_is_early(call, at, srtt_us))
		return min_segments;
	now.inflight = inflight_of(tp);
	now.lost = tp->lost;
	now.is_app_limited = tp->app_limited != 0;
	bbr3_ring_on_send(call, &now, sent, tp->delivered);
	return min_segments;
}

/* The send buffer holds three windows, because BBR may also grow the window during loss recovery. */
SEC("struct_ops")
u32 BPF_PROG(bbr3_sndbuf_expand, struct sock *sk)
{
	return 3;
}

/* The two registrations differ only in `cong_control`. */
#define REGISTRATION(main)                                                                                             \
	{                                                                                                              \
		.init = (void *)bbr3_init,                                                                             \
		.release = (void *)bbr3_release,                                                                       \
		.cong_control = (void *)main,                                                                          \
		.ssthresh = (void *)bbr3_ssthresh,                                                                     \
		.set_state = (void *)bbr3_set_state,                                                                   \
		.cwnd_event = (void *)bbr3_cwnd_event,                                                                 \
		.undo_cwnd = (void *)bbr3_undo_cwnd,                                                                   \
		.min_tso_segs = (void *)bbr3_min_tso_segs,                                                             \
		.sndbuf_expand = (void *)bbr3_sndbuf_expand,                                                           \
		.flags = TCP_CONG_NON_RESTRICTED,                                                                      \
		.name = "bbr3",                                                                                        \
	}

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr3 = REGISTRATION(bbr3_main);

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr3_6_9 = REGISTRATION(bbr3_main_6_9);
