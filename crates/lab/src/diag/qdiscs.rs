//! Counters of queue disciplines (rtnetlink(7), tc(8); include/uapi/linux/{gen_stats,pkt_sched}.h of the kernel).
//!
//! The kernel counts Ethernet frames, 14 bytes more than the IP packet, plus the overhead of a size table (`stab
//! overhead`, tc-stab(8)) of the queue discipline or one above it. This module converts to bytes of IP packets.

use super::bytes::{i32_at, u32_at, u64_at};
use super::netlink::{Consistency, Malformed, Netlink, attributes};
use crate::error::Error;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;

/// Counters of selected queue disciplines of this network namespace.
#[derive(Debug)]
pub(super) struct Counters {
    netlink: Netlink,
    followed: Vec<Followed>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub sent_bytes: u64,
    pub sent_packets: u64,
    pub backlog_bytes: u64,
    pub backlog_packets: u64,
    pub dropped_packets: u64,
    pub marked_packets: u64,
    /// Dropped packets that exceeded a limit; `None` if the kernel does not distinguish them.
    pub limit_drops: Option<u64>,
}

impl Count {
    /// Returns the number of packets that the queue discipline chose to drop; `None` if the kernel does not distinguish
    /// them.
    pub fn early_drops(&self) -> Option<u64> {
        Some(self.dropped_packets.saturating_sub(self.limit_drops?))
    }
}

#[derive(Debug)]
struct Followed {
    interface: String,
    handle: String,
    key: Key,
    /// Bytes that the kernel counts per packet in addition to the IP packet.
    overhead_bytes: i64,
    /// Message in the latest dump; `None` if that dump lacked it.
    message: Option<QdiscMessage>,
    count: Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    interface: u32,
    handle: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QdiscMessage {
    key: Key,
    /// Handle of the parent; `TC_H_ROOT` at the root of an interface.
    parent: u32,
    /// `overhead` of the size table.
    size_table_overhead: Option<i32>,
    bytes: u64,
    packets: u64,
    qlen: u32,
    backlog: u32,
    drops: u32,
    own: Own,
}

/// Counters that only some kinds of queue discipline have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Own {
    /// Packets marked with ECN.
    marks: u32,
    /// Packets dropped at the limit; `None` if the kernel does not distinguish them.
    limit_drops: Option<u32>,
}

const RTM_GETQDISC: u16 = 38;
/// Length of `struct tcmsg` in bytes; attributes follow it.
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_XSTATS: u16 = 4;
const TCA_STATS2: u16 = 7;
const TCA_STAB: u16 = 8;
const TCA_STAB_BASE: u16 = 1;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_CAKE_STATS_TIN_STATS: u16 = 10;
const TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS: u16 = 8;
/// Present only if the number of packets exceeds the 32 bits of the basic counters.
const TCA_STATS_PKT64: u16 = 8;

/// Length of an Ethernet header in bytes.
const ETHERNET: i64 = 14;

/// Bits of a handle that identify the queue discipline; the others identify a class.
const MAJOR: u32 = 0xffff_0000;

/// Maximum number of dumps per read, if they are interrupted.
const ATTEMPTS: usize = 5;

impl Counters {
    /// Prepares to read the counters of these queue disciplines, each an interface and a handle such as `1:`.
    ///
    /// # Errors
    /// If the kernel refuses, its answer is malformed, or an interface or queue discipline does not exist.
    pub fn open(wanted: &[(String, String)]) -> Result<Counters, Error> {
        let netlink = Netlink::open(None, RTM_GETQDISC, &[0; TCMSG]).map_err(refused)?;
        let mut followed = Vec::new();
        for (interface, handle) in wanted {
            let missing = || not_there(interface, handle);
            let index = name_to_index(netlink.fd(), interface).map_err(|_| missing())?;
            let key = Key { interface: index, handle: parse_handle(handle).ok_or_else(missing)? };
            let (interface, handle) = (interface.clone(), handle.clone());
            let count = Count::default();
            followed.push(Followed { interface, handle, key, overhead_bytes: 0, message: None, count });
        }
        let mut counters = Counters { netlink, followed };
        let mut messages = Vec::new();
        counters.dump(&mut |message| messages.push(message))?;
        for qdisc in &mut counters.followed {
            qdisc.overhead_bytes = ETHERNET + i64::from(overhead(&messages, qdisc.key));
        }
        counters.read()?;
        Ok(counters)
    }

