// SPDX-License-Identifier: GPL-2.0-only
/* For tests of the recorder: a program that overwrites the callback flags of the socket. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("sockops")
int forgetful(struct bpf_sock_ops *ctx)
{
	if (ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		bpf_sock_ops_cb_flags_set(ctx, 0);
	return 1;
}
