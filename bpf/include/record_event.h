/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of the recorder's programs: each describes a period of one connection.
 * crates/agent/src/flow/record_event.rs mirrors this file; a test there compares the two. To avoid padding, members of
 * 64 bits precede an even number of members of 32 bits.
 *
 * Times are the kernel's CLOCK_MONOTONIC in microseconds, except those in jiffies. Byte counts are payload, without the
 * sequence numbers of SYN and FIN.
 */
#ifndef THALWEG_RECORD_EVENT_H
#define THALWEG_RECORD_EVENT_H

/* Number of times after the opening (1, 3, 10 and 30 s) at which the number of acknowledged bytes is stored. */
#define RECORD_MARKS 4

/* RTT histogram: one-byte buckets, 8 per power of two, from 32 us to 8.4 s; the outermost include values beyond. */
#define RECORD_RTT_FIRST_OCTAVE 5
#define RECORD_RTT_OCTAVES 18

/* With fewer RTTs the 95th percentile is the maximum, and the event has no buckets. */
#define RECORD_RTT_FEW 20

enum record_kind {
	RECORD_CLOSE,    /* a closed connection */
	RECORD_INTERIM,  /* an open connection, for an interim row */
	RECORD_SNAPSHOT, /* an open connection: a client asked for its state, or RECORD_BLIND and no interim row due */
	RECORD_TRANSFER, /* a transfer on a connection that stays open */
	RECORD_GONE,     /* a closed connection whose close the kernel did not report: its last sample */
};

enum record_flag {
	RECORD_OUTGOING = 1,
	RECORD_JOINED = 2,   /* recorded from after its opening on: its direction and first algorithm are unknown */
	RECORD_BLIND = 4,    /* the kernel does not call the programs for it: only scans sample it */
	RECORD_COMPLETE = 8, /* all bytes of the transfer were acknowledged */
};

/*
 * The flags also contain the decision of `tune`: its reason, and the number of the algorithm (15: none was chosen).
 */
#define RECORD_REASON_SHIFT 8
#define RECORD_ARM_SHIFT 12
#define RECORD_SHARED (1 << 16) /* the decision was made for another connection of the same peer */
#define RECORD_CHOICE (15 << RECORD_REASON_SHIFT | 15 << RECORD_ARM_SHIFT | RECORD_SHARED)

/*
 * Reason of `tune` for an algorithm. From RECORD_NO_CHANCES on, the connection is not part of the comparison
 * ("untouched").
 */
enum record_reason {
	RECORD_UNDECIDED,   /* no decision, for example because `tune` is not running */
	RECORD_TREATED,     /* randomly assigned to the treated group */
	RECORD_HELD_OUT,    /* it keeps the default, as a control for the others */
	RECORD_NO_CHANCES,  /* left alone: there are no probabilities for its network namespace */
	RECORD_APPLICATION, /* left alone: TCP_CONGESTION was set, by the application or another program */
	RECORD_ROUTE,       /* left alone: a route sets the algorithm (congctl) */
	RECORD_LOOPBACK,    /* left alone: the peer's address is a loopback address, or in 0.0.0.0/8 */
	RECORD_PRIVATE,     /* left alone: the peer's address is private or shared (RFC 1918, 4193, 6598) */
	RECORD_LINK_LOCAL,  /* left alone: the peer's address is link-local */
	RECORD_KEEP,        /* left alone because of an override */
	RECORD_OVERRIDE,    /* an override selected the algorithm */
	RECORD_REFUSED,     /* the kernel did not set the algorithm that was drawn, or selected by an override */
};

struct record_event {
	/* The connection (its socket's cookie) and the period. `start_us`: 0 if unknown. */
	u64 connection;
	u64 start_us;
	u64 end_us;
	/* In network byte order; for AF_INET, in the first four bytes. */
	u64 local_address[2];
	u64 remote_address[2];
	u64 cgroup;
	/* Names of algorithms, padded with NUL; `cc_at_open` is empty if unknown. */
	u64 cc_at_open[2];
	u64 cc[2];
	/* Sums: of the connection since its opening, or of the transfer. */
	u64 sent_bytes;
	u64 acked_bytes;
	u64 retransmitted_bytes;

	u32 kind;
	u32 flags;
	u32 transfer;
	/* TCP state; for a closed connection, the state before the close. */
	u32 state;
	/* Address family; 0 if the endpoints are unknown. */
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

	/* Events of transfers end here. */
	u64 received_bytes;
	u64 acked_after_bytes[RECORD_MARKS];
	/* BBR's bandwidth in packets per microsecond, times 2^24; 0 for other algorithms. */
	u64 bbr_bw;
	/* The last transfer of a closed connection; without one, the number of bytes sent is 0. */
	u64 last_start_us;
	u64 last_end_us;
	u64 last_sent_bytes;
	u64 last_acked_bytes;
	u64 last_retransmitted_bytes;

	u32 error; /* the socket's error, such as a reset or a timeout */
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
	/* Delivery rates, as packets per interval: the last sample, and the maximum that was not app-limited. */
	u32 rate_packets;
	u32 rate_interval_us;
	u32 rate_is_app_limited;
	u32 rate_max_packets;
	u32 rate_max_interval_us;
	/* Number of valid entries in `acked_after_bytes`; with RECORD_JOINED, no entry is valid. */
	u32 marks;
	u32 bbr_min_rtt_us;
	/*
	 * Number of BBR samples in PROBE_BW that were not app-limited, and of those with less in flight than a sender
	 * that is not off CPU keeps in flight.
	 */
	u32 bbr_samples;
	u32 bbr_short_samples;
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

	/* Events of closes without a histogram end here. */
	u64 rtt_histogram[RECORD_RTT_OCTAVES];
};

/* Lengths of the event of a transfer, and of a close without a histogram. */
#define RECORD_TRANSFER_BYTES __builtin_offsetof(struct record_event, received_bytes)
#define RECORD_SHORT_BYTES __builtin_offsetof(struct record_event, rtt_histogram)

/*
 * The event queue: a ring buffer with any number of concurrent writers (the programs) and one reader (the agent). A
 * writer takes the next number, unless the queue is full; its slot is that number modulo RECORD_SLOTS, a power of
 * two. The reader writes only `read`, the number of events that it has read, in a cache line of its own. The length of
 * a slot is a multiple of a cache line.
 */
#define RECORD_SLOTS 8192

struct record_slot {
	u64 number; /* the number that its writer took, plus 1; 0 before the first event */
	u64 bytes;  /* length of the event */
	struct record_event event;
	u64 unused[2];
};

struct record_progress {
	u64 taken;
	u64 unused[7];
	u64 read;
};

/* Settings, which the loader writes before it loads the programs. */
struct record_settings {
	u64 jiffy_us;
	u64 idle_gap_us;   /* minimum idle time that ends a transfer */
	u64 sample_one_in; /* one in N connections is recorded; 0 and 1: all */
	u64 interim_us;    /* interval of a connection's interim rows */
	u64 cgroup_level;  /* depth of the recorded cgroup below the root */
	u64 set_mask; /* number of sets of connections, minus 1: see bpf/flow/table.h */
	u64 has_histograms; /* whether events have RTT histograms */
};

/* Counters since the programs were loaded, per CPU. */
struct record_counters {
	u64 opened;
	u64 joined;
	u64 lost_closes; /* closes among `lost_events` */
	u64 unsampled;
	u64 lost_events;
	u64 lost_connections;
};

#endif
