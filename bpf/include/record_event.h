/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the recorder's programs hand over: a span of one connection's life. crates/agent/src/record/event.rs mirrors this file;
 * a test there compares the two. Every member is 64 bits wide, or several times that, so that there is nothing to align.
 *
 * Times are the kernel's CLOCK_MONOTONIC in microseconds, but for those in jiffies. Bytes are payload: the sequence numbers of
 * SYN and FIN are not among them.
 */
#ifndef THALWEG_RECORD_EVENT_H
#define THALWEG_RECORD_EVENT_H

/* Bytes acknowledged are noted 1, 3, 10 and 30 s after the opening. */
#define RECORD_MARKS 4

/* RTTs are counted in buckets of a byte: 8 in each power of two, from 32 us to 8.4 s; the outermost take what is beyond. */
#define RECORD_RTT_FIRST_OCTAVE 5
#define RECORD_RTT_OCTAVES 18

enum record_kind {
	RECORD_CLOSE,    /* a connection, whole */
	RECORD_INTERIM,  /* a connection so far; it is time for a row */
	RECORD_LOOK,     /* a connection so far, for who wants to see it now */
	RECORD_TRANSFER, /* a transfer in a connection that goes on */
};

enum record_flag {
	RECORD_OUTGOING = 1,
	RECORD_JOINED = 2,   /* was open before recording began: direction and algorithm at the opening are not known */
	RECORD_BLIND = 4,    /* joined, and the kernel does not call us for it: there are only looks */
	RECORD_COMPLETE = 8, /* a transfer of which all was acknowledged */
};

struct record_event {
	/* Which row, of which connection. `start_us`: 0 if it is not known. */
	u64 kind;
	u64 flags;
	u64 connection;
	u64 transfer;
	u64 start_us;
	u64 end_us;

	/* Which endpoints. Addresses are in network order; an IPv4 address is in the first four bytes. */
	u64 family;
	u64 local_address[2];
	u64 local_port;
	u64 remote_address[2];
	u64 remote_port;
	u64 netns;
	u64 cgroup;
	/* TCP's state; of a connection that has closed: that before. */
	u64 state;
	/* Names, filled up with NUL; the first is empty if it is not known. */
	u64 cc_at_open[2];
	u64 cc[2];

	/* The span: of the connection, or of the transfer. */
	u64 sent_bytes;
	u64 acked_bytes;
	u64 retransmitted_bytes;
	u64 segments;
	u64 retransmits;
	u64 busy_jiffies;
	u64 rwnd_limited_jiffies;
	u64 sndbuf_limited_jiffies;
	u64 rtt_min_us;
	u64 rtt_max_us;
	u64 rtt_smoothed_us;
	u64 rtt_samples;
	u64 app_limited_samples;

	/* Transfers end here. */
	u64 received_bytes;
	u64 error; /* of the socket: who or what has ended it */
	u64 segments_out;
	u64 segments_in;
	u64 lost_packets;
	u64 reordering;
	u64 reorderings;
	u64 ecn_flags;
	u64 ce_packets;
	u64 mss_bytes;
	u64 cwnd_packets;
	u64 rtt_handshake_us;
	/* Delivery rates are packets in an interval: the last sample, and the largest that was not app-limited. */
	u64 rate_packets;
	u64 rate_interval_us;
	u64 rate_is_app_limited;
	u64 rate_max_packets;
	u64 rate_max_interval_us;
	/* How many marks were passed, and the bytes at each. */
	u64 marks;
	u64 acked_after_bytes[RECORD_MARKS];
	/* BBR: bandwidth in packets per microsecond times 2^24, 0 if it is not BBR; looks in PROBE_BW, and at how many of them less
	 * was in flight than a sender on CPU keeps there. */
	u64 bbr_bw;
	u64 bbr_min_rtt_us;
	u64 bbr_looks;
	u64 bbr_short_looks;
	u64 rtt_histogram[RECORD_RTT_OCTAVES];
	/* The last transfer in a connection that has closed, which ended with it or was over before. 0 bytes sent: there was none. */
	u64 last_is_complete;
	u64 last_start_us;
	u64 last_end_us;
	u64 last_sent_bytes;
	u64 last_acked_bytes;
	u64 last_retransmitted_bytes;
	u64 last_segments;
	u64 last_retransmits;
	u64 last_busy_jiffies;
	u64 last_rwnd_limited_jiffies;
	u64 last_sndbuf_limited_jiffies;
	u64 last_rtt_min_us;
	u64 last_rtt_max_us;
	u64 last_rtt_samples;
	u64 last_app_limited_samples;
};

/* How long the event of a transfer is. */
#define RECORD_TRANSFER_BYTES __builtin_offsetof(struct record_event, received_bytes)

/* What the loader sets before the programs are loaded. */
struct record_settings {
	u64 jiffy_us;
	u64 idle_gap_us;   /* less idle time does not end a transfer */
	u64 sample_one_in; /* 0 and 1: all */
	u64 interim_us;    /* how often a connection has an interim row */
	u64 cgroup;        /* the cgroup that is recorded, and how deep below the root it is */
	u64 cgroup_level;
};

/* What has happened since the programs were loaded, per CPU. */
struct record_counters {
	u64 opened;
	u64 joined;
	u64 closed;
	u64 unsampled;
	u64 lost_events;
	u64 lost_connections;
};

#endif
