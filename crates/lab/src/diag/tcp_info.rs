//! Parses `struct tcp_info`, the kernel's state of a connection.
//!
//! The structure grows at its end: older kernels return a shorter one, and unknown fields at the end of a longer one
//! are ignored (tcp(7); include/uapi/linux/tcp.h of the kernel).
//!
//! Peculiarities of the kernel's counters:
//! - `tcpi_bytes_acked` counts sequence numbers. It therefore includes the SYN of the side that opened the connection,
//!   and the FIN once it is acknowledged. The parser subtracts the SYN, and in FIN-WAIT-2 and TIME-WAIT the FIN. The
//!   side that accepted the connection counts no SYN, so its result is one byte too low.
//! - `tcpi_total_retrans` and `tcpi_total_rto` include those of the SYN.
//! - `tcpi_pacing_rate` is also set for unpaced connections. See [`paces`].
//! - `tcpi_total_rto` has 16 bits and wraps to 0 after 65535.

use super::bytes::{u8_at, u16_at, u32_at, u64_at};
use super::sys;
use std::io;
use std::os::fd::BorrowedFd;

/// The kernel's state of a connection at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// TCP state as the kernel numbers it: 1 is established.
    pub state: u8,
    /// Whether a segment was received.
    pub has_received: bool,
    /// State of loss recovery as the kernel numbers it: 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Congestion window.
    pub cwnd_packets: u64,
    /// Slow-start threshold; `None` before it is set.
    pub ssthresh_packets: Option<u64>,
    /// Segments that were sent, and are neither acknowledged nor considered lost.
    pub inflight_packets: u64,
    /// Segments sent and not yet acknowledged cumulatively.
    pub unacked_packets: u64,
    /// Pacing rate; `None` if it is unlimited, or the congestion control does not request pacing.
    pub pacing_rate_bps: Option<u64>,
    /// Delivery-rate sample that the kernel reports; `None` before the first one, or if the application limited it.
    pub delivery_rate_bps: Option<u64>,
    /// Whether the application limited the delivery-rate sample that the kernel reports.
    pub is_app_limited: bool,
    /// Smoothed round-trip time.
    pub srtt_us: Option<u64>,
    /// Smallest round-trip time in the kernel's window (`net.ipv4.tcp_min_rtt_wlen`).
    pub min_rtt_us: Option<u64>,
    /// Acknowledged payload bytes; one too low for the side that accepted the connection.
    pub acked_bytes: u64,
    /// Payload bytes sent, without retransmissions.
    pub bytes_sent: u64,
    /// Payload bytes written to the socket and not yet sent.
    pub notsent_bytes: u64,
    /// Data segments sent, including retransmissions.
    pub segments: u64,
    /// Retransmitted segments, including the SYN.
    pub retransmits: u64,
    /// Delivered segments whose acknowledgement had ECE set.
    pub marked_segments: u64,
    /// Time in which data was waiting to be sent or acknowledged.
    pub busy_us: u64,
    /// Part of the busy time in which the receive window was the limit.
    pub rwnd_limited_us: u64,
    /// Part of the busy time in which the send buffer was the limit.
    pub sndbuf_limited_us: u64,
    /// Retransmission timeouts, including those of the SYN; `None` if the kernel does not report them (before 6.7).
    pub timeouts: Option<u64>,
}

/// Reads the state of one connection.
///
/// # Errors
/// If the descriptor is not a TCP socket, or the structure is shorter than that of any supported kernel.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0; LONGEST];
    let length = sys::tcp_option(socket, sys::TCP_INFO, &mut bytes)?;
    let mut info = TcpInfo::parse(&bytes[..length]).ok_or_else(|| {
        io::Error::other(format!(
            "this kernel returns {length} bytes of TCP_INFO, expected at least {SHORTEST} (Linux 5.10)"
        ))
    })?;
    let mut name = [0; sys::CC_NAME];
    let length = sys::tcp_option(socket, sys::TCP_CONGESTION, &mut name)?;
    if !paces(until_zero(&name[..length])) {
        info.pacing_rate_bps = None;
    }
    Ok(info)
}

