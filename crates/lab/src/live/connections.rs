//! Samples connections, and finds those that are short of CPU.
//!
//! Two quantities are evaluated for a connection that BBR paces and that mostly had data to send: the share of samples
//! with less than one BDP in flight (the rule of arXiv:2601.05665, as in bpf/cc/cpu_rules/paper.h), and the machine's
//! off-CPU share. The first alone misses collapsed connections: their BBR underestimates the BDP as a few packets, and
//! these are in flight.

use super::machine::Machine;
use super::namespaces::Namespace;
use crate::diag::{CcInfo, Surveyed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A connection whose data was acknowledged during the observation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connection {
    /// Inode number of the network namespace.
    pub netns: u64,
    /// Name for that namespace, such as a container or unit in it; `None` if unknown.
    pub netns_name: Option<String>,
    /// Local address and port.
    pub local: String,
    /// Address and port of the peer.
    pub remote: String,
    /// Congestion control.
    pub algorithm: String,
    /// Acknowledged bits per second.
    pub goodput_bps: f64,
    /// BBR's bandwidth estimate; `None` if the algorithm does not export one.
    pub bw_bps: Option<u64>,
    /// Smoothed round-trip time.
    pub srtt_us: Option<u64>,
    /// Smallest round-trip time.
    pub min_rtt_us: Option<u64>,
    /// Congestion window.
    pub cwnd_packets: u64,
    /// Percentage of samples with less than one BDP in flight, among those in PROBE_BW that the application did not
    /// limit; `None` if these are too few.
    pub short_percent: Option<f64>,
    /// The verdict on the connection.
    pub verdict: Verdict,
}

/// Verdict on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No sign of a CPU shortage.
    Fine,
    /// BBR, slowed down by a CPU shortage.
    ShortOfCpu,
    /// The connection uses `bbr_cpu`, which compensates for CPU shortage.
    Cured,
    /// The algorithm is not BBR.
    NotBbr,
    /// Something else limits the connection for most of the time, or too few samples were in PROBE_BW.
    HeldBack,
}

/// Off-CPU share from which on BBR cannot compensate with its probing gain of 1.25.
const AWAY_PERCENT: f64 = 20.0;

/// Off-CPU share from which on a connection counts as short of CPU if less than a BDP is in flight in at least half of
/// the samples.
const SOME_AWAY_PERCENT: f64 = 5.0;
const SHORT_PERCENT: f64 = 50.0;

/// Minimum number of samples in PROBE_BW that the application did not limit.
const LOOKS: u64 = 10;

/// Minimum share of time with data to send; also the maximum share of this busy time in which the receive window or the
/// send buffer may be the limit.
const BUSY_SHARE: f64 = 0.5;

/// BBR's cwnd gain in PROBE_BW, in units of 1/256. No other mode of the kernel's BBR uses this value.
const PROBE_BW_CWND_GAIN: u32 = 512;

#[derive(Debug, Default)]
pub(super) struct Connections {
    at: Duration,
    /// Keyed by network namespace and socket id.
    by_socket: BTreeMap<(u64, u64), Observed>,
}

#[derive(Debug)]
struct Observed {
    first: (Duration, Surveyed),
    last: (Duration, Surveyed),
    smoothed_inflight_bytes: Option<u64>,
    judged: u64,
    short: u64,
}

impl Connections {
    /// Starts a sample at this time.
    pub fn begin(&mut self, at: Duration) {
        self.at = at;
    }

    /// Records a sample of a connection.
    pub fn take(&mut self, netns: u64, connection: Surveyed) {
        let now = (self.at, connection);
        match self.by_socket.get_mut(&(netns, now.1.cookie)) {
            Some(observed) => {
                observed.last = now;
                observed.look();
            }
            None => {
                let mut observed =
                    Observed { first: now.clone(), last: now, smoothed_inflight_bytes: None, judged: 0, short: 0 };
                observed.look();
                self.by_socket.insert((netns, observed.first.1.cookie), observed);
            }
        }
    }

    /// Returns the number of connections in the latest sample.
    pub fn established(&self) -> usize {
        self.by_socket.values().filter(|connection| connection.last.0 == self.at).count()
    }

    /// Returns the number of connections of a network namespace in the latest sample.
    pub fn established_in(&self, netns: u64) -> usize {
        let of = self.by_socket.range((netns, u64::MIN)..=(netns, u64::MAX));
        of.filter(|(_, connection)| connection.last.0 == self.at).count()
    }

