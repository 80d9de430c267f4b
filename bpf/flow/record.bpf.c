// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recorder: what becomes of every connection of a cgroup, and of each transfer in it. flow.h says what is kept of a
 * connection and how it is brought up to date, emit.h how it is handed over, record_event.h what is handed over.
 *
 * Hooks: sock_ops on a cgroup, and the iterator over TCP's sockets. Kernel: 6.1 or newer with BTF.
 * Work: at the opening, memory for the connection; once per round trip some 30 loads and stores; at the end an event. Cost:
 * docs/reference/agent.md. Nothing is changed but the connection's wish to be told of round trips and its end, which other
 * programs may have too. Connections that are not recorded cost one call at their opening.
 */
#include "flow.h"
#include "emit.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * By the socket's cookie. All of its memory is there from the start: taking it when a connection opens, as a socket's own
 * storage would, is the largest part of what a short one costs. The loader sets how many there can be.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, u64);
	__type(value, struct flow);
} flows SEC(".maps");

/* What a connection begins with: the kernel copies it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct flow);
} blank SEC(".maps");

static __always_inline u64 cookie_of(struct tcp_sock *tp)
{
	return sock_of(tp)->__sk_common.skc_cookie.counter;
}

static __always_inline struct flow *flow_of(struct tcp_sock *tp)
{
	u64 cookie = cookie_of(tp);

	return bpf_map_lookup_elem(&flows, &cookie);
}

static __always_inline void forget(struct tcp_sock *tp)
{
	u64 cookie = cookie_of(tp);

	bpf_map_delete_elem(&flows, &cookie);
}

static __always_inline struct flow *make_flow(u64 cookie)
{
	u32 only = 0;
	struct flow *nothing = bpf_map_lookup_elem(&blank, &only);

	if (!nothing || bpf_map_update_elem(&flows, &cookie, nothing, BPF_ANY))
		return NULL;
	return bpf_map_lookup_elem(&flows, &cookie);
}

#define CALLS (BPF_SOCK_OPS_STATE_CB_FLAG | BPF_SOCK_OPS_RTT_CB_FLAG)

/* Cookies are numbers in a row: mixed (MurmurHash3's finalizer), so that those that are taken are like the others. */
static __always_inline bool is_sampled(u64 cookie)
{
	u32 one_in = settings.sample_one_in;

	if (one_in <= 1)
		return true;
	cookie = (cookie ^ cookie >> 33) * 0xff51afd7ed558ccdULL;
	cookie = (cookie ^ cookie >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return (u32)(cookie >> 32) % one_in == 0;
}

/* From the opening on, or from when it was found open. */
static __always_inline void begin(struct flow *flow, struct tcp_sock *tp, u32 flags, u32 state, u64 now_us)
{
	struct sums now;

	flow->opened_us = now_us;
	flow->row_us = now_us;
	flow->flags = flags;
	sum_up(&now, tp, flags, state, now_us);
	look(flow, tp, &now);
	flow->begin = now;
	/* In the middle of a transfer: when that began is not known. */
	flow->begin.at_us = 0;
	if (flags & FLOW_JOINED && flow->covered_bytes > now.acked_bytes)
		flow->flags |= FLOW_IN_TRANSFER;
}

static __always_inline void on_opening(struct bpf_sock_ops *ctx, struct bpf_sock *sk, u32 flags)
{
	u64 cookie = bpf_get_socket_cookie(ctx);
	struct tcp_sock *tp;
	struct flow *flow;

	if (!is_sampled(cookie)) {
		COUNT(unsampled);
		return;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	flow = tp ? make_flow(cookie) : NULL;
	if (!flow) {
		COUNT(lost_connections);
		return;
	}
	/* A packet has just come. */
	begin(flow, tp, flags, TCP_ESTABLISHED, tp->tcp_mstamp);
	cc_name(tp, flow->cc_at_open);
	flow->handshake_rtt_us = tp->srtt_us >> 3;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | CALLS);
	COUNT(opened);
}

/* The transfer before a pause ends with it, and the next begins. */
static __always_inline void divide(struct flow *flow, struct tcp_sock *tp, const struct sums *now,
				   const struct pause *pause)
{
	u32 retransmits = now->retransmits - flow->look.retransmits;
	u32 busy = now->busy - flow->look.busy;
	u64 since = (now->at_us - pause->to_us) / settings.jiffy_us;
	struct sums edge = flow->look;

	/* What was retransmitted meanwhile was the end of the one; what is new is the other's. */
	edge.at_us = pause->from_us;
	edge.acked_bytes = pause->acked_bytes;
	edge.sent_bytes += now->retransmitted_bytes - flow->look.retransmitted_bytes;
	edge.retransmitted_bytes = now->retransmitted_bytes;
	edge.segments += retransmits;
	edge.retransmits += retransmits;
	edge.busy += busy > since ? busy - since : 0;
	if (flow->flags & FLOW_IN_TRANSFER)
		emit_transfer(tp, flow, &edge);
	else
		flow->begin = edge;
	flow->begin.at_us = pause->to_us;
	flow->flags |= FLOW_IN_TRANSFER;
}

/* Up to now: is what the transfer at work has sent still the same transfer? */
static __always_inline void advance(struct flow *flow, struct tcp_sock *tp, const struct sums *now, u64 resumed_us)
{
	struct pause pause;

	find_pause(&pause, flow, now, resumed_us);
	pass_marks(flow, now, &pause);
	if (pause.idle_us >= settings.idle_gap_us || !(flow->flags & FLOW_IN_TRANSFER))
		divide(flow, tp, now, &pause);
}

/* The first ACK of this round trip has come. */
static __always_inline void on_round_trip(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct flow *flow = tp ? flow_of(tp) : NULL;
	u64 resumed_us, now_us;
	struct sums now;
	u32 rtt_us;

	if (!flow)
		return;
	/* Linux 6.10 and newer tell the sample. */
	rtt_us = ctx->args[0] ? ctx->args[0] : tp->rack.rtt_us;
	now_us = tp->tcp_mstamp;
	sum_up(&now, tp, flow->flags, sock_of(tp)->__sk_common.skc_state, now_us);
	/* After an idle time this is still when the first packet was sent. */
	resumed_us = tp->delivered_mstamp;
	if (rtt_us && resumed_us > now_us - rtt_us)
		resumed_us = now_us - rtt_us;
	note_rtt(flow, tp, rtt_us);
	note_rate(flow, tp);
	judge(flow, tp, now_us);
	/* Only the FIN is under way when the last transfer is over. */
	if (flow->flags & FLOW_IS_OVER)
		return;
	advance(flow, tp, &now, resumed_us);
	note_rtt_of_transfer(flow, tp, rtt_us);
	look(flow, tp, &now);
}

/* The last transfer has ended, as far as there was one: where, is kept until the connection has closed. */
static __always_inline void finish(struct flow *flow, struct tcp_sock *tp, const struct sums *now, bool is_all_acked)
{
	struct sums end = *now;
	struct pause pause;

	if (is_all_acked) {
		/* The last ACK, to the microsecond: nothing was sent since. */
		end.at_us = tp->delivered_mstamp > flow->look.at_us ? tp->delivered_mstamp : flow->look.at_us;
		find_pause(&pause, flow, now, now->at_us);
		pause.from_us = end.at_us;
		pause.acked_bytes = now->acked_bytes;
		pass_marks(flow, now, &pause);
		flow->flags |= FLOW_IS_COMPLETE;
	} else {
		/* The first packet since an idle time may not have been acknowledged. */
		advance(flow, tp, now, tp->delivered_mstamp);
	}
	flow->look = end;
	flow->flags |= FLOW_IS_OVER;
}

/* The connection goes from state to state: towards its end. */
static __always_inline void on_state(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	u32 old = ctx->args[0], new = ctx->args[1];
	struct tcp_sock *tp;
	struct sums now;
	struct flow *flow;
	bool is_all_acked;

	if (new == TCP_CLOSE_WAIT || new == TCP_ESTABLISHED || old == TCP_CLOSE)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	is_all_acked = tp->snd_una == tp->write_seq;
	/* A FIN that goes behind data that is still on its way: the transfer ends when that is acknowledged. */
	if (new != TCP_CLOSE && !is_all_acked)
		return;
	flow = flow_of(tp);
	if (!flow || (new != TCP_CLOSE && flow->flags & FLOW_IS_OVER))
		return;
	/* A connection can be closed by a user or a timer, long after its last packet. */
	sum_up(&now, tp, flow->flags, old, new == TCP_CLOSE ? bpf_ktime_get_ns() / 1000 : tp->tcp_mstamp);
	if (!(flow->flags & FLOW_IS_OVER))
		finish(flow, tp, &now, is_all_acked);
	if (new != TCP_CLOSE)
		return;
	if (flow->marks < RECORD_MARKS) {
		struct pause pause = { .idle_us = 1, .from_us = flow->look.at_us, .acked_bytes = now.acked_bytes };

		/* All that was acknowledged since the last look was acknowledged then. */
		pass_marks(flow, &now, &pause);
	}
	emit_close(tp, flow, &now, old);
	forget(tp);
	COUNT(closed);
}

SEC("sockops")
int record_flows(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk;
	u32 op = ctx->op;

	if (op != BPF_SOCK_OPS_RTT_CB && op != BPF_SOCK_OPS_STATE_CB && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	if (op == BPF_SOCK_OPS_RTT_CB)
		on_round_trip(ctx, sk);
	else if (op == BPF_SOCK_OPS_STATE_CB)
		on_state(ctx, sk);
	else
		on_opening(ctx, sk, op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB ? FLOW_OUTGOING : 0);
	/* Whatever another program wants stays. */
	return 1;
}

/* What a walk over all connections is for: bits. Who wants to see all gets looks, and no row is due then. */
enum { WALK_SHOWS_ALL = 1 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} walk SEC(".maps");

/* Room for an event of a walk, which is too large for the stack. One walk at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct record_event);
} scratch SEC(".maps");

/* Is the connection's cgroup the one that is recorded, or within it? */
static __always_inline bool is_in_cgroup(struct tcp_sock *tp)
{
	u32 level = settings.cgroup_level;
	struct cgroup *cgroup = sock_of(tp)->sk_cgrp_data.cgroup, *ancestor = NULL;

	if (!level)
		return true;
	if (cgroup->level < (int)level)
		return false;
	bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
			      (void *)cgroup + bpf_core_field_offset(struct cgroup, ancestors) + level * sizeof(ancestor));
	return BPF_CORE_READ(ancestor, kn, id) == settings.cgroup;
}

/* Linux 6.1 and others do not let it be set from here. */
static __always_inline bool ask_for_calls(struct tcp_sock *tp)
{
	int calls = tp->bpf_sock_ops_cb_flags | CALLS;

	return !bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &calls, sizeof(calls));
}

