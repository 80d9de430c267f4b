// SPDX-License-Identifier: GPL-2.0-only
/*
 * fixed_window: a constant window of ten packets. An example of a user's own algorithm, for tests.
 *
 * Hooks: struct_ops tcp_congestion_ops. Kernel: 6.1, BTF.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

#define WINDOW_PACKETS 10

SEC("struct_ops")
void BPF_PROG(fixed_window_control, struct sock *sk)
{
	((struct tcp_sock *)sk)->snd_cwnd = WINDOW_PACKETS;
}

SEC("struct_ops")
u32 BPF_PROG(fixed_window_same, struct sock *sk)
{
	return WINDOW_PACKETS;
}

SEC("struct_ops")
u32 BPF_PROG(fixed_window_undo, struct sock *sk)
{
	return WINDOW_PACKETS;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fixed_window = {
	.cong_control = (void *)fixed_window_control,
	.ssthresh = (void *)fixed_window_same,
	.undo_cwnd = (void *)fixed_window_undo,
	.name = "fixed_window",
};
