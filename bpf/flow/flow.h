/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of an open connection, and its update once per round trip.
 *
 * The kernel calls the program at the first RTT sample of data that was sent after the last call, and therefore once
 * per round trip. `covered_bytes` assumes that data acknowledged without a call was sent before the last one.
 *
 * Calls for one connection are far apart in time, so their cost is mostly cache misses. Rare code is therefore in
 * functions that are not inlined, and data about long connections is not accessed for short ones. Frequent code is
 * inlined, because returns are slow with mitigations of speculative execution.
 */
#ifndef THALWEG_FLOW_H
#define THALWEG_FLOW_H

#include "kernel.h"
#include "record_event.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* Declares an array map of `count` entries: shared by all CPUs, or with a copy for each. */
#define ARRAY_OF_TYPE(kind, map, count, entry)                                                                        \
	struct {                                                                                                      \
		__uint(type, kind);                                                                                   \
		__uint(max_entries, count);                                                                           \
		__type(key, u32);                                                                                     \
		__type(value, entry);                                                                                 \
	} map SEC(".maps")
#define ARRAY(map, count, entry) ARRAY_OF_TYPE(BPF_MAP_TYPE_ARRAY, map, count, entry)
#define PERCPU_ARRAY(map, count, entry) ARRAY_OF_TYPE(BPF_MAP_TYPE_PERCPU_ARRAY, map, count, entry)

/* In a separate section, so that the loader needs no offset. */
const volatile struct record_settings settings SEC(".rodata.settings") = {};

/* Counters of a connection at one time. `busy`, `rwnd_limited` and `sndbuf_limited` are in jiffies. */
struct sums {
	u64 at_us;
	u64 acked_bytes;
	u64 sent_bytes;
	u64 retransmitted_bytes;
	u32 segments;
	u32 retransmits;
	u32 busy;
	u32 rwnd_limited;
	u32 sndbuf_limited;
	u32 jiffies;
};

enum flow_flag {
	FLOW_OUTGOING = RECORD_OUTGOING,
	FLOW_JOINED = RECORD_JOINED,
	FLOW_BLIND = RECORD_BLIND,
	FLOW_IN_TRANSFER = 16, /* the transfer that `begin` starts has sent data */
	FLOW_IS_OVER = 32,     /* the last transfer has ended, at `last` */
	FLOW_IS_COMPLETE = 64, /* all bytes of that transfer are acknowledged */
	FLOW_IS_NEW = 128,     /* no data has been acknowledged since the opening */
	/* Bits 8 to 16 hold the decision about its algorithm: RECORD_CHOICE. */
	FLOW_IS_COUNTED = 1 << 17, /* whether it is counted in `open` of its client */
};

/* Slot of its client, if FLOW_IS_COUNTED is set. */
#define FLOW_CLIENT_SHIFT 18
#define FLOW_CLIENT (~0U << FLOW_CLIENT_SHIFT)

/* Number of RTTs that are stored before the histogram is used; a power of two. */
#define FIRST_RTTS 4

/* State of an open connection. Its size matters, because there may be many. */
struct flow {
	u64 opened_us; /* 0: the slot is reserved, but the connection is not initialised yet */
	u64 cc_at_open[2];
	u32 flags;
	u32 netns;
	u32 handshake_rtt_us;
	u32 scan; /* number of the last scan that found the connection, or after which it was first checked; 0: not yet */

	/* Counters at the last call, and the number of bytes up to which ACKs cause no call. */
	struct sums last;
	u64 covered_bytes;

	/* Counters at the start of the transfer. `at_us`: 0 if unknown. */
	struct sums begin;
	u32 transfer;
	u32 transfer_rtt_min_us;
	u32 transfer_rtt_max_us;
	u32 transfer_samples;
	u32 transfer_app_limited;

	u32 marks;
	u64 acked_after_bytes[RECORD_MARKS];

