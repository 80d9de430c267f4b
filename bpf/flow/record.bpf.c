// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records the TCP connections of a cgroup, and their transfers. flow.h has the state of a connection and its update,
 * emit.h writes events, record_event.h defines them.
 *
 * Hooks: sock_ops on a cgroup, the iterator over TCP sockets, and a program that the agent runs to search the table of
 * connections. Kernel: 6.1 or newer, with BTF. Without `tune`, the programs change only the connection's callback flags
 * for round trips and changes of state, which other programs may also set.
 *
 * With `tune`, the programs also choose the algorithm of a new connection (choose.h).
 */
#include "flow.h"
#include "emit.h"
#include "table.h"
#include "choose.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline u64 cookie_of(struct tcp_sock *tp)
{
	return sock_of(tp)->__sk_common.skc_cookie.counter;
}

#define CALLS (BPF_SOCK_OPS_STATE_CB_FLAG | BPF_SOCK_OPS_RTT_CB_FLAG)

/* Cookies are assigned in sequence, and are hashed so that the sample is not biased. */
static __always_inline bool is_sampled(u64 cookie)
{
	u32 one_in = settings.sample_one_in;

	if (one_in <= 1)
		return true;
	return (u32)(mixed(cookie) >> 32) % one_in == 0;
}

static __always_inline struct flow *begin(struct tcp_sock *tp, u64 cookie, u32 flags, u64 now_us)
{
	struct flow *flow = take_place(cookie);

	if (!flow) {
		COUNT(lost_connections);
		return NULL;
	}
	flow->opened_us = now_us;
	flow->row_us = now_us;
	flow->flags = flags;
	flow->netns = sock_of(tp)->__sk_common.skc_net.net->ns.inum;
	return flow;
}

static __always_inline void on_opening(struct bpf_sock_ops *ctx, struct bpf_sock *sk, u32 flags)
{
	u64 cookie = bpf_get_socket_cookie(ctx);
	struct tcp_sock *tp = tcp_sock_of(sk);
	u32 calls = CALLS, choice = 0;
	struct flow *flow = NULL;

	if (!tp)
		return;
	/* tcp_mstamp is the time of the packet that has just arrived. Data in a SYN belongs to the first transfer. */
	if (is_sampled(cookie))
		flow = begin(tp, cookie, flags | FLOW_IS_NEW, tp->tcp_mstamp);
	else
		COUNT(unsampled);
	if (tune.is_on) {
		choice = choose(ctx, tp, flags, flow);
		count_decision(choice);
		if (tune.loss_shift && tune.sets && reason_of(choice) == RECORD_TREATED)
			calls |= BPF_SOCK_OPS_RETRANS_CB_FLAG;
	}
	if (!flow)
		return;
	flow->flags |= choice;
	flow->last.at_us = flow->opened_us;
	flow->last.jiffies = bpf_jiffies64();
	/* Retransmissions of the handshake do not belong to a transfer. */
	flow->last.retransmits = flow->begin.retransmits = tp->total_retrans;
	cc_name(tp, flow->cc_at_open);
	flow->handshake_rtt_us = tp->srtt_us >> 3;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | calls);
	COUNT(opened);
}

