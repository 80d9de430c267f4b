/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chooses the algorithm of a new connection: a random number selects an entry in the row of its destination.
 * The first of these rules that applies decides:
 *
 *     set by an application or a route ──► override of the prefix ──► private address ──► choice of the client's other
 *     connections ──► row of the prefix ──► row of the network namespace
 *
 * An override `data_center` only permits ECN and skips the rule about private addresses.
 *
 * Each decision has a reason (enum record_reason), which is counted and stored with the connection.
 *
 * In the command `record`, `tune.is_on` is a constant 0, and the verifier removes this code from the program.
 */
#ifndef THALWEG_FLOW_CHOOSE_H
#define THALWEG_FLOW_CHOOSE_H

#include "flow.h"
#include "tune_choice.h"

const volatile struct tune_settings tune SEC(".rodata.tune") = {};

ARRAY(heartbeat, 1, struct tune_heartbeat);

/* Rows of destinations. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct tune_key);
	__type(value, struct tune_row);
} rows SEC(".maps");

/* Rows of network namespaces, for destinations without a row. Without either row, no algorithm is chosen. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, u32);
	__type(value, struct tune_row);
} netns_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct tune_prefix);
	__type(value, u32);
} overrides SEC(".maps");

PERCPU_ARRAY(decisions, 1, struct tune_decisions);

/*
 * A peer's simultaneous connections share one choice, because treated and held-out connections at one bottleneck would
 * affect each other. Of two peers with the same slot, one is not tracked.
 */
struct client {
	u64 tag;
	u64 drawn; /* time of the draw in microseconds, with the result in the lowest 8 bits */
	s32 open;
	u32 unused[3];
};

ARRAY(clients, 1, struct client);

/* Result of a draw: RECORD_TREATED, RECORD_HELD_OUT or RECORD_NO_CHANCES, and an arm or NO_ARM. */
#define DRAWN(reason, arm) ((reason) | (arm) << 2)
#define REASON_OF(drawn) ((drawn) & 3)
#define ARM_OF(drawn) ((drawn) >> 2 & 15)
#define NO_ARM 15

/* The draw was made for a connection that is not yet established (ECN); it is valid for AHEAD_US. */
#define IS_AHEAD (1 << 6)
#define AHEAD_US 3000000

/* Maximum time by which the draw that a connection shares may be later than its opening. */
#define AT_ONCE_US 100000

static __always_inline u32 netns_of(const struct tune_key *peer)
{
	return peer->scope;
}

static __always_inline bool is_ipv4(const struct tune_key *peer)
{
	return (peer->scope >> 32 & 0xffff) == 4;
}

/* Combines two adjacent words to eight bytes in memory order (little-endian). */
static __always_inline u64 two_words(u32 first, u32 second)
{
	/* Two reads: the kernel rejects programs that read eight bytes of the context at once. */
	barrier_var(first);
	return (u64)second << 32 | first;
}

/*
 * Sets the peer's IPv4 address. Members are written with the width at which they are read, eight bytes: after two
 * writes of four bytes, a read of eight bytes stalls until the writes have reached the cache.
 */
static __always_inline void set_ipv4(struct tune_key *peer, u32 netns, u32 address)
{
	peer->address[0] = two_words(address, 0);
	peer->address[1] = 0;
	peer->scope = TUNE_SCOPE(netns, 4, 0);
}

/* Sets the peer's IPv6 address. IPv4-mapped addresses are stored as IPv4. */
static __always_inline void set_ipv6(struct tune_key *peer, u32 netns, u64 high, u64 low)
{
	u64 bits = __builtin_bswap64(low);

	if (!high && bits >> 32 == 0xffff) {
		set_ipv4(peer, netns, __builtin_bswap32(bits));
		return;
	}
	peer->address[0] = high;
	peer->address[1] = low;
	peer->scope = TUNE_SCOPE(netns, 6, 0);
}

static __always_inline void peer_of(struct tune_key *peer, struct tcp_sock *tp)
{
	struct sock *sk = sock_of(tp);
	u32 netns = sk->__sk_common.skc_net.net->ns.inum;

	if (sk->__sk_common.skc_family == AF_INET) {
		set_ipv4(peer, netns, sk->__sk_common.skc_daddr);
		return;
	}
	set_ipv6(peer, netns, eight_at(&sk->__sk_common.skc_v6_daddr.in6_u.u6_addr8[0]),
		 eight_at(&sk->__sk_common.skc_v6_daddr.in6_u.u6_addr8[8]));
}