    /// Reads all counters.
    ///
    /// # Errors
    /// As for [`Counters::open`].
    pub fn read(&mut self) -> Result<(), Error> {
        let mut followed = std::mem::take(&mut self.followed);
        let mut attempts = 0;
        let outcome = loop {
            for qdisc in &mut followed {
                qdisc.message = None;
            }
            let dumped = self.dump(&mut |message| {
                for qdisc in followed.iter_mut().filter(|qdisc| qdisc.key == message.key) {
                    qdisc.message = Some(message);
                }
            });
            attempts += 1;
            // An interrupted last attempt is accepted if it includes all followed queue disciplines.
            if !matches!(dumped, Ok(Consistency::Interrupted)) || attempts == ATTEMPTS {
                break dumped;
            }
        };
        self.followed = followed;
        outcome?;
        for qdisc in &mut self.followed {
            let message = qdisc.message.ok_or_else(|| not_there(&qdisc.interface, &qdisc.handle))?;
            qdisc.count.follow(&message, qdisc.overhead_bytes);
        }
        Ok(())
    }

    /// Returns the counters of the queue discipline at this index, as of the latest read.
    pub fn count(&self, place: usize) -> Count {
        self.followed[place].count
    }

    fn dump(&mut self, each: &mut dyn FnMut(QdiscMessage)) -> Result<Consistency, Error> {
        self.netlink.dump("queue disciplines", &refused, &mut |body| {
            each(QdiscMessage::parse(body)?);
            Ok(())
        })
    }
}

fn refused(errno: Errno) -> Error {
    Error::new(
        "no-qdisc-counters",
        format!("the kernel does not list queue disciplines: {errno}"),
        "check whether `tc -s qdisc` works; close other programs and try again",
    )
}

fn not_there(interface: &str, handle: &str) -> Error {
    Error::new(
        "no-qdisc",
        format!("interface {interface} has no queue discipline {handle}"),
        format!("list its queue disciplines in the router's namespace: tc qdisc show dev {interface}"),
    )
}

/// Parses a hexadecimal handle such as `1:` or `8001:`.
pub(super) fn parse_handle(handle: &str) -> Option<u32> {
    let major = handle.strip_suffix(':')?;
    let is_number = !major.is_empty() && major.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(major, 16).ok().filter(|_| is_number).map(|major| u32::from(major) << 16)
}

/// Returns the overhead of the size table that applies to a queue discipline: its own, or that of the nearest ancestor;
/// 0 without a size table.
fn overhead(messages: &[QdiscMessage], mut key: Key) -> i32 {
    // Each step goes up one level, and there are at most as many levels as queue disciplines.
    for _ in 0..messages.len() {
        let Some(message) = messages.iter().find(|message| message.key == key) else { break };
        if let Some(overhead) = message.size_table_overhead {
            return overhead;
        }
        key.handle = message.parent & MAJOR;
    }
    0
}

impl Count {
    /// Updates the counters. 32-bit counters are extended when they wrap around.
    pub(super) fn follow(&mut self, message: &QdiscMessage, overhead_bytes: i64) {
        let payload = |bytes: u64, packets: u64| {
            let overhead = i128::from(packets) * i128::from(overhead_bytes);
            u64::try_from(i128::from(bytes) - overhead).unwrap_or_default()
        };
        let go_on = |so_far: u64, counter: u32| so_far + u64::from(counter.wrapping_sub(so_far as u32));
        self.sent_packets = message.packets;
        self.sent_bytes = payload(message.bytes, message.packets);
        self.backlog_packets = u64::from(message.qlen);
        self.backlog_bytes = payload(u64::from(message.backlog), u64::from(message.qlen));
        self.dropped_packets = go_on(self.dropped_packets, message.drops);
        self.marked_packets = go_on(self.marked_packets, message.own.marks);
        self.limit_drops = message.own.limit_drops.map(|drops| go_on(self.limit_drops.unwrap_or_default(), drops));
    }
}