/* Ends the transfer before an idle period, and begins the next. */
static __always_inline void divide(struct flow *flow, struct tcp_sock *tp, const struct sums *now,
				   const struct pause *pause)
{
	u32 retransmits = now->retransmits - flow->last.retransmits;
	u32 busy = now->busy - flow->last.busy;
	u64 since = (now->at_us - pause->to_us) / settings.jiffy_us;
	struct sums edge = flow->last;

	/* Retransmissions since the last sample belong to the transfer that has ended, new data to the next one. */
	edge.at_us = pause->from_us;
	edge.acked_bytes = pause->acked_bytes;
	edge.sent_bytes += now->retransmitted_bytes - flow->last.retransmitted_bytes;
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

/* Updates marks and transfers: an idle period since the last sample may have ended a transfer. */
static __noinline int look_back(struct flow *flow, struct tcp_sock *tp, const struct sums *now, u64 resumed_us)
{
	struct pause pause;

	find_pause(&pause, flow, now, resumed_us);
	pass_marks(flow, now, &pause);
	if (pause.idle_us >= settings.idle_gap_us || !(flow->flags & FLOW_IN_TRANSFER))
		divide(flow, tp, now, &pause);
	return 0;
}

/* Updates marks and transfers. Usually the queue was not empty since the last sample, or this is the first sample. */
static __always_inline void advance(struct flow *flow, struct tcp_sock *tp, const struct sums *now, u64 resumed_us)
{
	u32 flags = flow->flags;

	if (is_mark_due(flow, now)) {
		look_back(flow, tp, now, resumed_us);
	} else if (flags & FLOW_IS_NEW) {
		flow->begin.at_us = resumed_us > flow->opened_us ? resumed_us : flow->opened_us;
		flow->flags = flags | FLOW_IN_TRANSFER;
	} else if (!(flags & FLOW_IN_TRANSFER) || idle_us(flow, now)) {
		look_back(flow, tp, now, resumed_us);
	}
	flow->flags &= ~FLOW_IS_NEW;
}

static __always_inline void on_round_trip(struct flow *flow, struct tcp_sock *tp, const struct sums *now,
					  u32 reported_rtt_us)
{
	/* Linux 6.10 and newer pass the sample. */
	u32 rtt_us = reported_rtt_us ? reported_rtt_us : tp->rack.rtt_us;
	/* After an idle period, this is still the time at which the first packet was sent. */
	u64 resumed_us = tp->delivered_mstamp;

	if (rtt_us && resumed_us > now->at_us - rtt_us)
		resumed_us = now->at_us - rtt_us;
	note_rtt(flow, tp, rtt_us);
	note_rate(flow, tp);
	judge(flow, tp);
	advance(flow, tp, now, resumed_us);
	note_rtt_of_transfer(flow, tp, rtt_us);
	sample(flow, tp, now);
}

/* Stores the marks that a connection passed in its final idle period. */
static __noinline int pass_last_marks(struct flow *flow, const struct sums *now, u64 end_us)
{
	struct pause pause = { .idle_us = 1, .from_us = end_us, .acked_bytes = now->acked_bytes };

	pass_marks(flow, now, &pause);
	return 0;
}

/* Stores the end of the last transfer until the connection closes. */
static __always_inline void finish(struct flow *flow, struct tcp_sock *tp, const struct sums *now, bool is_all_acked)
{
	u64 end_us = now->at_us;

	if (is_all_acked) {
		/* The time of the last ACK, because nothing was sent since. */
		end_us = tp->delivered_mstamp > flow->last.at_us ? tp->delivered_mstamp : flow->last.at_us;
		if (is_mark_due(flow, now))
			pass_last_marks(flow, now, end_us);
		flow->flags |= FLOW_IS_COMPLETE;
	} else {
		/* The first packet after an idle period may not be acknowledged yet. */
		advance(flow, tp, now, tp->delivered_mstamp);
	}
	flow->last = *now;
	flow->last.at_us = end_us;
	flow->flags |= FLOW_IS_OVER;
}

static __always_inline void on_close(struct flow *flow, struct tcp_sock *tp, const struct sums *now, u32 state)
{
	/* The last transfer has ended at `last`: nothing was acknowledged after it. */
	if (is_mark_due(flow, now))
		pass_last_marks(flow, now, flow->last.at_us);
	emit_close(tp, flow, now, state);
}

/*
 * Returns the time of the close. An application or a timer may close a connection long after its last packet. If that
 * packet arrived in this jiffy, its time is used, because reading the clock is expensive.
 */
static __always_inline u64 closed_us(struct tcp_sock *tp)
{
	return tp->rcv_tstamp == (u32)bpf_jiffies64() ? tp->tcp_mstamp : bpf_ktime_get_ns() / 1000;
}

/* Handles an event of an open connection: a round trip, or a change of state (`is_of_interest`). */
static __always_inline void on_event(struct bpf_sock_ops *ctx, struct bpf_sock *sk, bool is_round_trip)
{
	bool is_close = !is_round_trip && ctx->args[1] == TCP_CLOSE;
	struct tcp_sock *tp = tcp_sock_of(sk);
	struct place place;
	struct flow *flow;
	bool is_all_acked;
	struct sums now;
	u64 now_us, cookie;
	u32 state;

	if (!tp)
		return;
	is_all_acked = tp->snd_una == tp->write_seq;
	/* Data before the FIN is still in flight: the transfer ends when that data is acknowledged. */
	if (!is_round_trip && !is_close && !is_all_acked)
		return;
	cookie = cookie_of(tp);
	if (!find(&place, cookie))
		return;
	flow = place.flow;
	/* After the last transfer, only the FIN is in flight. */
	if (!is_close && flow->flags & FLOW_IS_OVER)
		return;
	now_us = is_close ? closed_us(tp) : tp->tcp_mstamp;
	/* The kernel has not changed the state yet. */
	state = sock_of(tp)->__sk_common.skc_state;
	sum_up(&now, tp, flow->flags, state, now_us);
	if (is_round_trip)
		on_round_trip(flow, tp, &now, ctx->args[0]);
	else if (!(flow->flags & FLOW_IS_OVER))
		finish(flow, tp, &now, is_all_acked);
	if (!is_round_trip && flow->flags & FLOW_IS_COUNTED && tune.is_on)
		leave_client(flow);
	if (is_close) {
		on_close(flow, tp, &now, state);
		leave(&place, cookie);
	}
}

/* Returns whether a change of state matters: one that sends a FIN and so may end the last transfer, or the close. */
static __always_inline bool is_of_interest(u32 old, u32 new)
{
	return new == TCP_FIN_WAIT1 || new == TCP_LAST_ACK || (new == TCP_CLOSE && old != TCP_CLOSE);
}

/* Handles the callbacks that only `tune` uses. */
static __always_inline void on_question(struct bpf_sock_ops *ctx, u32 op)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct place place;

	if (op == BPF_SOCK_OPS_NEEDS_ECN) {
		if (tune.sets && tune.plain_arms < tune.arms && answer_ecn(ctx, sk))
			ctx->reply = 1;
	} else if (tune.loss_shift) {
		tp = sk ? tcp_sock_of(sk) : NULL;
		if (tp && find(&place, cookie_of(tp)))
			on_retransmit(ctx, tp, place.flow);
	}
}

