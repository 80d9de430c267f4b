//! Converts events of the BPF programs to rows.

use super::files::Addresses;
use crate::flow::cgroups;
use crate::flow::clock::Clock;
use crate::flow::measures::{
    address, bbr_bw_bps, buffer_bdp, cpu_limited, delivery_rate_bps, delivery_rate_max_bps, is_measured,
    is_paced_by_application, known, name, p95_us, smallest_rtt_us,
};
use crate::flow::off_cpu::OffCpu;
use crate::flow::reason::Reason;
use crate::flow::record_event::{Kind, RecordEvent, flag, state};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use thalweg_trace::RecordRow;

/// Errno values of a reset connection: ECONNRESET, ECONNREFUSED, and EPIPE for a reset after the peer's FIN.
const RESETS: [u32; 3] = [104, 111, 32];

/// Errno value of a socket that was aborted by `ss --kill`.
const ECONNABORTED: u32 = 103;

/// Bits of a connection's ECN flags: negotiated as in RFC 3168, and AccECN.
const ECN_AGREED: u32 = 1 | 1 << 4;

/// The kernel's value of BBR's min_rtt before the first sample.
const BBR_UNKNOWN_RTT: u32 = u32::MAX;

const TEXTS: usize = 4096;

/// Converts events to rows.
#[derive(Debug)]
pub struct RowBuilder {
    machine: Rc<str>,
    addresses: Addresses,
    sampled_one_in: u64,
    jiffy_ns: u64,
    cgroups: cgroups::Paths,
    off_cpu: Arc<OffCpu>,
    /// Names of the arms, in the order of the programs' numbers.
    arms: Vec<Rc<str>>,
    names: HashMap<[u64; 2], Rc<str>>,
    last_name: Last<[u64; 2]>,
    /// Formatted addresses, by the recorded part of the address.
    texts: HashMap<IpAddr, Rc<str>>,
    /// For the local and the remote address.
    last_texts: [Last<IpAddr>; 2],
    last_cgroup: Last<u64>,
}

/// Cache of the latest text, because successive rows often have the same one.
#[derive(Debug)]
struct Last<K>(Option<(K, Rc<str>)>);

impl<K> Default for Last<K> {
    fn default() -> Last<K> {
        Last(None)
    }
}

impl<K: PartialEq> Last<K> {
    fn or(&mut self, key: K, find: impl FnOnce(&K) -> Option<Rc<str>>) -> Option<Rc<str>> {
        match &self.0 {
            Some((last, text)) if *last == key => Some(Rc::clone(text)),
            _ => {
                let text = find(&key)?;
                self.0 = Some((key, Rc::clone(&text)));
                Some(text)
            }
        }
    }
}

impl RowBuilder {
    /// Returns a builder for this machine.
    pub fn new(
        addresses: Addresses,
        sampled_one_in: u64,
        jiffy_ns: u64,
        cgroups: cgroups::Paths,
        off_cpu: Arc<OffCpu>,
        arms: &[Arc<str>],
    ) -> RowBuilder {
        let name = rustix::system::uname();
        let machine = Rc::from(&*name.nodename().to_string_lossy());
        RowBuilder {
            machine,
            addresses,
            sampled_one_in,
            jiffy_ns,
            cgroups,
            off_cpu,
            arms: arms.iter().map(|name| Rc::from(&**name)).collect(),
            names: HashMap::new(),
            last_name: Last::default(),
            texts: HashMap::new(),
            last_texts: [Last::default(), Last::default()],
            last_cgroup: Last::default(),
        }
    }

