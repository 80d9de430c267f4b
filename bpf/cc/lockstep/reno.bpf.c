// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock_reno: the kernel's own Reno, with a report of its calls. See lockstep.h. The kernel's Reno has no `init`,
 * `set_state` or `cwnd_event`; here these only report that they are called.
 */
#include "lockstep.h"

char LICENSE[] SEC("license") = "GPL";

extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SEC("struct_ops")
void BPF_PROG(lock_reno_init, struct sock *sk)
{
	lockstep_end(sk, lockstep_begin(sk, LOCKSTEP_INIT));
}

LOCKSTEP_REPORT_CONG_AVOID(lock_reno_cong_avoid, tcp_reno_cong_avoid)
LOCKSTEP_REPORT_RESULT(lock_reno_ssthresh, LOCKSTEP_SSTHRESH, tcp_reno_ssthresh)
LOCKSTEP_REPORT_ARG(lock_reno_state, LOCKSTEP_SET_STATE, u8, lockstep_nothing)
LOCKSTEP_REPORT_ARG(lock_reno_cwnd_event, LOCKSTEP_CWND_EVENT, enum tcp_ca_event, lockstep_nothing)
LOCKSTEP_REPORT_RESULT(lock_reno_undo_cwnd, LOCKSTEP_UNDO_CWND, tcp_reno_undo_cwnd)
LOCKSTEP_REPORT_RELEASE(lock_reno_release)

SEC(".struct_ops.link")
struct tcp_congestion_ops lock_reno = {
	.init = (void *)lock_reno_init,
	.cong_avoid = (void *)lock_reno_cong_avoid,
	.ssthresh = (void *)lock_reno_ssthresh,
	.set_state = (void *)lock_reno_state,
	.cwnd_event = (void *)lock_reno_cwnd_event,
	.undo_cwnd = (void *)lock_reno_undo_cwnd,
	.release = (void *)lock_reno_release,
	.name = "lock_reno",
};