SEC("sockops")
int record_flows(struct bpf_sock_ops *ctx)
{
	bool is_round_trip, is_outgoing;
	struct bpf_sock *sk;
	u32 op = ctx->op;

	is_round_trip = op == BPF_SOCK_OPS_RTT_CB;
	is_outgoing = op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB;
	if (is_round_trip || (op == BPF_SOCK_OPS_STATE_CB && is_of_interest(ctx->args[0], ctx->args[1]))) {
		sk = ctx->sk;
		if (sk)
			on_event(ctx, sk, is_round_trip);
	} else if (is_outgoing || op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		sk = ctx->sk;
		if (sk)
			on_opening(ctx, sk, is_outgoing ? FLOW_OUTGOING : 0);
	} else if (op == BPF_SOCK_OPS_NEEDS_ECN || op == BPF_SOCK_OPS_RETRANS_CB) {
		if (tune.is_on)
			on_question(ctx, op);
	}
	/* 1 keeps the result of other programs. */
	return 1;
}

/* Purposes of a scan, as bits. A scan that shows all connections writes snapshots, and no interim rows. */
enum { SCAN_SHOWS_ALL = 1 };

struct scan {
	u32 purpose;
	u32 number; /* number of the scan, from 1 on */
	u32 is_complete; /* whether it has missed no network namespace, as far as known */
	u32 unused;
	u64 cgroup; /* id of the recorded cgroup, which changes if the cgroup is removed and recreated */
};

ARRAY(scan, 1, struct scan);

