// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock_bbr: the kernel's own BBR, with a report of its calls. See lockstep.h.
 */
#include "lockstep.h"

char LICENSE[] SEC("license") = "GPL";

extern void bbr_init(struct sock *sk) __ksym;
extern void bbr_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) __ksym;
extern u32 bbr_sndbuf_expand(struct sock *sk) __ksym;
extern u32 bbr_undo_cwnd(struct sock *sk) __ksym;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern u32 bbr_ssthresh(struct sock *sk) __ksym;
extern u32 bbr_min_tso_segs(struct sock *sk) __ksym;
extern void bbr_set_state(struct sock *sk, u8 new_state) __ksym;

SEC("struct_ops")
void BPF_PROG(lock_bbr_init, struct sock *sk)
{
	struct lockstep_event *event = lockstep_begin(sk, LOCKSTEP_INIT);

	bbr_init(sk);
	if (event) {
		event->result = bbr_sndbuf_expand(sk);
		event->min_tso_segs = bbr_min_tso_segs(sk);
	}
	lockstep_end(sk, event);
}

SEC("struct_ops")
void BPF_PROG(lock_bbr_main, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct lockstep_event *event = lockstep_begin(sk, LOCKSTEP_CONG_CONTROL);

	if (event) {
		event->acked = rs->acked_sacked;
		event->rtt_us = (s64)rs->rtt_us;
		event->losses = (s64)rs->losses;
		event->prior_inflight = rs->prior_in_flight;
		event->rs_prior_delivered = rs->prior_delivered;
		event->rs_delivered = (s64)rs->delivered;
		event->rs_interval_us = (s64)rs->interval_us;
		event->rs_is_app_limited = rs->is_app_limited;
		event->rs_is_ack_delayed = rs->is_ack_delayed;
		event->jiffies = bpf_jiffies64();
	}
	bbr_main(sk, ack, flag, rs);
	if (event)
		event->min_tso_segs = bbr_min_tso_segs(sk);
	lockstep_end(sk, event);
}

LOCKSTEP_REPORT_RESULT(lock_bbr_ssthresh, LOCKSTEP_SSTHRESH, bbr_ssthresh)
LOCKSTEP_REPORT_ARG(lock_bbr_set_state, LOCKSTEP_SET_STATE, u8, bbr_set_state)
LOCKSTEP_REPORT_ARG(lock_bbr_cwnd_event, LOCKSTEP_CWND_EVENT, enum tcp_ca_event, bbr_cwnd_event)
LOCKSTEP_REPORT_RESULT(lock_bbr_undo_cwnd, LOCKSTEP_UNDO_CWND, bbr_undo_cwnd)

/* The results depend on the pacing rate, or are constant. They are reported with the calls above. */
SEC("struct_ops")
u32 BPF_PROG(lock_bbr_min_tso_segs, struct sock *sk)
{
	return bbr_min_tso_segs(sk);
}

SEC("struct_ops")
u32 BPF_PROG(lock_bbr_sndbuf_expand, struct sock *sk)
{
	return bbr_sndbuf_expand(sk);
}

LOCKSTEP_REPORT_RELEASE(lock_bbr_release)

SEC(".struct_ops.link")
struct tcp_congestion_ops lock_bbr = {
	.init = (void *)lock_bbr_init,
	.cong_control = (void *)lock_bbr_main,
	.ssthresh = (void *)lock_bbr_ssthresh,
	.set_state = (void *)lock_bbr_set_state,
	.cwnd_event = (void *)lock_bbr_cwnd_event,
	.undo_cwnd = (void *)lock_bbr_undo_cwnd,
	.min_tso_segs = (void *)lock_bbr_min_tso_segs,
	.sndbuf_expand = (void *)lock_bbr_sndbuf_expand,
	.release = (void *)lock_bbr_release,
	.name = "lock_bbr",
};
