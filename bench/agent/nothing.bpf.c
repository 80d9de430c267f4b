// SPDX-License-Identifier: GPL-2.0-only
/*
 * An empty program that is called for the same events as the recorder. Its cost in the kernel's statistics is the
 * overhead of the measurement itself.
 */
struct bpf_sock_ops {
	unsigned int op;
	unsigned int args[4];
	unsigned int family;
	unsigned int unused[15];
	unsigned int bpf_sock_ops_cb_flags;
};

/* Values of enum bpf_func_id, enum bpf_sock_op and its flags, from linux/bpf.h. */
static int (*const cb_flags_set)(struct bpf_sock_ops *ctx, int flags) = (void *)59;

enum { PASSIVE_ESTABLISHED_CB = 5, STATE_CB_FLAG = 1 << 2, RTT_CB_FLAG = 1 << 3 };

char LICENSE[] __attribute__((section("license"), used)) = "GPL";

__attribute__((section("sockops"), used)) int nothing(struct bpf_sock_ops *ctx)
{
	if (ctx->op == PASSIVE_ESTABLISHED_CB)
		cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | STATE_CB_FLAG | RTT_CB_FLAG);
	return 1;
}