/* Buffer for an event of a scan, which is too large for the stack. One scan runs at a time. */
PERCPU_ARRAY(scratch, 1, struct record_event);

/* Returns whether the connection's cgroup is the recorded one, or below it. */
static __always_inline bool is_in_cgroup(struct tcp_sock *tp, u64 recorded)
{
	u32 level = settings.cgroup_level;
	struct cgroup *cgroup = sock_of(tp)->sk_cgrp_data.cgroup, *ancestor = NULL;

	if (!level)
		return true;
	if (cgroup->level < (int)level)
		return false;
	bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
			      (void *)cgroup + bpf_core_field_offset(struct cgroup, ancestors) + level * sizeof(ancestor));
	return BPF_CORE_READ(ancestor, kn, id) == recorded;
}

/* Enables the callbacks from an iterator, which some kernels (such as 6.1) do not permit. */
static __always_inline bool ask_for_calls(struct tcp_sock *tp)
{
	int calls = tp->bpf_sock_ops_cb_flags | CALLS;

	return !bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &calls, sizeof(calls));
}

/* Starts to record a connection that is not in the table, such as one that was open before recording began. */
static __always_inline struct flow *join(struct tcp_sock *tp, u64 recorded, u32 state, u64 now_us)
{
	struct flow *flow;
	struct sums now;
	u64 cookie;
	u32 flags;

	if (!is_in_cgroup(tp, recorded))
		return NULL;
	cookie = bpf_get_socket_cookie(tp);
	if (!is_sampled(cookie))
		return NULL;
	flags = FLOW_JOINED;
	if (!ask_for_calls(tp))
		flags |= FLOW_BLIND;
	flow = begin(tp, cookie, flags, now_us);
	if (!flow)
		return NULL;
	sum_up(&now, tp, flags, state, now_us);
	sample(flow, tp, &now);
	flow->begin = now;
	/* A transfer may be in progress, whose start is unknown. */
	flow->begin.at_us = 0;
	if (flow->covered_bytes > now.acked_bytes)
		flow->flags |= FLOW_IN_TRANSFER;
	/* The time of the opening is unknown, so there are no marks. */
	flow->marks = RECORD_MARKS;
	COUNT(joined);
	return flow;
}

SEC("iter/tcp")
int record_scan(struct bpf_iter__tcp *ctx)
{
	u64 now_us = bpf_ktime_get_ns() / 1000;
	struct sock_common *common = ctx->sk_common;
	struct record_event *event;
	struct scan *this_scan;
	struct tcp_sock *tp;
	struct place place;
	struct pause pause;
	struct flow *flow;
	struct sums now;
	u32 only = 0, state;
	bool is_due, shows_all;

	if (!common)
		return 0;
	/* NULL for request sockets, and in TIME-WAIT. */
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	state = sock_of(tp)->__sk_common.skc_state;
	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT && !has_sent_fin(state))
		return 0;
	this_scan = bpf_map_lookup_elem(&scan, &only);
	event = bpf_map_lookup_elem(&scratch, &only);
	if (!this_scan || !event)
		return 0;
	flow = find(&place, cookie_of(tp)) ? place.flow : join(tp, this_scan->cgroup, state, now_us);
	/* `opened_us` is 0 while another CPU initialises the connection. */
	if (!flow || !flow->opened_us)
		return 0;
	flow->scan = this_scan->number;
	flow->rtt_min_us = smallest_rtt_us(flow, tp);
	/* Another program may have overwritten the callback flags. */
	if (!(flow->flags & FLOW_BLIND) && (tp->bpf_sock_ops_cb_flags & CALLS) != CALLS && !ask_for_calls(tp))
		flow->flags |= FLOW_BLIND;
	shows_all = this_scan->purpose & SCAN_SHOWS_ALL;
	is_due = !shows_all && now_us - flow->row_us >= settings.interim_us;
	if (!is_due && !shows_all && !(flow->flags & FLOW_BLIND))
		return 0;

	sum_up(&now, tp, flow->flags, state, now_us);
	find_pause(&pause, flow, &now, tp->snd_una == tp->write_seq ? now_us : tp->delivered_mstamp);
	pass_marks(flow, &now, &pause);
	event->kind = is_due ? RECORD_INTERIM : RECORD_SNAPSHOT;
	fill_connection(event, tp, flow, &now, state);
	fill_histogram(event, flow);
	/* If the buffer is full, the kernel repeats the call for the same connection. */
	if (!bpf_seq_write(ctx->meta->seq, event, sizeof(*event)) && is_due)
		flow->row_us = now_us;
	return 0;
}

