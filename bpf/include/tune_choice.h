/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's data for the programs that choose algorithms. crates/agent/src/tune/wire.rs mirrors this file; a test
 * there compares the two. Members of 64 bits stand before those of 32, and nothing is filled up.
 */
#ifndef THALWEG_TUNE_CHOICE_H
#define THALWEG_TUNE_CHOICE_H

/* Maximum number of algorithms, and of prefix lengths. */
#define TUNE_ARMS 8
#define TUNE_LENGTHS 3

/* What the loader sets before the programs are loaded. */
struct tune_settings {
	u64 names[2 * TUNE_ARMS]; /* the algorithms, filled up with NUL; those that need ECN are the last */
	u64 together_us;          /* for so long at most a client's connections share one choice */
	u32 is_on;                /* 0: nothing is chosen */
	u32 sets;                 /* 0: a dry run, which decides and does not set */
	u32 takes_private;        /* are private addresses not left alone? */
	u32 arms;                 /* how many there are */
	u32 plain_arms;           /* how many of them need no ECN */
	u32 loss_shift;           /* who retransmits more than 2^-loss_shift of its segments gets loss_arm at once; 0: nobody */
	u32 loss_arm;
	u32 client_mask;          /* maximum number of clients, less 1 */
	u32 lengths_v4[TUNE_LENGTHS]; /* the longest first; 0: no more */
	u32 lengths_v6[TUNE_LENGTHS];
};

/* Whether anybody is there who learns, and what else can change. */
struct tune_heart {
	u64 beat_us;   /* CLOCK_MONOTONIC */
	u64 grace_us;  /* for so long after a beat is chosen */
	u64 overrides; /* how many there are */
};

/* An address in network order, or a prefix of one; an IPv4 address is in the first four bytes, also that of an IPv6 socket. */
struct tune_key {
	u64 address[2];
	u64 scope; /* TUNE_SCOPE: in one piece, as it is read */
};

/* A network namespace, 4 or 6, and how many bits the prefix has. */
#define TUNE_SCOPE(netns, family, length) ((u64)(netns) | (u64)(family) << 32 | (u64)(length) << 48)

/* The chances of those that one side opens. */
struct tune_draw {
	u32 holdout;          /* held out is who draws a number below it; the largest: everybody */
	u32 last;             /* the last arm that has a chance */
	u32 below[TUNE_ARMS]; /* else the first arm is taken whose entry is above it; all are above those that are held out */
};

struct tune_row {
	struct tune_draw incoming;
	struct tune_draw outgoing;
};

/*
 * Peers that are left alone without --private, as RANGE(first address, prefix length, reason): of IPv6 the first and
 * the last 64 bits of the address. No two ranges overlap.
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
 * Decisions about connections that were opened, per CPU: by the reason (the lower four bits of the index) and the
 * algorithm (the upper four), as in an event's flags. Of RECORD_REFUSED the algorithm is the one that was to be set.
 */
#define TUNE_DECISIONS 256

struct tune_decisions {
	u64 connections[TUNE_DECISIONS];
};

/* The operator's override of a prefix. */
enum tune_override {
	TUNE_KEEP,
	TUNE_DATA_CENTER,
	TUNE_ARM, /* and the arm's number more */
};

/* A prefix of IPv4 begins with a byte of 4, one of IPv6 with a byte of 6. */
struct tune_prefix {
	u32 bits; /* with those of the first byte */
	u8 family;
	u8 address[16];
	u8 unused[3];
};

#endif