/* Returns the reason why a peer's address is excluded without --private; 0 if it is not excluded. */
static __always_inline u32 reason_of_address(const struct tune_key *peer)
{
	u64 high = __builtin_bswap64(peer->address[0]), low;
	u32 v4 = high >> 32;

#define IS_IN_V4(first, bits, reason)                                                                                  \
	if (v4 >> (32 - (bits)) == (first) >> (32 - (bits)))                                                           \
		return reason;
#define IS_IN_V6(first, last, bits, reason)                                                                            \
	if ((bits) <= 64 ? high >> (64 - (bits)) % 64 == (first##ULL) >> (64 - (bits)) % 64 :                          \
			   high == (first##ULL) && low >> (128 - (bits)) % 64 == (last##ULL) >> (128 - (bits)) % 64)   \
		return reason;

	if (is_ipv4(peer)) {
		TUNE_RANGES_V4(IS_IN_V4)
		return 0;
	}
	low = __builtin_bswap64(peer->address[1]);
	TUNE_RANGES_V6(IS_IN_V6)
	return 0;
}

/* Keeps the first `bits` bits of eight bytes in network order. */
static __always_inline u64 first_bits(u64 word, s32 bits)
{
	if (bits <= 0)
		return 0;
	return bits >= 64 ? word : word & __builtin_bswap64(~0ULL << (64 - bits));
}

static __always_inline u32 override_of(const struct tune_key *peer)
{
	struct tune_prefix prefix = {
		.bits = 8 + (is_ipv4(peer) ? 32 : 128),
		.family = is_ipv4(peer) ? 4 : 6,
	};
	u32 *found;

	__builtin_memcpy(prefix.address, peer->address, sizeof(prefix.address));
	found = bpf_map_lookup_elem(&overrides, &prefix);
	return found ? *found : ~0U;
}

static __always_inline struct tune_row *row_of(const struct tune_key *peer)
{
	u32 netns = netns_of(peer);
	struct tune_row *row;
	struct tune_key key;

#pragma unroll
	for (int at = 0; at < TUNE_LENGTHS; at++) {
		u32 length = is_ipv4(peer) ? tune.lengths_v4[at] : tune.lengths_v6[at];

		/* These are constants after loading, so the verifier removes unused branches. */
		if (!tune.lengths_v4[at] && !tune.lengths_v6[at])
			break;
		if (!length)
			break;
		key.scope = peer->scope | TUNE_SCOPE(0, 0, length);
		key.address[0] = first_bits(peer->address[0], length);
		key.address[1] = first_bits(peer->address[1], (s32)length - 64);
		row = bpf_map_lookup_elem(&rows, &key);
		if (row)
			return row;
	}
	return bpf_map_lookup_elem(&netns_rows, &netns);
}

/*
 * Returns the reason if an application or a route chose the algorithm; 0 if it is the default. `congctl lock` of a
 * route takes precedence over an application. An algorithm that differs from the namespace's default and was not set
 * by setsockopt counts as set by a route.
 */
static __always_inline u32 chosen_already(struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;

	if (BPF_CORE_READ_BITFIELD(icsk, icsk_ca_dst_locked))
		return RECORD_ROUTE;
	if (BPF_CORE_READ_BITFIELD(icsk, icsk_ca_setsockopt))
		return RECORD_APPLICATION;
	if ((u64)icsk->icsk_ca_ops != (u64)sock_of(tp)->__sk_common.skc_net.net->ipv4.tcp_congestion_control)
		return RECORD_ROUTE;
	return 0;
}

/* Draws an arm from a row with a random number. For connections without ECN, arms that need ECN are not drawn. */
static __always_inline u32 draw(const struct tune_key *peer, bool is_outgoing, bool has_ecn, u32 number)
{
	const struct tune_draw *thresholds;
	u32 holdout, plain = tune.plain_arms;
	struct tune_row *row;

	row = row_of(peer);
	if (!row)
		return DRAWN(RECORD_NO_CHANCES, NO_ARM);
	thresholds = is_outgoing ? &row->outgoing : &row->incoming;
	holdout = thresholds->holdout;
	if (holdout == ~0U || number < holdout)
		return DRAWN(RECORD_HELD_OUT, NO_ARM);
	if (!has_ecn && plain < tune.arms) {
		u32 below = plain ? thresholds->below[(plain - 1) & (TUNE_ARMS - 1)] : 0;

		/* All remaining arms have probability 0: the connection keeps the default. */
		if (below <= holdout)
			return DRAWN(RECORD_TREATED, NO_ARM);
		number = holdout + (u64)(number - holdout) * (below - holdout) / ((1ULL << 32) - holdout);
	}
#pragma unroll
	for (u32 arm = 0; arm < TUNE_ARMS; arm++) {
		if (arm >= tune.arms)
			break;
		if (number < thresholds->below[arm])
			return DRAWN(RECORD_TREATED, arm);
	}
	return DRAWN(RECORD_TREATED, thresholds->last & (TUNE_ARMS - 1));
}

static __always_inline u64 tag_of(const struct tune_key *peer)
{
	return mixed(mixed(peer->address[0] ^ peer->scope << 32) ^ (peer->address[1] + (peer->scope >> 32)));
}

/*
 * Kind of a draw: for a connection whose close will be reported, for one whose close will not, or for a future one.
 */
enum drawing { FOR_COUNTED, FOR_OTHERS, AHEAD };

/*
 * Returns the draw of the peer's other open connections, with RECORD_SHARED, one made ahead, or a new one. If the
 * connection is counted in `open` of its client, the result has FLOW_IS_COUNTED and the client's slot.
 */
static __always_inline u32 draw_together(const struct tune_key *peer, bool is_outgoing, bool has_ecn, u64 now_us,
					 enum drawing drawing)
{
	u32 drawn, was, is_shared, place, counted, number;
	u64 tag, before, after;
	struct client *client;
	s64 age_us;
	bool lasts;

	tag = tag_of(peer);
	/* A hash of the peer and the time, because bpf_get_prandom_u32 takes longer. */
	number = mixed(tag ^ now_us);
	place = tag & tune.client_mask;
	counted = FLOW_IS_COUNTED | place << FLOW_CLIENT_SHIFT;
	client = bpf_map_lookup_elem(&clients, &place);
	if (!client)
		return DRAWN(RECORD_NO_CHANCES, NO_ARM);
	before = client->drawn;
	was = before & 0xff;
	/* Another CPU's clock may be slightly ahead. */
	age_us = now_us - (before >> 8);
	lasts = age_us < (s64)tune.together_us && (client->open > 0 || (was & IS_AHEAD && age_us < AHEAD_US));
	/* An earlier draw cannot be used if its arm needs ECN and this connection has none. */
	if (lasts && client->tag == tag && (has_ecn || REASON_OF(was) != RECORD_TREATED || ARM_OF(was) == NO_ARM ||
					    ARM_OF(was) < tune.plain_arms)) {
		is_shared = client->open > 0 ? RECORD_SHARED : 0;
		if (drawing != FOR_COUNTED)
			return (was & ~IS_AHEAD) | is_shared;
		if (was & IS_AHEAD)
			client->drawn = before & ~(u64)IS_AHEAD;
		__sync_fetch_and_add(&client->open, 1);
		return (was & ~IS_AHEAD) | is_shared | counted;
	}
	drawn = draw(peer, is_outgoing, has_ecn, number);
	if (lasts || drawing == FOR_OTHERS)
		return drawn;
	after = now_us << 8 | drawn | (drawing == AHEAD ? IS_AHEAD : 0);
	if (__sync_val_compare_and_swap(&client->drawn, before, after) == before) {
		client->tag = tag;
		client->open = drawing == AHEAD ? 0 : 1;
		return drawn | (drawing == AHEAD ? 0 : counted);
	}
	/* Another CPU has made a draw meanwhile, possibly for the same peer. */
	if (client->tag != tag)
		return drawn;
	drawn = (client->drawn & 0xff & ~IS_AHEAD) | RECORD_SHARED;
	if (drawing != FOR_COUNTED)
		return drawn;
	__sync_fetch_and_add(&client->open, 1);
	return drawn | counted;
}

/*
 * Removes a connection from the count of its client, unless a newer draw has restarted the count, for this client or
 * for another one with the same slot.
 */
static __always_inline void leave_client(struct flow *flow)
{
	struct client *client;
	u32 number;

	number = flow->flags >> FLOW_CLIENT_SHIFT;
	flow->flags &= ~FLOW_IS_COUNTED;
	client = bpf_map_lookup_elem(&clients, &number);
	/* The draw may be slightly later, for a simultaneous connection. */
	if (client && flow->opened_us + AT_ONCE_US >= client->drawn >> 8)
		__sync_fetch_and_add(&client->open, -1);
}

static __always_inline bool is_alive(const struct tune_heartbeat *latest, u64 now_us)
{
	return now_us < latest->last_us + latest->grace_us;
}

static __always_inline bool differs_from(struct tcp_sock *tp, u32 arm)
{
	u64 name[2];

	arm &= TUNE_ARMS - 1;
	cc_name(tp, name);
	return name[0] != tune.names[2 * arm] || name[1] != tune.names[2 * arm + 1];
}

static __always_inline bool set_arm(struct bpf_sock_ops *ctx, struct tcp_sock *tp, u32 arm)
{
	u64 name[2];

	arm &= TUNE_ARMS - 1;
	if (!differs_from(tp, arm))
		return true;
	name[0] = tune.names[2 * arm];
	name[1] = tune.names[2 * arm + 1];
	return !bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
}

static __always_inline u32 as_flags(u32 reason, u32 arm)
{
	return reason << RECORD_REASON_SHIFT | arm << RECORD_ARM_SHIFT;
}

static __always_inline u32 reason_of(u32 flags)
{
	return flags >> RECORD_REASON_SHIFT & 15;
}

static __always_inline void count_decision(u32 flags)
{
	struct tune_decisions *here;
	u32 only = 0;

	here = bpf_map_lookup_elem(&decisions, &only);
	if (here)
		__sync_fetch_and_add(&here->connections[flags >> RECORD_REASON_SHIFT & (TUNE_DECISIONS - 1)], 1);
}

/*
 * Chooses and sets the algorithm of a connection that was just established; returns flags of its flow. `counts` is
 * whether its close will be reported.
 */
static __always_inline u32 choose(struct bpf_sock_ops *ctx, struct tcp_sock *tp, bool is_outgoing, bool counts)
{
	u32 only = 0, word = ~0U, drawn, reason, flags = 0;
	struct tune_heartbeat *latest;
	struct tune_key peer;
	bool has_ecn = false;
	u64 now_us;

	now_us = tp->tcp_mstamp;
	latest = bpf_map_lookup_elem(&heartbeat, &only);
	/* Without recent heartbeats of the daemon, no algorithm is chosen. */
	if (!latest || !is_alive(latest, now_us))
		return 0;
	reason = chosen_already(tp);
	if (reason)
		return as_flags(reason, NO_ARM);
	peer_of(&peer, tp);
	if (latest->overrides)
		word = override_of(&peer);
	if (word == TUNE_KEEP)
		return as_flags(RECORD_KEEP, NO_ARM);
	if (word == ~0U && !tune.takes_private) {
		reason = reason_of_address(&peer);
		if (reason)
			return as_flags(reason, NO_ARM);
	}
	if (word >= TUNE_ARM && word != ~0U) {
		/* Overrides by the operator are not part of the comparison. */
		drawn = DRAWN(0, (word - TUNE_ARM) & (TUNE_ARMS - 1));
		reason = RECORD_OVERRIDE;
	} else {
		if (word == TUNE_DATA_CENTER)
			has_ecn = tp->ecn_flags & TCP_ECN_OK;
		drawn = draw_together(&peer, is_outgoing, has_ecn, now_us, counts ? FOR_COUNTED : FOR_OTHERS);
		reason = REASON_OF(drawn);
		flags = drawn & (RECORD_SHARED | FLOW_IS_COUNTED | FLOW_CLIENT);
	}
	if (tune.sets && ARM_OF(drawn) != NO_ARM && !set_arm(ctx, tp, ARM_OF(drawn)))
		reason = RECORD_REFUSED;
	return as_flags(reason, ARM_OF(drawn)) | flags;
}

/*
 * Returns whether to request or accept ECN, which is only used for overrides `data_center`. The active side draws the
 * algorithm before its SYN, and stores the result. The passive side accepts what the peer requests.
 */
static __noinline int answer_ecn(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	struct tune_heartbeat *latest;
	struct tune_key peer;
	u32 only = 0, drawn;
	struct tcp_sock *tp;
	u64 now_us;

	latest = bpf_map_lookup_elem(&heartbeat, &only);
	now_us = bpf_ktime_get_ns() / 1000;
	if (!latest || !latest->overrides || !is_alive(latest, now_us))
		return 0;
	tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	if (!tp) {
		/* On the passive side the connection does not exist yet, so no algorithm is drawn. */
		if (ctx->family == AF_INET)
			set_ipv4(&peer, 0, ctx->remote_ip4);
		else
			set_ipv6(&peer, 0, two_words(ctx->remote_ip6[0], ctx->remote_ip6[1]),
				 two_words(ctx->remote_ip6[2], ctx->remote_ip6[3]));
		return override_of(&peer) == TUNE_DATA_CENTER;
	}
	peer_of(&peer, tp);
	if (chosen_already(tp) || override_of(&peer) != TUNE_DATA_CENTER)
		return 0;
	drawn = draw_together(&peer, true, true, now_us, AHEAD);
	return REASON_OF(drawn) == RECORD_TREATED && ARM_OF(drawn) != NO_ARM && ARM_OF(drawn) >= tune.plain_arms;
}

/* The rule of bpftune: a connection with many losses switches to another algorithm immediately. */
static __always_inline void on_retransmit(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct flow *flow)
{
	u32 arms = 15 << RECORD_ARM_SHIFT;

	if (reason_of(flow->flags) != RECORD_TREATED)
		return;
	if (tp->total_retrans <= tp->segs_out >> (tune.loss_shift & 31))
		return;
	if (set_arm(ctx, tp, tune.loss_arm))
		flow->flags = (flow->flags & ~arms) | tune.loss_arm << RECORD_ARM_SHIFT;
	else
		count_decision(as_flags(RECORD_REFUSED, tune.loss_arm & (TUNE_ARMS - 1)));
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_RETRANS_CB_FLAG);
}

#endif