    /// Converts an event to a row. `is_unseen`: the connection has closed, but the kernel did not report it.
    #[allow(clippy::too_many_lines, reason = "a table: a line for each column")]
    pub fn row(&mut self, event: &RecordEvent, clock: &Clock, is_unseen: bool) -> RecordRow {
        let is_transfer = event.kind() == Some(Kind::Transfer);
        let connection = if is_transfer { None } else { Some(event) };
        // For fields of the socket, which are unknown for transfers and once the socket no longer exists.
        let open = connection.filter(|_| event.kind() != Some(Kind::Gone));
        let is_joined = event.is(flag::JOINED);
        // The programs have no RTT samples of connections that only scans observe.
        let sampled = Some(event).filter(|event| event.rtt_samples > 0);
        let duration_us = (event.start_us > 0).then(|| event.end_us.saturating_sub(event.start_us));
        let fct_us = duration_us.filter(|_| is_transfer && event.is(flag::COMPLETE) && !is_paced_by_application(event));
        let [local, remote] = [event.local_address, event.remote_address].map(|words| address(event.family, words));
        let direction = match (is_joined, event.is(flag::OUTGOING)) {
            (true, _) => None,
            (false, true) => Some("out"),
            (false, false) => Some("in"),
        };
        let has_endpoints = local.is_some();
        let keeps_port = direction == Some("out") || self.addresses.keep_remote_ports();
        let end_us = clock.unix_us(event.end_us);
        let busy_us = self.jiffies_us(event.busy_jiffies);
        let is_bbr = event.bbr_bw > 0;
        let mark = |at: usize| {
            connection.filter(|event| !is_joined && event.marks > at as u32).map(|event| event.acked_after_bytes[at])
        };
        let number = |value: u32| Some(u64::from(value));
        let of_socket = |value: fn(&RecordEvent) -> u32| open.map(|event| u64::from(value(event)));
        RecordRow {
            end_us,
            connection: event.connection,
            kind: if is_unseen { "close" } else { kind_name(event) },
            transfer: is_transfer.then_some(event.transfer.into()),
            source: "agent",
            machine: Some(Rc::clone(&self.machine)),
            start_us: duration_us.map(|duration_us| end_us.saturating_sub(duration_us)),
            duration_us,
            joined: Some(is_joined),
            sampled_one_in: Some(self.sampled_one_in),
            ip_version: local.map(|local| if local.is_ipv4() { 4 } else { 6 }),
            local_address: local.and_then(|local| self.text(0, local)),
            local_port: has_endpoints.then_some(event.local_port.into()),
            remote_address: remote.and_then(|remote| self.text(1, remote)),
            remote_port: (has_endpoints && keeps_port).then_some(event.remote_port.into()),
            direction,
            netns: number(event.netns),
            cgroup: known(event.cgroup).and_then(|cgroup| self.cgroup(cgroup)),
            cc_at_open: self.name(event.cc_at_open),
            cc: self.name(event.cc),
            assignment: event.reason().assignment(),
            untouched_because: untouched_because(event.reason()),
            assigned_cc: self.assigned_cc(event),
            close: if is_unseen { Some("unseen") } else { closed_by(event) },
            sent_bytes: Some(event.sent_bytes),
            acked_bytes: Some(event.acked_bytes),
            received_bytes: open.map(|event| event.received_bytes),
            retransmitted_bytes: Some(event.retransmitted_bytes),
            segments: number(event.segments),
            retransmits: number(event.retransmits),
            segments_out: of_socket(|event| event.segments_out),
            segments_in: of_socket(|event| event.segments_in),
            lost_packets: of_socket(|event| event.lost_packets),
            reordering: of_socket(|event| event.reordering),
            reorderings: of_socket(|event| event.reorderings),
            ecn: open.map(|event| event.ecn_flags & ECN_AGREED != 0),
            ce_packets: of_socket(|event| event.ce_packets),
            mss_bytes: of_socket(|event| event.mss_bytes),
            rtt_handshake_us: connection.and_then(|event| known(event.rtt_handshake_us)),
            rtt_min_us: smallest_rtt_us(event),
            rtt_smoothed_us: known(event.rtt_smoothed_us),
            rtt_p95_us: connection.and_then(p95_us),
            rtt_max_us: sampled.and_then(|event| known(event.rtt_max_us)),
            delivery_rate_bps: delivery_rate_bps(event),
            delivery_rate_app_limited: (event.rate_packets > 0).then_some(event.rate_is_app_limited != 0),
            delivery_rate_max_bps: delivery_rate_max_bps(event),
            busy_us: Some(busy_us),
            rwnd_limited_us: Some(self.jiffies_us(event.rwnd_limited_jiffies)),
            sndbuf_limited_us: Some(self.jiffies_us(event.sndbuf_limited_jiffies)),
            app_limited_share: sampled.map(|event| f64::from(event.app_limited_samples) / f64::from(event.rtt_samples)),
            busy_goodput_bps: is_measured(event.busy_jiffies)
                .then(|| bits_per_second(event.acked_bytes, busy_us))
                .flatten(),
            acked_1s_bytes: mark(0),
            acked_3s_bytes: mark(1),
            acked_10s_bytes: mark(2),
            acked_30s_bytes: mark(3),
            bbr_bw_bps: is_bbr.then(|| bbr_bw_bps(event)),
            bbr_min_rtt_us: known(event.bbr_min_rtt_us).filter(|_| is_bbr && event.bbr_min_rtt_us != BBR_UNKNOWN_RTT),
            cpu_limited: cpu_limited(event, &self.off_cpu),
            buffer_bdp: connection.and_then(buffer_bdp),
            fct_us,
            goodput_bps: fct_us.and_then(|fct_us| bits_per_second(event.acked_bytes, fct_us)),
        }
    }

