// SPDX-License-Identifier: GPL-2.0-only
/*
 * rejected: writes memory that an algorithm may not write, so that the verifier rejects it. For tests.
 *
 * Hooks: struct_ops tcp_congestion_ops. Kernel: 6.1, BTF.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

SEC("struct_ops")
void BPF_PROG(rejected_control, struct sock *sk)
{
	((struct tcp_sock *)sk)->srtt_us = 1;
}

SEC("struct_ops")
u32 BPF_PROG(rejected_ssthresh, struct sock *sk)
{
	return 2;
}

SEC("struct_ops")
u32 BPF_PROG(rejected_undo, struct sock *sk)
{
	return 2;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops rejected = {
	.cong_control = (void *)rejected_control,
	.ssthresh = (void *)rejected_ssthresh,
	.undo_cwnd = (void *)rejected_undo,
	.name = "rejected",
};