    /// Returns the connections whose data was acknowledged, fastest first.
    pub fn judge(self, machine: &Machine, namespaces: &[Namespace]) -> Vec<Connection> {
        let name = |netns| {
            namespaces.iter().find(|namespace| namespace.netns == netns).and_then(|namespace| namespace.name.clone())
        };
        let busy = self.by_socket.into_iter().filter(|(_, connection)| connection.acked_bytes() > 0);
        let judged = busy.map(|((netns, _), connection)| Connection {
            netns,
            netns_name: name(netns),
            ..connection.judge(machine)
        });
        let mut connections: Vec<Connection> = judged.collect();
        connections.sort_by(|a, b| b.goodput_bps.total_cmp(&a.goodput_bps));
        connections
    }
}

impl Observed {
    /// Checks whether less than one BDP is in flight, smoothed over samples: the rule of the paper. Retransmissions are
    /// not counted.
    fn look(&mut self) {
        let info = &self.last.1.socket.info;
        let CcInfo::Bbr { bw_bps, min_rtt_us, cwnd_gain, .. } = self.last.1.socket.cc else { return };
        if cwnd_gain != PROBE_BW_CWND_GAIN || info.is_app_limited {
            return;
        }
        let inflight = info.bytes_sent.saturating_sub(info.acked_bytes);
        let smoothed = self.smoothed_inflight_bytes.map_or(inflight, |before| before - before / 4 + inflight / 4);
        self.smoothed_inflight_bytes = Some(smoothed);
        let bdp_bytes = bw_bps as f64 / 8.0 * min_rtt_us as f64 / 1e6;
        self.judged += 1;
        self.short += u64::from((smoothed as f64) < bdp_bytes);
    }

    fn acked_bytes(&self) -> u64 {
        let acked = |(_, connection): &(Duration, Surveyed)| connection.socket.info.acked_bytes;
        acked(&self.last).saturating_sub(acked(&self.first))
    }

    fn judge(&self, machine: &Machine) -> Connection {
        let Surveyed { algorithm, socket, .. } = &self.last.1;
        let lasted = self.last.0.saturating_sub(self.first.0).as_secs_f64();
        let bw_bps = match socket.cc {
            CcInfo::Bbr { bw_bps, .. } => Some(bw_bps),
            _ => None,
        };
        let short_percent = (self.judged >= LOOKS).then(|| 100.0 * self.short as f64 / self.judged as f64);
        Connection {
            netns: 0,
            netns_name: None,
            local: socket.local.to_string(),
            remote: socket.remote.to_string(),
            algorithm: algorithm.clone(),
            goodput_bps: 8.0 * self.acked_bytes() as f64 / lasted.max(1e-3),
            bw_bps,
            srtt_us: socket.info.srtt_us,
            min_rtt_us: socket.info.min_rtt_us,
            cwnd_packets: socket.info.cwnd_packets,
            short_percent,
            verdict: self.verdict(short_percent, machine.away_percent()),
        }
    }

    fn verdict(&self, short_percent: Option<f64>, away_percent: f64) -> Verdict {
        match self.last.1.algorithm.as_str() {
            "bbr_cpu" => return Verdict::Cured,
            name if !name.starts_with("bbr") => return Verdict::NotBbr,
            _ => {}
        }
        let Some(short_percent) = short_percent.filter(|_| !self.is_held_back()) else { return Verdict::HeldBack };
        let is_explained = away_percent >= SOME_AWAY_PERCENT && short_percent >= SHORT_PERCENT;
        if away_percent >= AWAY_PERCENT || is_explained { Verdict::ShortOfCpu } else { Verdict::Fine }
    }

