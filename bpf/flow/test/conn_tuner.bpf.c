// SPDX-License-Identifier: GPL-2.0-only
/* For tests of `tune`: a program with the same name as bpftune's program for connections. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("sockops")
int conn_tuner_sockops(struct bpf_sock_ops *ctx)
{
	return 1;
}
