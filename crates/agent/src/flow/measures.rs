//! Derives quantities from the fields of a single event.

use super::off_cpu::OffCpu;
use super::record_event::{RTT_FEW, RecordEvent};
use super::rtt::percentile_us;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kernel's number of the address family IPv4.
pub const AF_INET: u32 = 2;

/// BBR's bandwidth is in packets per microsecond, times two to this power.
const BBR_BW_SHIFT: u32 = 24;

/// Minimum number of BBR samples in PROBE_BW.
const MIN_BBR_SAMPLES: u32 = 10;

/// The off-CPU share that BBR's probing gain of 1.25 just compensates: 1 - 1/1.25.
const AWAY_SHARE: f64 = 0.2;

/// Off-CPU share that suffices if too little was in flight in at least half of the samples (`look_at_bbr` in
/// bpf/flow/flow.h).
const SOME_AWAY_SHARE: f64 = 0.05;

/// Minimum number of rounds after the first for [`is_paced_by_application`].
const PACED_ROUNDS: u32 = 2;

/// Decodes a name from 64-bit words, padded with NUL.
pub fn name(words: [u64; 2]) -> String {
    let bytes = bytes(words);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Decodes an address in network byte order; `None` if the family is 0, which means unknown. IPv4-mapped IPv6 addresses
/// are returned as IPv4.
pub fn address(family: u32, words: [u64; 2]) -> Option<IpAddr> {
    let bytes = bytes(words);
    match family {
        0 => None,
        AF_INET => Some(IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))),
        _ => Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()),
    }
}

fn bytes(words: [u64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&words[1].to_ne_bytes());
    bytes
}

/// Returns `None` for 0, which is how the kernel reports an unknown value.
pub fn known(value: impl Into<u64>) -> Option<u64> {
    Some(value.into()).filter(|value| *value > 0)
}

/// Returns the smallest round-trip time in microseconds; `None` without samples, for which the kernel reports the
/// largest number.
pub fn smallest_rtt_us(event: &RecordEvent) -> Option<u64> {
    known(event.rtt_min_us).filter(|_| event.rtt_min_us != u32::MAX)
}

/// Returns whether a time is at least two jiffies, and so precise enough for a rate. An interval of one jiffy may be as
/// short as a microsecond.
pub fn is_measured(jiffies: u32) -> bool {
    jiffies >= 2
}

/// Returns the 95th percentile of the round-trip times, in microseconds; `None` without samples or without a histogram.
/// With fewer than `RTT_FEW` samples, it equals their maximum and needs no histogram.
pub fn p95_us(event: &RecordEvent) -> Option<u64> {
    let largest_us = known(event.rtt_max_us)?;
    if event.rtt_samples < RTT_FEW {
        return Some(largest_us);
    }
    percentile_us(&event.rtt_histogram, 95, smallest_rtt_us(event).unwrap_or(0), largest_us)
}

/// Returns the largest round-trip time minus the smallest, in units of the smallest.
pub fn buffer_bdp(event: &RecordEvent) -> Option<f64> {
    let smallest = smallest_rtt_us(event)?;
    let largest = known(event.rtt_max_us)?;
    Some(largest.saturating_sub(smallest) as f64 / smallest as f64)
}

/// Returns whether the application, not the network, set the pace of a transfer: most rounds after the first were
/// app-limited.
pub fn is_paced_by_application(event: &RecordEvent) -> bool {
    let rounds = event.rtt_samples.saturating_sub(1);
    rounds >= PACED_ROUNDS && 2 * event.app_limited_samples > rounds
}

/// Returns whether a BBR connection was short of CPU: the machine was off CPU for a larger share of time than BBR can
/// compensate, or for a smaller share while too little was in flight. `None` with too few samples.
pub fn cpu_limited(event: &RecordEvent, off_cpu: &OffCpu) -> Option<bool> {
    if event.bbr_samples < MIN_BBR_SAMPLES {
        return None;
    }
    let off_cpu = off_cpu.share(event.start_us, event.end_us)?;
    // If these limited most of the busy time, a shortage of CPU did not.
    let limited_jiffies = u64::from(event.rwnd_limited_jiffies) + u64::from(event.sndbuf_limited_jiffies);
    if 2 * limited_jiffies > u64::from(event.busy_jiffies) {
        return Some(false);
    }
    let is_short = 2 * u64::from(event.bbr_short_samples) >= u64::from(event.bbr_samples);
    Some(off_cpu >= AWAY_SHARE || (off_cpu >= SOME_AWAY_SHARE && is_short))
}

/// Returns the kernel's latest delivery rate sample, in bits per second.
pub fn delivery_rate_bps(event: &RecordEvent) -> Option<u64> {
    rate_bps(event.rate_packets, event.rate_interval_us, event.mss_bytes)
}

/// Returns the largest delivery rate sample that was not app-limited, in bits per second.
pub fn delivery_rate_max_bps(event: &RecordEvent) -> Option<u64> {
    rate_bps(event.rate_max_packets, event.rate_max_interval_us, event.mss_bytes)
}

fn rate_bps(packets: u32, interval_us: u32, mss_bytes: u32) -> Option<u64> {
    if packets == 0 || mss_bytes == 0 {
        return None;
    }
    // The product may exceed 64 bits.
    let bits = u128::from(packets) * u128::from(mss_bytes) * 8 * 1_000_000;
    let rate = bits.checked_div(u128::from(interval_us))?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Returns BBR's bandwidth in bits per second.
pub fn bbr_bw_bps(event: &RecordEvent) -> u64 {
    let bits = u128::from(event.bbr_bw) * u128::from(event.mss_bytes) * 8 * 1_000_000;
    u64::try_from(bits >> BBR_BW_SHIFT).unwrap_or(u64::MAX)
}