	u64 row_us; /* time of its last interim row; at first, `opened_us` */
	u32 rtt_min_us; /* minimum up to the last scan; 0: no scan yet */
	u32 rtt_max_us;
	u32 samples;
	u32 app_limited;
	u32 rate_max_packets;
	u32 rate_max_interval_us;
	u32 bbr_inflight_bytes; /* bytes in flight, smoothed; 0: no sample */
	u32 bbr_samples;
	u32 bbr_short_samples;
	u32 unused;

	/* The first RTTs, then the histogram. Not zeroed at the start. */
	union {
		u32 first_rtts_us[FIRST_RTTS];
		u8 rtt_histogram[8 * RECORD_RTT_OCTAVES];
	};
};

_Static_assert(sizeof(struct flow) == 408, "agent-record.md and capacity.rs state what an open connection costs");

/* Finalizer of MurmurHash3. */
static __always_inline u64 mixed(u64 number)
{
	number = (number ^ number >> 33) * 0xff51afd7ed558ccdULL;
	number = (number ^ number >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return number ^ number >> 33;
}

/* Linux 6.2 and newer: a cast for the verifier, which generates no code. */
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/* Returns the TCP socket; the context's `sk` is NULL unless it is a full TCP socket. */
static __always_inline struct tcp_sock *tcp_sock_of(struct bpf_sock *sk)
{
	if (bpf_ksym_exists(bpf_rdonly_cast))
		return bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	return bpf_skc_to_tcp_sock(sk);
}

static __always_inline struct sock *sock_of(struct tcp_sock *tp)
{
	return (struct sock *)tp;
}

/*
 * Reads eight bytes of kernel memory at once. Without the barrier the compiler would load single bytes, each with a
 * check of its address.
 */
static __always_inline u64 eight_at(const void *bytes)
{
	barrier_var(bytes);
	return *(const u64 *)bytes;
}

static __always_inline void cc_name(struct tcp_sock *tp, u64 *name)
{
	const struct tcp_congestion_ops___kernels *ops = (void *)((struct inet_connection_sock *)tp)->icsk_ca_ops;

	name[0] = eight_at(&ops->name[0]);
	name[1] = eight_at(&ops->name[8]);
}

static __always_inline bool has_sent_fin(u32 state)
{
	return state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_CLOSING || state == TCP_LAST_ACK;
}

/* Returns the acknowledged payload: `bytes_acked` also counts the SYN of an outgoing connection, and the FIN. */
static __always_inline u64 acked_bytes(struct tcp_sock *tp, u32 flags, u32 state)
{
	u64 others = (flags & FLOW_OUTGOING ? 1 : 0) + (has_sent_fin(state) && tp->snd_una == tp->write_seq ? 1 : 0);
	u64 acked = tp->bytes_acked;

	return acked > others ? acked - others : 0;
}

/* Returns the received payload: `bytes_received` also counts the peer's FIN. */
static __always_inline u64 received_bytes(struct tcp_sock *tp)
{
	u64 received = tp->bytes_received;
	bool has_fin = sock_of(tp)->__sk_common.skc_flags >> bpf_core_enum_value(enum sock_flags, SOCK_DONE) & 1;

	return has_fin && received ? received - 1 : received;
}

static __always_inline void sum_up(struct sums *sums, struct tcp_sock *tp, u32 flags, u32 state, u64 now_us)
{
	u32 jiffies = bpf_jiffies64();
	u32 waits_for = BPF_CORE_READ_BITFIELD(tp, chrono_type);
	u32 running = waits_for == TCP_CHRONO_UNSPEC ? 0 : jiffies - tp->chrono_start;
	u32 rwnd_limited = tp->chrono_stat[TCP_CHRONO_RWND_LIMITED - 1];
	u32 sndbuf_limited = tp->chrono_stat[TCP_CHRONO_SNDBUF_LIMITED - 1];

	sums->at_us = now_us;
	sums->acked_bytes = acked_bytes(tp, flags, state);
	sums->sent_bytes = tp->bytes_sent;
	sums->retransmitted_bytes = tp->bytes_retrans;
	sums->segments = tp->data_segs_out;
	sums->retransmits = tp->total_retrans;
	sums->busy = tp->chrono_stat[TCP_CHRONO_BUSY - 1] + rwnd_limited + sndbuf_limited + running;
	sums->rwnd_limited = rwnd_limited + (waits_for == TCP_CHRONO_RWND_LIMITED ? running : 0);
	sums->sndbuf_limited = sndbuf_limited + (waits_for == TCP_CHRONO_SNDBUF_LIMITED ? running : 0);
	sums->jiffies = jiffies;
}

/* Stores the counters of a call. The next ACK of data that is sent after it causes the next call. */
static __always_inline void sample(struct flow *flow, struct tcp_sock *tp, const struct sums *now)
{
	flow->last = *now;
	flow->covered_bytes = now->acked_bytes + (u32)(tp->snd_nxt - tp->snd_una);
}

/* Returns for how many microseconds the send queue was empty since the last sample, with the resolution of a jiffy. */
static __always_inline u64 idle_us(const struct flow *flow, const struct sums *now)
{
	u32 passed = now->jiffies - flow->last.jiffies;
	u32 busy = now->busy - flow->last.busy;

	return passed > busy ? (u64)(passed - busy) * settings.jiffy_us : 0;
}

/*
 * An idle period since the last sample: the time for which the send queue was empty, its start and end, and the bytes
 * acknowledged at its start.
 */
struct pause {
	u64 idle_us;
	u64 from_us;
	u64 to_us;
	u64 acked_bytes;
};

static __always_inline void find_pause(struct pause *pause, const struct flow *flow, const struct sums *now, u64 to_us)
{
	u64 before = flow->last.at_us;

	pause->idle_us = idle_us(flow, now);
	pause->to_us = to_us < before ? before : to_us > now->at_us ? now->at_us : to_us;
	/* All data was acknowledged at the last sample, or the idle time fills the period: it begins at the sample. */
	if (flow->last.acked_bytes == flow->covered_bytes || pause->to_us - before < pause->idle_us)
		pause->from_us = before;
	else
		pause->from_us = pause->to_us - pause->idle_us;
	pause->acked_bytes = flow->covered_bytes < now->acked_bytes ? flow->covered_bytes : now->acked_bytes;
}

/*
 * Interpolates linearly. `at` is at most 30 s (2^25 us) after `from_us`, so the product fits 64 bits if the values
 * differ by less than 2^39.
 */
static __always_inline u64 between(u64 at, u64 from_us, u64 from, u64 to_us, u64 to)
{
	if (at <= from_us || to <= from)
		return from;
	if (at >= to_us)
		return to;
	return from + (to - from) * (at - from_us) / (to_us - from_us);
}

static __always_inline u64 mark_us(u32 mark)
{
	return mark == 0 ? 1000000 : mark == 1 ? 3000000 : mark == 2 ? 10000000 : 30000000;
}

static __noinline int note_marks(struct flow *flow, const struct sums *now, const struct pause *pause)
{
#pragma unroll
	for (u32 mark = 0; mark < RECORD_MARKS; mark++) {
		u64 at = flow->opened_us + mark_us(mark);
		struct sums *last = &flow->last;

		if (mark < flow->marks || now->at_us < at)
			continue;
		if (!pause->idle_us)
			flow->acked_after_bytes[mark] =
				between(at, last->at_us, last->acked_bytes, now->at_us, now->acked_bytes);
		else
			flow->acked_after_bytes[mark] =
				between(at, last->at_us, last->acked_bytes, pause->from_us, pause->acked_bytes);
		flow->marks = mark + 1;
	}
	return 0;
}

static __always_inline bool is_mark_due(const struct flow *flow, const struct sums *now)
{
	return flow->marks < RECORD_MARKS && now->at_us >= flow->opened_us + mark_us(flow->marks);
}

/* Records the bytes acknowledged at the marks that have passed since the last sample. */
static __always_inline void pass_marks(struct flow *flow, const struct sums *now, const struct pause *pause)
{
	if (is_mark_due(flow, now))
		note_marks(flow, now, pause);
}

/* Adds an RTT to the histogram. If its bucket is full, all buckets are halved, because only their ratios matter. */
static __noinline int count_rtt(struct flow *flow, u32 rtt_us)
{
	u32 octave = 0, rest, bucket;

	if (!rtt_us)
		return 0;
	rest = rtt_us >> RECORD_RTT_FIRST_OCTAVE;
	if (!rest)
		rtt_us = 1 << RECORD_RTT_FIRST_OCTAVE;
	if (rest >> 16) {
		rest >>= 16;
		octave += 16;
	}
	if (rest >> 8) {
		rest >>= 8;
		octave += 8;
	}
	if (rest >> 4) {
		rest >>= 4;
		octave += 4;
	}
	if (rest >> 2) {
		rest >>= 2;
		octave += 2;
	}
	if (rest >> 1)
		octave += 1;
	bucket = octave * 8 + (rtt_us >> (octave + RECORD_RTT_FIRST_OCTAVE - 3) & 7);
	if (bucket >= sizeof(flow->rtt_histogram))
		bucket = sizeof(flow->rtt_histogram) - 1;
	if (flow->rtt_histogram[bucket] == 255) {
		u64 *words = (u64 *)flow->rtt_histogram;

#pragma unroll
		for (int word = 0; word < RECORD_RTT_OCTAVES; word++)
			words[word] = words[word] >> 1 & 0x7f7f7f7f7f7f7f7fULL;
	}
	flow->rtt_histogram[bucket]++;
	return 0;
}

/* Starts the histogram with the RTTs that were stored individually. */
static __noinline int begin_counting(struct flow *flow)
{
	u32 first_us[FIRST_RTTS];

	__builtin_memcpy(first_us, flow->first_rtts_us, sizeof(first_us));
	__builtin_memset(flow->rtt_histogram, 0, sizeof(flow->rtt_histogram));
#pragma unroll
	for (int number = 0; number < FIRST_RTTS; number++)
		count_rtt(flow, first_us[number]);
	return 0;
}

static __always_inline void note_rtt(struct flow *flow, struct tcp_sock *tp, u32 rtt_us)
{
	u64 number = flow->samples;

	flow->samples = number + 1;
	flow->app_limited += tp->app_limited != 0;
	if (rtt_us > flow->rtt_max_us)
		flow->rtt_max_us = rtt_us;
	if (number < FIRST_RTTS) {
		/* The verifier does not use the result of the comparison for the range of the number. */
		barrier_var(number);
		flow->first_rtts_us[number & (FIRST_RTTS - 1)] = rtt_us;
		return;
	}
	if (!settings.has_histograms)
		return;
	if (number == FIRST_RTTS)
		begin_counting(flow);
	count_rtt(flow, rtt_us);
}

/* Returns the minimum RTT so far; the kernel's covers only a window of time (sysctl tcp_min_rtt_wlen). */
static __always_inline u32 smallest_rtt_us(const struct flow *flow, struct tcp_sock *tp)
{
	u32 min_us = tp->rtt_min.s[0].v;

	return flow->rtt_min_us && flow->rtt_min_us < min_us ? flow->rtt_min_us : min_us;
}

static __always_inline void note_rtt_of_transfer(struct flow *flow, struct tcp_sock *tp, u32 rtt_us)
{
	/* The first round of a transfer is app-limited, because the queue was empty before. */
	if (flow->transfer_samples++)
		flow->transfer_app_limited += tp->app_limited != 0;
	if (rtt_us > flow->transfer_rtt_max_us)
		flow->transfer_rtt_max_us = rtt_us;
	if (rtt_us && (!flow->transfer_rtt_min_us || rtt_us < flow->transfer_rtt_min_us))
		flow->transfer_rtt_min_us = rtt_us;
}

/* Updates the maximum delivery rate; rates are compared without a division. */
static __always_inline void note_rate(struct flow *flow, struct tcp_sock *tp)
{
	u64 packets = tp->rate_delivered, interval_us = tp->rate_interval_us;

	if (!packets || !interval_us || BPF_CORE_READ_BITFIELD(tp, rate_app_limited))
		return;
	if (flow->rate_max_packets && packets * flow->rate_max_interval_us <= interval_us * flow->rate_max_packets)
		return;
	flow->rate_max_packets = packets;
	flow->rate_max_interval_us = interval_us;
}

/* Names of the kernel's BBR and of bbr_cpu, which has the same state, encoded as integers. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NAME_BBR 0x0000000000726262ULL
#define NAME_BBR_CPU 0x007570635f726262ULL
#else
#define NAME_BBR 0x6262720000000000ULL
#define NAME_BBR_CPU 0x6262725f63707500ULL
#endif

/* Returns BBR's state; NULL for another algorithm or another version of BBR. */
static __always_inline struct bbr *bbr_of(struct tcp_sock *tp)
{
	u64 name[2];

	if (!bpf_core_type_exists(struct bbr) || !bpf_core_field_exists(((struct bbr *)0)->bw))
		return NULL;
	cc_name(tp, name);
	if (name[0] != NAME_BBR && name[0] != NAME_BBR_CPU)
		return NULL;
	return (struct bbr *)((struct inet_connection_sock *)tp)->icsk_ca_priv;
}

static __always_inline u64 bbr_bw(const struct bbr *bbr)
{
	return BPF_CORE_READ_BITFIELD(bbr, lt_use_bw) ? bbr->lt_bw : bbr->bw.s[0].v;
}

/* Mode PROBE_BW, BBR's steady state. */
#define BBR_PROBE_BW 2

/* BBR's bandwidth is in packets per microsecond, times 2^24. */
#define BBR_BW_SHIFT 24

/* Duration of a burst: by default, Linux paces bursts of about 2^-10 s (sk_pacing_shift). */
#define BURST_US 1000

/*
 * Counts a sample of BBR, and whether less is in flight than a sender that is never off CPU keeps in flight. The rule
 * of the paper (bpf/cc/cpu_rules/paper.h) requires one BDP. However, packets are sent and acknowledged in bursts: if a
 * round trip is not much longer than a burst, less than one BDP is in flight when the last burst is acknowledged.
 * Therefore, the threshold is lower by one burst.
 */
static __noinline int look_at_bbr(struct flow *flow, struct tcp_sock *tp)
{
	struct bbr *bbr = bbr_of(tp);
	u32 inflight, min_rtt_us;
	u64 wanted;

	if (!bbr)
		return 0;
	inflight = tp->snd_nxt - tp->snd_una;
	if (flow->bbr_inflight_bytes)
		inflight = flow->bbr_inflight_bytes - flow->bbr_inflight_bytes / 4 + inflight / 4;
	flow->bbr_inflight_bytes = inflight;
	flow->bbr_samples++;
	min_rtt_us = bbr->min_rtt_us;
	if (min_rtt_us <= BURST_US)
		return 0;
	wanted = (bbr_bw(bbr) * (min_rtt_us - BURST_US) >> BBR_BW_SHIFT) * tp->mss_cache;
	if (inflight < wanted)
		flow->bbr_short_samples++;
	return 0;
}

static __always_inline void judge(struct flow *flow, struct tcp_sock *tp)
{
	struct bbr *bbr = bbr_of(tp);

	if (bbr && BPF_CORE_READ_BITFIELD(bbr, mode) == BBR_PROBE_BW && !BPF_CORE_READ_BITFIELD(tp, rate_app_limited))
		look_at_bbr(flow, tp);
}

#endif
