/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The members of the kernel's structures that the programs access. The loader locates members by name in the running
 * kernel (CO-RE), so the programs are built without that kernel's headers.
 */
#ifndef THALWEG_KERNEL_H
#define THALWEG_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

/* Types that bpf_helpers.h requires. */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef signed char __s8;
typedef short __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;

enum { false, true };

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_ANY = 0,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };

enum tcp_ca_event { CA_EVENT_TX_START };

/* Flag of an algorithm that unprivileged users may choose for a socket. */
#define TCP_CONG_NON_RESTRICTED 1

/* Flag of an algorithm whose connections request ECN. */
#define TCP_CONG_NEEDS_ECN 2

/* Initial slow start threshold of a socket. */
#define TCP_INFINITE_SSTHRESH 0x7fffffff

/* Callbacks of sock_ops programs, and the flags that enable the last three. */
enum {
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_NEEDS_ECN = 6,
	BPF_SOCK_OPS_RETRANS_CB = 9,
	BPF_SOCK_OPS_STATE_CB = 10,
	BPF_SOCK_OPS_RTT_CB = 12,
	BPF_SOCK_OPS_RETRANS_CB_FLAG = 1 << 1,
	BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
	BPF_SOCK_OPS_RTT_CB_FLAG = 1 << 3,
};

enum { SOL_TCP = 6, TCP_CONGESTION = 13, TCP_BPF_SOCK_OPS_CB_FLAGS = 1008 };

/* The peers have negotiated ECN. */
#define TCP_ECN_OK 1

enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
	TCP_CLOSING = 11,
};

enum { AF_INET = 2 };

/* What limits sending: no data; congestion control or the network; the receive window; the send buffer. */
enum { TCP_CHRONO_UNSPEC, TCP_CHRONO_BUSY, TCP_CHRONO_RWND_LIMITED, TCP_CHRONO_SNDBUF_LIMITED };

/* Context of a sock_ops program; its offsets are part of the kernel's user interface. */
struct bpf_sock_ops {
	u32 op;
	union {
		u32 args[4];
		u32 reply;
	};
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 unused[9];
	u32 bpf_sock_ops_cb_flags;
	u32 unused_too[24];
	struct bpf_sock *sk;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct netns_ipv4 {
	const struct tcp_congestion_ops *tcp_congestion_control;
	u8 sysctl_tcp_min_tso_segs;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	s64 counter;
} atomic64_t;

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[1];
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	u16 skc_num;
	__be16 skc_dport;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
	unsigned long skc_flags;
};

enum sock_flags { SOCK_DONE = 1 };

/* Values of the pacing status: no pacing, or pacing by TCP itself. */
enum { SK_PACING_NONE, SK_PACING_NEEDED };

struct sock {
	struct sock_common __sk_common;
	int sk_err;
	struct sock_cgroup_data sk_cgrp_data;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	unsigned int sk_gso_max_size;
	u8 sk_pacing_shift;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5;
	u8 icsk_ca_setsockopt : 1;
	u8 icsk_ca_dst_locked : 1;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

/* RACK's state: the most recently sent packet that was delivered. */
struct tcp_rack {
	u32 rtt_us;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u8 is_cwnd_limited : 1;
	u8 rate_app_limited : 1;
	u32 app_limited;
	u32 delivered;
	u32 lost;
	u64 bytes_sent;
	u64 bytes_acked;
	u64 bytes_received;
	u64 bytes_retrans;
	u32 segs_in;
	u32 segs_out;
	u32 data_segs_out;
	u32 total_retrans;
	u32 delivered_ce;
	u32 reordering;
	u32 reord_seen;
	u8 ecn_flags;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 chrono_start;
	u32 chrono_stat[3];
	u8 chrono_type : 2;
	u8 bpf_sock_ops_cb_flags;
	struct tcp_rack rack;
	u32 write_seq;
	u64 tcp_mstamp;
	u64 first_tx_mstamp;
	u64 delivered_mstamp;
	u64 tcp_clock_cache;
	u64 tcp_wstamp_ns;
	u32 lsndtime;
	u32 rcv_tstamp;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_wnd;
	u32 srtt_us;
	struct minmax rtt_min;
};

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};

/* State of BBR, version 1, in icsk_ca_priv. */
struct bbr {
	u32 min_rtt_us;
	u32 min_rtt_stamp;
	u32 probe_rtt_done_stamp;
	struct minmax bw;
	u32 rtt_cnt;
	u32 next_rtt_delivered;
	u64 cycle_mstamp;
	u32 mode : 3;
	u32 prev_ca_state : 3;
	u32 packet_conservation : 1;
	u32 round_start : 1;
	u32 probe_rtt_round_done : 1;
	u32 lt_is_sampling : 1;
	u32 lt_use_bw : 1;
	u32 lt_bw;
	u32 pacing_gain : 10;
	u32 cwnd_gain : 10;
	u32 full_bw_reached : 1;
	u32 full_bw_cnt : 2;
	u32 cycle_idx : 3;
	u32 has_seen_rtt : 1;
	u32 prior_cwnd;
	u16 extra_acked[2];
};

/* The kernel's structure of an algorithm; `tcp_congestion_ops` below declares the algorithms of this project. */
struct tcp_congestion_ops___kernels {
	char name[16];
};

struct seq_file;

/* Context of an iterator. */
struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

/* The loader copies each member to the member of the same name in the kernel's structure. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	u32 flags;
	char name[16];
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

/*
 * Returns the bytes sent, retransmissions included, minus the bytes acknowledged. bytes_acked also counts the SYN of an
 * outgoing connection, and a FIN, and can therefore exceed bytes_sent.
 */
static inline __attribute__((always_inline)) u64 unacked_bytes(const struct tcp_sock *tp)
{
	u64 sent = tp->bytes_sent, acked = tp->bytes_acked;

	return sent > acked ? sent - acked : 0;
}

#endif