/// Returns whether the kernel paces connections with this congestion control.
///
/// It does if the algorithm requests it (`sk_pacing_status`), which the kernel does not export. Of the kernel's own
/// algorithms, only BBR requests it; algorithms from other sources are assumed to. Pacing by the queue discipline fq or
/// with the socket option SO_MAX_PACING_RATE is ignored.
pub(super) fn paces(cc: &[u8]) -> bool {
    const WITHOUT: [&[u8]; 16] = [
        b"bic",
        b"cdg",
        b"cubic",
        b"dctcp",
        b"dctcp-reno",
        b"highspeed",
        b"htcp",
        b"hybla",
        b"illinois",
        b"lp",
        b"nv",
        b"reno",
        b"scalable",
        b"vegas",
        b"veno",
        b"westwood",
    ];
    !WITHOUT.contains(&cc) && cc != b"yeah"
}

pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Length up to `tcpi_snd_wnd` in bytes (kernel 5.4).
const SHORTEST: usize = 232;

/// Buffer size in bytes, with space for future fields.
const LONGEST: usize = 512;

/// Offset in bytes and mask of `tcpi_delivery_rate_app_limited`. The position of a bit field depends on the byte order
/// of the processor.
const APP_LIMITED: (usize, u8) = (7, if cfg!(target_endian = "little") { 0x01 } else { 0x80 });

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;

// In these states, the FIN has been acknowledged.
const FIN_WAIT2: u8 = 5;
const TIME_WAIT: u8 = 6;

const CLOSED: u8 = 7;

impl TcpInfo {
    /// Returns whether the connection is closed. All counters of an aborted connection are zero (`tcp_disconnect`). Its
    /// state may still be the former one, because the kernel reads it before it waits for the socket's lock; but every
    /// opened connection has received a segment.
    pub(super) fn is_closed(&self) -> bool {
        self.state == CLOSED || !self.has_received
    }

    /// Parses the kernel's structure; `None` if it is too short.
    pub(super) fn parse(bytes: &[u8]) -> Option<TcpInfo> {
        if bytes.len() < SHORTEST {
            return None;
        }
        let u32 = |offset: usize| u32_at(bytes, offset).map(u64::from);
        let u64 = |offset: usize| u64_at(bytes, offset);
        let bps = |bytes_per_s: u64| bytes_per_s.saturating_mul(8);

        let state = u8_at(bytes, 0)?;
        let is_app_limited = u8_at(bytes, APP_LIMITED.0)? & APP_LIMITED.1 != 0;
        let (unacked, sacked, lost, retransmitted) = (u32(24)?, u32(28)?, u32(32)?, u32(36)?);
        let bytes_sent = u64(200)?.saturating_sub(u64(208)?);
        let sequence_numbers = 1 + u64::from(state == FIN_WAIT2 || state == TIME_WAIT);
        Some(TcpInfo {
            state,
            has_received: u32(140)? > 0,
            ca_state: u8_at(bytes, 1)?,
            cwnd_packets: u32(80)?,
            ssthresh_packets: u32(76).filter(|packets| *packets < INFINITE_SSTHRESH),
            inflight_packets: (unacked + retransmitted).saturating_sub(sacked + lost),
            unacked_packets: unacked,
            pacing_rate_bps: u64(104).filter(|rate| *rate != u64::MAX).map(bps),
            delivery_rate_bps: u64(160).filter(|rate| *rate != 0 && !is_app_limited).map(bps),
            is_app_limited,
            srtt_us: u32(68).filter(|rtt| *rtt != 0),
            min_rtt_us: u32(148).filter(|rtt| *rtt != u64::from(u32::MAX)),
            acked_bytes: u64(120)?.saturating_sub(sequence_numbers).min(bytes_sent),
            bytes_sent,
            notsent_bytes: u32(144)?,
            segments: u32(156)?,
            retransmits: u32(100)?,
            marked_segments: u32(196)?,
            busy_us: u64(168)?,
            rwnd_limited_us: u64(176)?,
            sndbuf_limited_us: u64(184)?,
            timeouts: u16_at(bytes, 240).map(u64::from),
        })
    }
}