/* Network namespaces, and the last scan that entered them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, u32);
	__type(value, u32);
} namespaces SEC(".maps");

/* Minimum number of consecutive scans that do not find a connection before it counts as closed. */
#define SCANS_MISSED 2

/* Returns whether a tracked connection has closed, by the result of the last scan. */
static __always_inline bool is_gone(struct flow *flow, const struct scan *last)
{
	u32 *visited, netns;

	/* The connection may have opened during that scan: the scan after the next decides. */
	if (!flow->scan) {
		flow->scan = last->number;
		return false;
	}
	if (last->number - flow->scan < SCANS_MISSED)
		return false;
	/* Complete scans find the connection if it is open; its namespace may no longer exist. */
	if (flow->flags & FLOW_BLIND && last->is_complete)
		return true;
	netns = flow->netns;
	visited = bpf_map_lookup_elem(&namespaces, &netns);
	return visited && *visited == last->number;
}

/*
 * Reports a closed connection whose close the kernel did not report, because callbacks could not be enabled or another
 * program had cleared them. Of its endpoints, only the network namespace is known. Returns false if the queue is full.
 */
static __always_inline bool report_gone(const struct flow *flow, u64 cookie)
{
	struct reserved reserved;
	struct record_event *event = reserve(&reserved, sizeof(*event));

	if (!event)
		return false;
	__builtin_memset(event, 0, sizeof(*event));
	event->kind = RECORD_GONE;
	event->connection = cookie;
	event->end_us = flow->last.at_us;
	event->transfer = flow->transfer;
	event->netns = flow->netns;
	event->cc_at_open[0] = flow->cc_at_open[0];
	event->cc_at_open[1] = flow->cc_at_open[1];
	fill_kept(event, flow, &flow->last);
	fill_histogram(event, flow);
	submit(&reserved);
	return true;
}

struct search {
	struct scan last;
	u32 unreported; /* number of closed connections that did not fit into the queue */
};

/* Checks one slot; reports and frees it if its connection has closed. */
static __always_inline void visit(struct search *search, const struct place *place, u64 cookie)
{
	if (!cookie || !is_gone(place->flow, &search->last))
		return;
	if (report_gone(place->flow, cookie))
		leave(place, cookie);
	else
		search->unreported++;
}

static long visit_in_sets(struct bpf_map *map, u32 *number, struct flow *flow, struct search *search)
{
	struct place place = { .flow = flow };
	u32 set_number = *number / WAYS;
	struct set *set = bpf_map_lookup_elem(&sets, &set_number);

	if (!set)
		return 1;
	place.cookie = &set->cookies[*number % WAYS];
	visit(search, &place, *place.cookie);
	return 0;
}

static long visit_more(struct bpf_map *map, u64 *cookie, struct flow *flow, struct search *search)
{
	struct place place = { .flow = flow };

	visit(search, &place, *cookie);
	return 0;
}

/*
 * Searches all slots for closed connections, and returns the number of those that it could not report. It is not a map
 * iterator, because some kernels reject map iterators for all users (EPERM).
 */
SEC("syscall")
int record_search(void *unused)
{
	struct search search = {};
	u32 only = 0;
	struct scan *last = bpf_map_lookup_elem(&scan, &only);

	if (!last)
		return 0;
	search.last = *last;
	bpf_for_each_map_elem(&flows, visit_in_sets, &search, 0);
	bpf_for_each_map_elem(&more_flows, visit_more, &search, 0);
	return search.unreported;
}
