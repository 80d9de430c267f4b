// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock_cubic: the kernel's own CUBIC, with a report of its calls. See lockstep.h.
 */
#include "lockstep.h"

char LICENSE[] SEC("license") = "GPL";

extern void cubictcp_init(struct sock *sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SEC("struct_ops")
void BPF_PROG(lock_cubic_init, struct sock *sk)
{
	struct lockstep_event *event = lockstep_begin(sk, LOCKSTEP_INIT);

	cubictcp_init(sk);
	lockstep_end(sk, event);
}

SEC("struct_ops")
void BPF_PROG(lock_cubic_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct lockstep_event *event = lockstep_begin(sk, LOCKSTEP_PKTS_ACKED);

	if (event) {
		event->acked = sample->pkts_acked;
		event->rtt_us = (s64)sample->rtt_us;
		event->jiffies = bpf_jiffies64();
	}
	cubictcp_acked(sk, sample);
	lockstep_end(sk, event);
}

LOCKSTEP_REPORT_CONG_AVOID(lock_cubic_cong_avoid, cubictcp_cong_avoid)
LOCKSTEP_REPORT_RESULT(lock_cubic_ssthresh, LOCKSTEP_SSTHRESH, cubictcp_recalc_ssthresh)
LOCKSTEP_REPORT_ARG(lock_cubic_state, LOCKSTEP_SET_STATE, u8, cubictcp_state)
LOCKSTEP_REPORT_ARG(lock_cubic_cwnd_event, LOCKSTEP_CWND_EVENT, enum tcp_ca_event, cubictcp_cwnd_event)
LOCKSTEP_REPORT_RESULT(lock_cubic_undo_cwnd, LOCKSTEP_UNDO_CWND, tcp_reno_undo_cwnd)
LOCKSTEP_REPORT_RELEASE(lock_cubic_release)

SEC(".struct_ops.link")
struct tcp_congestion_ops lock_cubic = {
	.init = (void *)lock_cubic_init,
	.pkts_acked = (void *)lock_cubic_acked,
	.cong_avoid = (void *)lock_cubic_cong_avoid,
	.ssthresh = (void *)lock_cubic_ssthresh,
	.set_state = (void *)lock_cubic_state,
	.cwnd_event = (void *)lock_cubic_cwnd_event,
	.undo_cwnd = (void *)lock_cubic_undo_cwnd,
	.release = (void *)lock_cubic_release,
	.name = "lock_cubic",
};