/* A connection that was open before recording began. */
static __always_inline struct flow *join(struct tcp_sock *tp, u32 state, u64 now_us)
{
	struct flow *flow;
	u64 cookie;
	u32 flags;

	if (!is_in_cgroup(tp))
		return NULL;
	cookie = bpf_get_socket_cookie(tp);
	if (!is_sampled(cookie))
		return NULL;
	flow = make_flow(cookie);
	if (!flow) {
		COUNT(lost_connections);
		return NULL;
	}
	flags = FLOW_JOINED;
	if (!ask_for_calls(tp))
		flags |= FLOW_BLIND;
	begin(flow, tp, flags, state, now_us);
	/* When it was opened is not known. */
	flow->marks = RECORD_MARKS;
	COUNT(joined);
	return flow;
}

SEC("iter/tcp")
int record_walk(struct bpf_iter__tcp *ctx)
{
	u64 now_us = bpf_ktime_get_ns() / 1000, *purpose;
	struct sock_common *common = ctx->sk_common;
	struct record_event *event;
	struct tcp_sock *tp;
	struct pause pause;
	struct flow *flow;
	struct sums now;
	u32 only = 0, state;
	bool is_due, shows_all;

	if (!common)
		return 0;
	/* Nothing for connections that are not yet open, or only a memory. */
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	state = sock_of(tp)->__sk_common.skc_state;
	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT && !has_sent_fin(state))
		return 0;
	flow = flow_of(tp);
	if (!flow)
		flow = join(tp, state, now_us);
	purpose = bpf_map_lookup_elem(&walk, &only);
	event = bpf_map_lookup_elem(&scratch, &only);
	if (!flow || !purpose || !event)
		return 0;
	/* Another program may have forgotten that it is not alone. */
	if (!(flow->flags & FLOW_BLIND) && (tp->bpf_sock_ops_cb_flags & CALLS) != CALLS)
		ask_for_calls(tp);
	shows_all = *purpose & WALK_SHOWS_ALL;
	is_due = !shows_all && now_us - flow->row_us >= settings.interim_us;
	if (!is_due && !shows_all && !(flow->flags & FLOW_BLIND))
		return 0;

	sum_up(&now, tp, flow->flags, state, now_us);
	find_pause(&pause, flow, &now, tp->snd_una == tp->write_seq ? now_us : tp->delivered_mstamp);
	pass_marks(flow, &now, &pause);
	event->kind = is_due ? RECORD_INTERIM : RECORD_LOOK;
	fill_connection(event, tp, flow, &now, state);
	/* If it finds no room, the kernel calls once more for the same connection. */
	if (!bpf_seq_write(ctx->meta->seq, event, sizeof(*event)) && is_due)
		flow->row_us = now_us;
	return 0;
}