impl QdiscMessage {
    /// Parses `struct tcmsg` and the attributes after it.
    pub(super) fn parse(body: &[u8]) -> Result<QdiscMessage, Malformed> {
        let cut = "the message of a queue discipline is truncated";
        let at = |offset| u32_at(body, offset).ok_or(cut);
        let key = Key { interface: at(4)?, handle: at(8)? };
        let parent = at(12)?;
        let mut message = QdiscMessage {
            key,
            parent,
            size_table_overhead: None,
            bytes: 0,
            packets: 0,
            qlen: 0,
            backlog: 0,
            drops: 0,
            own: Own::default(),
        };
        let mut cake_marks = 0;
        let (mut kind, mut own): (&[u8], &[u8]) = (&[], &[]);
        for attribute in attributes(body.get(TCMSG..).ok_or(cut)?) {
            match attribute? {
                (TCA_KIND, name) => kind = name,
                (TCA_XSTATS, bytes) => own = bytes,
                (TCA_STATS2, nested) => cake_marks = message.read_statistics(nested)?,
                (TCA_STAB, nested) => {
                    for attribute in attributes(nested) {
                        if let (TCA_STAB_BASE, table) = attribute? {
                            message.size_table_overhead = Some(i32_at(table, 4).ok_or("a size table is truncated")?);
                        }
                    }
                }
                _ => {}
            }
        }
        let kind = kind.strip_suffix(b"\0").unwrap_or(kind);
        message.own = match kind {
            b"cake" => Own { marks: cake_marks, limit_drops: None },
            _ => Own::read(kind, own, message.drops),
        };
        Ok(message)
    }

    /// Reads the common counters; returns the marks of cake, which are in the same attribute.
    fn read_statistics(&mut self, nested: &[u8]) -> Result<u32, Malformed> {
        let cut = "the counters of a queue discipline are truncated";
        let mut packets = None;
        let mut cake = &[][..];
        for attribute in attributes(nested) {
            match attribute? {
                (TCA_STATS_BASIC, bytes) => {
                    self.bytes = u64_at(bytes, 0).ok_or(cut)?;
                    self.packets = u64::from(u32_at(bytes, 8).ok_or(cut)?);
                }
                (TCA_STATS_APP, bytes) => cake = bytes,
                (TCA_STATS_PKT64, bytes) => packets = Some(u64_at(bytes, 0).ok_or(cut)?),
                (TCA_STATS_QUEUE, bytes) => {
                    self.qlen = u32_at(bytes, 0).ok_or(cut)?;
                    self.backlog = u32_at(bytes, 4).ok_or(cut)?;
                    self.drops = u32_at(bytes, 8).ok_or(cut)?;
                }
                _ => {}
            }
        }
        self.packets = packets.unwrap_or(self.packets);
        Ok(cake_marks(cake))
    }
}

impl Own {
    /// Reads the statistics of one kind, such as `struct tc_codel_xstats`.
    fn read(kind: &[u8], own: &[u8], drops: u32) -> Own {
        let at = |offset| u32_at(own, offset);
        let sum =
            |one: Option<u32>, other: Option<u32>| one.unwrap_or_default().wrapping_add(other.unwrap_or_default());
        let (marks, limit_drops) = match kind {
            b"pfifo" | b"bfifo" => (0, Some(drops)),
            // Marks above `ce_threshold` are counted separately.
            b"codel" => (sum(at(24), at(32)), at(20)),
            b"fq_codel" => (sum(at(12), at(28)), at(8)),
            b"pie" => (sum(at(36), None), at(28)),
            b"fq_pie" => (sum(at(16), None), at(8)),
            b"red" => (sum(at(12), None), at(0).map(|early| drops.wrapping_sub(early))),
            b"fq" => (u64_at(own, 80).unwrap_or_default() as u32, Some(drops)),
            b"dualpi2" => (sum(at(24), None), None),
            _ => (0, None),
        };
        Own { marks, limit_drops }
    }
}

/// Returns the number of packets that cake has marked. The result is meaningless for other disciplines.
fn cake_marks(statistics: &[u8]) -> u32 {
    let of_kind = |nested, wanted| attributes(nested).flatten().filter(move |(kind, _)| *kind == wanted);
    let tins = of_kind(statistics, TCA_CAKE_STATS_TIN_STATS).flat_map(|(_, tins)| attributes(tins).flatten());
    let marks = tins.flat_map(|(_, tin)| of_kind(tin, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS));
    marks.filter_map(|(_, bytes)| u32_at(bytes, 0)).fold(0, u32::wrapping_add)
}
