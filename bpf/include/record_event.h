/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the recorder's programs hand over: a span of one connection's life. crates/agent/src/flow/record_event.rs
 * mirrors this file; a test there compares the two. Numbers are as wide as the kernel keeps them: each byte of an event
 * that others have to fetch costs time. Those of 64 bits stand before those of 32, of which there is an even number, so
 * that nothing is filled up.
 *
 * Times are the kernel's CLOCK_MONOTONIC in microseconds, but for those in jiffies. Bytes are payload: the sequence
 * numbers of SYN and FIN are not among them.
 */
#ifndef THALWEG_RECORD_EVENT_H
#define THALWEG_RECORD_EVENT_H

/* Bytes acknowledged are noted 1, 3, 10 and 30 s after the opening. */
#define RECORD_MARKS 4

/* RTTs are counted in buckets of a byte: 8 in each power of two, from 32 us to 8.4 s; the outermost take what is beyond. */
#define RECORD_RTT_FIRST_OCTAVE 5
#define RECORD_RTT_OCTAVES 18

/* Below this number of RTTs the 95th percentile is the largest, and the buckets are left out of the event. */
#define RECORD_RTT_FEW 20

enum record_kind {
	RECORD_CLOSE,    /* a connection, whole */
	RECORD_INTERIM,  /* a connection so far; it is time for a row */
	RECORD_LOOK,     /* a connection so far, for who wants to see it now */
	RECORD_TRANSFER, /* a transfer in a connection that stays open */
	RECORD_GONE,     /* a closed connection whose close was not reported: its last sample */
};

enum record_flag {
	RECORD_OUTGOING = 1,
	RECORD_JOINED = 2,   /* was open before recording began: direction and algorithm at the opening are not known */
	RECORD_BLIND = 4,    /* the kernel does not call us for it: there are only samples */
	RECORD_COMPLETE = 8, /* a transfer of which all was acknowledged */
};

/* And the decision of `tune` about its algorithm, with the reason, and the number of an algorithm or 15 for none. */
#define RECORD_REASON_SHIFT 8
#define RECORD_ARM_SHIFT 12
#define RECORD_SHARED (1 << 16) /* it was drawn for another connection of the same peer */
#define RECORD_CHOICE (15 << RECORD_REASON_SHIFT | 15 << RECORD_ARM_SHIFT | RECORD_SHARED)

/* From RECORD_NO_CHANCES on the connection is not part of the comparison ("untouched"). */
enum record_reason {
	RECORD_UNDECIDED,   /* no decision: `tune` is off, or its grace time is over */
	RECORD_TREATED,     /* the algorithm was drawn */
	RECORD_HELD_OUT,    /* it keeps the default so that the others can be compared with it */
	RECORD_NO_CHANCES,  /* left alone: there are no chances for its network namespace */
	RECORD_APPLICATION, /* left alone: TCP_CONGESTION was set, by the application or another program */
	RECORD_ROUTE,       /* left alone: a route has set the algorithm (congctl) */
	RECORD_LOOPBACK,    /* left alone: the peer's address is this host's */
	RECORD_PRIVATE,     /* left alone: the peer's address is private or shared (RFC 1918, 4193, 6598) */
	RECORD_LINK_LOCAL,  /* left alone: the peer's address is link-local */
	RECORD_KEEP,        /* left alone because of an override */
	RECORD_OVERRIDE,    /* an override names the algorithm */
	RECORD_REFUSED,     /* the kernel refused to set the algorithm that was to be set */
};

struct record_event {
	/* Which connection, and which span of it. `start_us`: 0 if it is not known. */
	u64 connection;
	u64 start_us;
	u64 end_us;
	/* In network order; an IPv4 address is in the first four bytes. */
	u64 local_address[2];
	u64 remote_address[2];
	u64 cgroup;
	/* Names, filled up with NUL; the first is empty if it is not known. */
	u64 cc_at_open[2];
	u64 cc[2];
	/* The span: of the connection, or of the transfer. */
	u64 sent_bytes;
	u64 acked_bytes;
	u64 retransmitted_bytes;