    /// Changes the form of recorded addresses.
    pub fn set_addresses(&mut self, addresses: Addresses) {
        self.addresses = addresses;
        self.texts.clear();
        self.last_texts = Default::default();
    }

    fn jiffies_us(&self, jiffies: u32) -> u64 {
        u64::from(jiffies) * self.jiffy_ns / 1_000
    }

    /// Formats an address; `end` is 0 for the local and 1 for the remote one.
    fn text(&mut self, end: usize, address: IpAddr) -> Option<Rc<str>> {
        let RowBuilder { addresses, texts, last_texts, .. } = self;
        last_texts[end].or(address, |address| {
            if texts.len() >= TEXTS {
                texts.clear();
            }
            let text = texts.entry(addresses.kept(*address)).or_insert_with(|| addresses.text(*address));
            Some(Rc::clone(text))
        })
    }

    fn cgroup(&mut self, number: u64) -> Option<Rc<str>> {
        let RowBuilder { cgroups, last_cgroup, .. } = self;
        last_cgroup.or(number, |number| cgroups.of(*number).map(|path| Rc::from(&*path)))
    }

    /// Returns the algorithm that was chosen for the connection, or the default that a connection of the comparison
    /// kept. `None` for others, and if the kernel did not set the algorithm.
    fn assigned_cc(&mut self, event: &RecordEvent) -> Option<Rc<str>> {
        match (event.reason(), event.slot()) {
            (Reason::Refused, _) => None,
            (_, Some(slot)) => self.arms.get(slot).cloned(),
            (Reason::Treated | Reason::HeldOut, None) => self.name(event.cc_at_open),
            _ => None,
        }
    }

    /// Decodes a name; `None` if it is empty.
    fn name(&mut self, words: [u64; 2]) -> Option<Rc<str>> {
        let RowBuilder { names, last_name, .. } = self;
        last_name.or(words, |&words| {
            (words[0] != 0).then(|| Rc::clone(names.entry(words).or_insert_with(|| Rc::from(name(words)))))
        })
    }
}

fn kind_name(event: &RecordEvent) -> &'static str {
    match event.kind() {
        Some(Kind::Transfer) => "transfer",
        Some(Kind::Close | Kind::Gone) => "close",
        Some(Kind::Interim | Kind::Snapshot) | None => "interim",
    }
}

/// Returns the reason why a connection is not part of the comparison; `None` if it is, or without a decision.
fn untouched_because(reason: Reason) -> Option<&'static str> {
    (reason.assignment() == Some("untouched")).then(|| reason.name())
}

/// Returns how a connection closed. A socket error shows a reset or a timeout; without one, the last state shows who
/// sent the first FIN, or else this host reset the connection.
fn closed_by(event: &RecordEvent) -> Option<&'static str> {
    if event.kind() != Some(Kind::Close) {
        return None;
    }
    Some(match (event.error, event.state) {
        (error, _) if RESETS.contains(&error) => "remote_reset",
        (0, state::LAST_ACK) => "remote_fin",
        (0, state::FIN_WAIT2 | state::CLOSING) => "local_fin",
        (0 | ECONNABORTED, _) => "local_reset",
        _ => "timeout",
    })
}

fn bits_per_second(bytes: u64, us: u64) -> Option<f64> {
    (us > 0).then(|| 8e6 * bytes as f64 / us as f64)
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