    /// Returns whether the connection was mostly idle, or its busy time mostly limited by the receive window or the
    /// send buffer.
    fn is_held_back(&self) -> bool {
        let (before, after) = (&self.first.1.socket.info, &self.last.1.socket.info);
        let busy_us = after.busy_us.saturating_sub(before.busy_us) as f64;
        let held_us = (after.rwnd_limited_us + after.sndbuf_limited_us)
            .saturating_sub(before.rwnd_limited_us + before.sndbuf_limited_us) as f64;
        let lasted_us = self.last.0.saturating_sub(self.first.0).as_micros() as f64;
        busy_us < BUSY_SHARE * lasted_us || held_us > BUSY_SHARE * busy_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{Socket, TcpInfo};

    /// 100 Mbit/s, which is a BDP of 125 kB at 10 ms.
    const BW_BPS: u64 = 100_000_000;
    const BDP_BYTES: u64 = 125_000;

    const NETNS: u64 = 7;

    fn namespaces() -> [Namespace; 1] {
        [Namespace { netns: NETNS, name: Some("ip netns blue".to_owned()), own: true, established: 1 }]
    }

    const AWAY: Machine = Machine {
        cpus: 1,
        steal_percent: Some(30.0),
        pressure_percent: None,
        stalled_percent: 0.0,
        longest_stall_us: 0,
        is_realtime: false,
    };

    /// Returns a connection in PROBE_BW with this number of bytes in flight.
    fn seen(algorithm: &str, inflight_bytes: u64, change: impl Fn(u64, &mut TcpInfo)) -> Connections {
        let mut connections = Connections::default();
        for look in 0..=50 {
            let acked_bytes = 10_000 * look;
            let mut info = TcpInfo {
                acked_bytes,
                bytes_sent: acked_bytes + inflight_bytes,
                busy_us: 20_000 * look,
                ..TcpInfo::default()
            };
            change(look, &mut info);
            let cc = CcInfo::Bbr { bw_bps: BW_BPS, min_rtt_us: 10_000, pacing_gain: 256, cwnd_gain: 512 };
            let (local, remote) = ("192.0.2.1:80".parse().unwrap(), "[2001:db8::1]:4000".parse().unwrap());
            connections.begin(Duration::from_millis(20 * look));
            let socket = Socket { local, remote, info, cc };
            connections.take(NETNS, Surveyed { cookie: 7, algorithm: algorithm.to_owned(), socket });
        }
        connections
    }

    fn judged(connections: Connections, machine: &Machine) -> Connection {
        let [only] = &connections.judge(machine, &namespaces())[..] else { panic!("one connection") };
        only.clone()
    }

    fn verdict(algorithm: &str, inflight_bytes: u64, machine: &Machine) -> Verdict {
        judged(seen(algorithm, inflight_bytes, |_, _| {}), machine).verdict
    }

    #[test]
    fn bbr_is_short_of_cpu_if_the_machine_is_off_cpu_for_more_than_a_fifth_of_the_time() {
        assert_eq!(verdict("bbr", BDP_BYTES, &AWAY), Verdict::ShortOfCpu);
        assert_eq!(verdict("bbr", BDP_BYTES, &Machine { steal_percent: Some(19.0), ..AWAY }), Verdict::Fine);
        assert_eq!(verdict("bbr", BDP_BYTES, &Machine::default()), Verdict::Fine);
    }

    #[test]
    fn less_off_cpu_time_suffices_if_less_than_one_bdp_is_in_flight() {
        let machine = Machine { steal_percent: Some(10.0), ..AWAY };
        assert_eq!(verdict("bbr", BDP_BYTES - 1, &machine), Verdict::ShortOfCpu);
        assert_eq!(verdict("bbr", BDP_BYTES, &machine), Verdict::Fine);
        assert_eq!(verdict("bbr", BDP_BYTES - 1, &Machine::default()), Verdict::Fine);
    }

    #[test]
    fn other_algorithms_and_bbr_cpu_are_never_short_of_cpu() {
        assert_eq!(verdict("cubic", 0, &AWAY), Verdict::NotBbr);
        assert_eq!(verdict("bbr_cpu", 0, &AWAY), Verdict::Cured);
    }

    #[test]
    fn a_connection_limited_by_something_else_is_not_short_of_cpu() {
        let idle = seen("bbr", BDP_BYTES, |look, info| info.busy_us = 5_000 * look);
        assert_eq!(judged(idle, &AWAY).verdict, Verdict::HeldBack);
        let receiver = seen("bbr", BDP_BYTES, |look, info| info.rwnd_limited_us = 15_000 * look);
        assert_eq!(judged(receiver, &AWAY).verdict, Verdict::HeldBack);
        let application = seen("bbr", BDP_BYTES, |_, info| info.is_app_limited = true);
        assert_eq!(judged(application, &AWAY).verdict, Verdict::HeldBack);
    }

    #[test]
    fn values_cover_the_time_in_which_the_connection_was_observed() {
        let connection = judged(seen("bbr", BDP_BYTES / 2, |_, _| {}), &AWAY);
        assert_eq!(connection.goodput_bps, 4_000_000.0);
        assert_eq!((connection.bw_bps, connection.short_percent), (Some(BW_BPS), Some(100.0)));
        assert_eq!((connection.netns, connection.netns_name.as_deref()), (NETNS, Some("ip netns blue")));
        assert_eq!((connection.local.as_str(), connection.remote.as_str()), ("192.0.2.1:80", "[2001:db8::1]:4000"));
    }

    #[test]
    fn an_idle_connection_is_counted_and_not_shown() {
        let silent = seen("bbr", 0, |_, info| info.acked_bytes = 0);
        assert_eq!((silent.established(), silent.established_in(NETNS), silent.established_in(8)), (1, 1, 0));
        assert_eq!(silent.judge(&AWAY, &namespaces()), []);
    }
}
