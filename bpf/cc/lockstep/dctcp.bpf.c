// SPDX-License-Identifier: GPL-2.0-only
/*
 * lock_dctcp: the kernel's own DCTCP, with a report of its calls. See lockstep.h. The functions dctcp_* are those of
 * the module tcp_dctcp, which must be loaded.
 */
#include "lockstep.h"

char LICENSE[] SEC("license") = "GPL";

extern void dctcp_init(struct sock *sk) __ksym;
extern void dctcp_update_alpha(struct sock *sk, u32 flags) __ksym;
extern void dctcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern u32 dctcp_ssthresh(struct sock *sk) __ksym;
extern u32 dctcp_cwnd_undo(struct sock *sk) __ksym;
extern void dctcp_state(struct sock *sk, u8 new_state) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

SEC("struct_ops")
void BPF_PROG(lock_dctcp_init, struct sock *sk)
{
	struct lockstep_event *event = lockstep_begin(sk, LOCKSTEP_INIT);

	dctcp_init(sk);
	lockstep_end(sk, event);
}

LOCKSTEP_REPORT_ARG(lock_dctcp_in_ack_event, LOCKSTEP_IN_ACK_EVENT, u32, dctcp_update_alpha)
LOCKSTEP_REPORT_CONG_AVOID(lock_dctcp_cong_avoid, tcp_reno_cong_avoid)
LOCKSTEP_REPORT_RESULT(lock_dctcp_ssthresh, LOCKSTEP_SSTHRESH, dctcp_ssthresh)
LOCKSTEP_REPORT_ARG(lock_dctcp_state, LOCKSTEP_SET_STATE, u8, dctcp_state)
LOCKSTEP_REPORT_ARG(lock_dctcp_cwnd_event, LOCKSTEP_CWND_EVENT, enum tcp_ca_event, dctcp_cwnd_event)
LOCKSTEP_REPORT_RESULT(lock_dctcp_undo_cwnd, LOCKSTEP_UNDO_CWND, dctcp_cwnd_undo)
LOCKSTEP_REPORT_RELEASE(lock_dctcp_release)

SEC(".struct_ops.link")
struct tcp_congestion_ops lock_dctcp = {
	.init = (void *)lock_dctcp_init,
	.in_ack_event = (void *)lock_dctcp_in_ack_event,
	.cong_avoid = (void *)lock_dctcp_cong_avoid,
	.ssthresh = (void *)lock_dctcp_ssthresh,
	.set_state = (void *)lock_dctcp_state,
	.cwnd_event = (void *)lock_dctcp_cwnd_event,
	.undo_cwnd = (void *)lock_dctcp_undo_cwnd,
	.release = (void *)lock_dctcp_release,
	.flags = TCP_CONG_NEEDS_ECN,
	.name = "lock_dctcp",
};
