/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data that the daemon shares with the programs that choose algorithms ("arms"). crates/agent/src/tune/wire.rs mirrors
 * this file; a test there compares the two. To avoid padding, members of 64 bits precede those of 32.
 */
#ifndef THALWEG_TUNE_CHOICE_H
#define THALWEG_TUNE_CHOICE_H

/* Maximum number of algorithms, and of prefix lengths per IP version. */
#define TUNE_ARMS 8
#define TUNE_LENGTHS 3

/* Settings, which the loader writes before it loads the programs. */
struct tune_settings {
	u64 names[2 * TUNE_ARMS]; /* names of the algorithms, padded with NUL; those that need ECN come last */
	u64 together_us;          /* maximum time for which a client's connections share one choice */
	u32 is_on;                /* 0: no algorithm is chosen */
	u32 sets;                 /* 0 for a dry run: decisions are counted, but no algorithm is set */
	u32 takes_private;        /* 0: peers in the TUNE_RANGES below are excluded */
	u32 arms;                 /* number of algorithms */
	u32 plain_arms;           /* number of algorithms that need no ECN */
	u32 loss_shift;           /* retransmissions above 2^-loss_shift of the segments switch to loss_arm; 0: never */
	u32 loss_arm;
	u32 client_mask;          /* maximum number of clients, minus 1 */
	u32 lengths_v4[TUNE_LENGTHS]; /* prefix lengths with rows, the longest first; 0: unused entry */
	u32 lengths_v6[TUNE_LENGTHS];
};

/* The daemon's heartbeat, and data that can change while the programs run. */
struct tune_heartbeat {
	u64 last_us;   /* time of the last heartbeat, CLOCK_MONOTONIC */
	u64 grace_us;  /* without a heartbeat for this time, no algorithm is chosen */
	u64 overrides; /* number of overrides */
};

/* An address or a prefix in network byte order; an IPv4 address, also of an IPv6 socket, is in the first four bytes. */
struct tune_key {
	u64 address[2];
	u64 scope; /* TUNE_SCOPE, in one word because it is read at once */
};

/* A network namespace, the IP version (4 or 6) and the length of the prefix in bits. */
#define TUNE_SCOPE(netns, family, length) ((u64)(netns) | (u64)(family) << 32 | (u64)(length) << 48)

/* Probabilities for the connections of one direction, as thresholds of a 32-bit random number. */
struct tune_draw {
	u32 holdout;          /* a number below it holds the connection out; ~0: all are held out */
	u32 last;             /* the last arm whose probability is not 0 */
	u32 below[TUNE_ARMS]; /* otherwise the first arm with a larger entry is drawn; cumulative, from `holdout` up */
};

struct tune_row {
	struct tune_draw incoming;
	struct tune_draw outgoing;
};

/*
 * Peers that are excluded without --private, as RANGE(first address, prefix length, reason). An IPv6 address consists
 * of its first and its last 64 bits. No two ranges overlap.
 */
#define TUNE_RANGES_V4(RANGE)                      \
	RANGE(0x00000000, 8, RECORD_LOOPBACK)      \
	RANGE(0x0a000000, 8, RECORD_PRIVATE)       \
	RANGE(0x64400000, 10, RECORD_PRIVATE)      \
	RANGE(0x7f000000, 8, RECORD_LOOPBACK)      \
	RANGE(0xa9fe0000, 16, RECORD_LINK_LOCAL)   \
	RANGE(0xac100000, 12, RECORD_PRIVATE)      \
	RANGE(0xc0a80000, 16, RECORD_PRIVATE)

#define TUNE_RANGES_V6(RANGE)                                   \
	RANGE(0x0000000000000000, 0, 127, RECORD_LOOPBACK)      \
	RANGE(0xfc00000000000000, 0, 7, RECORD_PRIVATE)         \
	RANGE(0xfe80000000000000, 0, 10, RECORD_LINK_LOCAL)

/*
 * Number of decisions, per CPU. The index is the reason (lower four bits) and the algorithm (upper four), as in the
 * flags of an event. For RECORD_REFUSED, the algorithm is the one that could not be set.
 */
#define TUNE_DECISIONS 256

struct tune_decisions {
	u64 connections[TUNE_DECISIONS];
};

/* The operator's override of a prefix. */
enum tune_override {
	TUNE_KEEP,
	TUNE_DATA_CENTER,
	TUNE_ARM, /* plus the number of the arm */
};

/* A prefix, as the key of a trie: its first byte is the IP version, 4 or 6. */
struct tune_prefix {
	u32 bits; /* length in bits, including `family` */
	u8 family;
	u8 address[16];
	u8 unused[3];
};

#endif
