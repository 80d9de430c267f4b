//! State that a congestion control exports (`union tcp_cc_info`, include/uapi/linux/inet_diag.h of the kernel).

use super::bytes::{u16_at, u32_at};
use super::sys;
use super::tcp_info::until_zero;
use std::io;
use std::os::fd::BorrowedFd;

/// State that a congestion control exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CcInfo {
    /// The algorithm exports no state.
    #[default]
    None,
    /// BBR, any version.
    Bbr {
        /// Estimate of the bottleneck's rate.
        bw_bps: u64,
        /// Estimate of the path's round-trip time; 0 before the first sample.
        min_rtt_us: u64,
        /// Gain of the pacing rate, in 1/256.
        pacing_gain: u32,
        /// Gain of the congestion window, in 1/256.
        cwnd_gain: u32,
    },
    /// Vegas and the algorithms that export the same structure. The meaning of the round-trip times depends on the
    /// algorithm.
    Vegas {
        /// `tcpv_enabled`: for Vegas false while it behaves like Reno, for Illinois and Westwood always true.
        is_enabled: bool,
        /// Number of RTT samples in this round; 0 for Westwood.
        rtt_count: u32,
        /// `tcpv_rtt`: for Vegas and YeAH the minimum since nothing was in flight, for Illinois the mean of this round,
        /// for Westwood the latest sample.
        rtt_us: u32,
        /// `tcpv_minrtt`: for Vegas and YeAH the minimum of this round, for Illinois the all-time minimum, for Westwood
        /// the minimum since the latest timeout.
        min_rtt_us: u32,
    },
    /// DCTCP.
    Dctcp {
        /// Whether the connection negotiated ECN; without it, DCTCP behaves like Reno.
        is_enabled: bool,
        /// Whether the latest received packet was marked.
        ce_state: u16,
        /// Moving average of the share of marked segments, in 1/1024.
        alpha: u32,
        /// Marked bytes in this round.
        marked_bytes: u32,
        /// Delivered bytes in this round.
        total_bytes: u32,
    },
}

/// Keys that [`CcInfo::report`] passes.
pub(super) const KEYS: &[&str] = &[
    "bw_bps",
    "min_rtt_us",
    "pacing_gain",
    "cwnd_gain",
    "vegas_enabled",
    "vegas_rtt_count",
    "vegas_rtt_us",
    "vegas_min_rtt_us",
    "dctcp_enabled",
    "dctcp_ce_state",
    "dctcp_alpha",
    "dctcp_marked_bytes",
    "dctcp_total_bytes",
];

/// Reads the state of one connection's congestion control.
///
/// # Errors
/// If the descriptor is not a TCP socket.
pub fn cc_info(socket: BorrowedFd<'_>) -> io::Result<CcInfo> {
    let mut name = [0; sys::CC_NAME];
    let name_length = sys::tcp_option(socket, sys::TCP_CONGESTION, &mut name)?;
    let mut bytes = [0; 128];
    let length = sys::tcp_option(socket, sys::TCP_CC_INFO, &mut bytes)?;
    let bytes = &bytes[..length];
    // getsockopt does not report which of the three structures it returns, unlike a dump.
    let info = match until_zero(&name[..name_length]) {
        [b'b', b'b', b'r', ..] => CcInfo::parse_bbr(bytes),
        b"dctcp" | b"dctcp-reno" => CcInfo::parse_dctcp(bytes),
        b"vegas" | b"yeah" | b"illinois" | b"westwood" | b"nv" => CcInfo::parse_vegas(bytes),
        _ => None,
    };
    Ok(info.unwrap_or_default())
}

impl CcInfo {
    /// Passes the values with their keys to `take`. Gains and DCTCP's alpha are converted to ratios.
    pub fn report(&self, take: &mut dyn FnMut(&'static str, f64)) {
        match *self {
            CcInfo::None => {}
            CcInfo::Bbr { bw_bps, min_rtt_us, pacing_gain, cwnd_gain } => {
                take("bw_bps", bw_bps as f64);
                take("min_rtt_us", min_rtt_us as f64);
                take("pacing_gain", f64::from(pacing_gain) / 256.0);
                take("cwnd_gain", f64::from(cwnd_gain) / 256.0);
            }
            CcInfo::Vegas { is_enabled, rtt_count, rtt_us, min_rtt_us } => {
                take("vegas_enabled", f64::from(u8::from(is_enabled)));
                take("vegas_rtt_count", f64::from(rtt_count));
                take("vegas_rtt_us", f64::from(rtt_us));
                take("vegas_min_rtt_us", f64::from(min_rtt_us));
            }
            CcInfo::Dctcp { is_enabled, ce_state, alpha, marked_bytes, total_bytes } => {
                take("dctcp_enabled", f64::from(u8::from(is_enabled)));
                take("dctcp_ce_state", f64::from(ce_state));
                take("dctcp_alpha", f64::from(alpha) / 1024.0);
                take("dctcp_marked_bytes", f64::from(marked_bytes));
                take("dctcp_total_bytes", f64::from(total_bytes));
            }
        }
    }

    /// Parses `struct tcp_bbr_info`; `None` if it is too short.
    pub(super) fn parse_bbr(bytes: &[u8]) -> Option<CcInfo> {
        let (low, high) = (u64::from(u32_at(bytes, 0)?), u64::from(u32_at(bytes, 4)?));
        Some(CcInfo::Bbr {
            bw_bps: (high << 32 | low).saturating_mul(8),
            // The kernel reports all ones before the first sample, and the simulator reports 0.
            min_rtt_us: match u32_at(bytes, 8)? {
                u32::MAX => 0,
                rtt => u64::from(rtt),
            },
            pacing_gain: u32_at(bytes, 12)?,
            cwnd_gain: u32_at(bytes, 16)?,
        })
    }

    /// Parses `struct tcpvegas_info`; `None` if it is too short.
    pub(super) fn parse_vegas(bytes: &[u8]) -> Option<CcInfo> {
        Some(CcInfo::Vegas {
            is_enabled: u32_at(bytes, 0)? != 0,
            rtt_count: u32_at(bytes, 4)?,
            rtt_us: u32_at(bytes, 8)?,
            min_rtt_us: u32_at(bytes, 12)?,
        })
    }

    /// Parses `struct tcp_dctcp_info`; `None` if it is too short.
    pub(super) fn parse_dctcp(bytes: &[u8]) -> Option<CcInfo> {
        Some(CcInfo::Dctcp {
            is_enabled: u16_at(bytes, 0)? != 0,
            ce_state: u16_at(bytes, 2)?,
            alpha: u32_at(bytes, 4)?,
            marked_bytes: u32_at(bytes, 8)?,
            total_bytes: u32_at(bytes, 12)?,
        })
    }
}