	u32 kind;
	u32 flags;
	u32 transfer;
	/* TCP's state; of a connection that has closed: that before. */
	u32 state;
	/* 0: the endpoints are not known. */
	u32 family;
	u32 local_port;
	u32 remote_port;
	u32 netns;
	u32 segments;
	u32 retransmits;
	u32 busy_jiffies;
	u32 rwnd_limited_jiffies;
	u32 sndbuf_limited_jiffies;
	u32 rtt_min_us;
	u32 rtt_max_us;
	u32 rtt_smoothed_us;
	u32 rtt_samples;
	u32 app_limited_samples;

	/* Transfers end here. */
	u64 received_bytes;
	u64 acked_after_bytes[RECORD_MARKS];
	/* BBR's bandwidth in packets per microsecond times 2^24; 0: it is another algorithm. */
	u64 bbr_bw;
	/* The last transfer in a connection that has closed, which ended with it or was over before. 0 bytes sent: there was none. */
	u64 last_start_us;
	u64 last_end_us;
	u64 last_sent_bytes;
	u64 last_acked_bytes;
	u64 last_retransmitted_bytes;

	u32 error; /* of the socket: who or what has ended it */
	u32 segments_out;
	u32 segments_in;
	u32 lost_packets;
	u32 reordering;
	u32 reorderings;
	u32 ecn_flags;
	u32 ce_packets;
	u32 mss_bytes;
	u32 cwnd_packets;
	u32 rtt_handshake_us;
	/* Delivery rates are packets in an interval: the last sample, and the largest that was not app-limited. */
	u32 rate_packets;
	u32 rate_interval_us;
	u32 rate_is_app_limited;
	u32 rate_max_packets;
	u32 rate_max_interval_us;
	/* How many of the marks were passed. */
	u32 marks;
	u32 bbr_min_rtt_us;
	/* Looks at BBR in PROBE_BW, and at how many of them less was in flight than a sender on CPU keeps there. */
	u32 bbr_looks;
	u32 bbr_short_looks;
	u32 last_is_complete;
	u32 last_segments;
	u32 last_retransmits;
	u32 last_busy_jiffies;
	u32 last_rwnd_limited_jiffies;
	u32 last_sndbuf_limited_jiffies;
	u32 last_rtt_min_us;
	u32 last_rtt_max_us;
	u32 last_rtt_samples;
	u32 last_app_limited_samples;

	/* Connections of few round trips end here. */
	u64 rtt_histogram[RECORD_RTT_OCTAVES];
};

/* How long the event of a transfer is, and that of a connection of few round trips. */
#define RECORD_TRANSFER_BYTES __builtin_offsetof(struct record_event, received_bytes)
#define RECORD_SHORT_BYTES __builtin_offsetof(struct record_event, rtt_histogram)

/*
 * Between the programs, any number of which may write at a time, and the agent, which reads: slots of a ring buffer,
 * written and read in order. Who writes takes the next number, unless that many are still to be read;
 * the slot is its remainder. In a cache line of its own the reader says how many it has read: it writes nothing else,
 * so that writers find slots as they have left them. A power of two many, and a multiple of a cache line long.
 */
#define RECORD_SLOTS 8192

struct record_slot {
	u64 number; /* of the last event that is there, counted from 1 */
	u64 bytes;  /* how long it is */
	struct record_event event;
	u64 unused[2];
};

struct record_progress {
	u64 taken;
	u64 unused[7];
	u64 read;
};

/* What the loader sets before the programs are loaded. */
struct record_settings {
	u64 jiffy_us;
	u64 idle_gap_us;   /* less idle time does not end a transfer */
	u64 sample_one_in; /* 0 and 1: all */
	u64 interim_us;    /* how often a connection has an interim row */
	u64 cgroup_level;  /* how deep below the root the cgroup is that is recorded */
	u64 set_mask; /* the number of sets of connections, less 1: see bpf/flow/table.h */
	u64 has_histograms; /* 1: RTTs are counted in buckets; 0: they are not, and no event has buckets */
};

/* What has happened since the programs were loaded, per CPU. */
struct record_counters {
	u64 opened;
	u64 joined;
	u64 lost_closes; /* among those that are lost */
	u64 unsampled;
	u64 lost_events;
	u64 lost_connections;
};

#endif
