//! The receive window and its buffer.
//!
//! The buffer grows to `rcvbuf_max` with the amount that the application reads per round trip (dynamic right-sizing). A
//! part of it is usable as window; the rest is for bookkeeping. That part is half (`tcp_adv_win_scale` = 1) on Linux
//! 6.1; from 6.6 on the ratio of payload to memory of the largest segment that has arrived (`scaling_ratio`, in
//! 256ths). The right edge of the window never moves back.
//!
//! Approximations: segments beyond a gap take the memory of [`KernelGeneration::held_memory`]. In-order data takes
//! memory only while it is handled, since the application reads immediately; hence the window never closes. Segments
//! beyond the window or the buffer are accepted, since the sender respects the window.

use crate::kernel::{Held, KernelGeneration, MAX_FRAGMENTS};
use crate::packet::{Data, Timestamp};
use thalweg_units::{Bytes, Span, Time};

/// Initial size of the buffer in bytes: second value of net.ipv4.tcp_rmem.
const BUFFER_INITIAL: u64 = 131_072;
/// Part of the buffer that is usable as window before it is measured, in 256ths: TCP_DEFAULT_SCALING_RATIO since 6.10.
const RATIO_INITIAL: u64 = 128;
/// Minimum of the window's limit in bytes once the ratio is measured: half of SOCK_MIN_RCVBUF.
const CLAMP_MIN: u64 = 1152;
/// Maximum window that fits in the header without scaling, as in the SYN-ACK.
const UNSCALED_MAX: u64 = 65_535;
/// Segments of the initial window (RFC 6928), the reference for the first round trip.
const INITIAL_SEGMENTS: u64 = 10;
/// Bytes of headers and bookkeeping of a segment: 320 for headers, 256 and 320 for descriptors.
const SEGMENT_OVERHEAD: u64 = 320 + 256 + 320;

#[derive(Clone, Copy, Debug)]
pub(super) struct Selected {
    /// Size in bytes from the left edge.
    pub size: u64,
    /// Whether the free part of the buffer allows less than half of the maximum window.
    pub is_short: bool,
}

/// The receive window and its buffer. All sizes are in bytes.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    mss: u64,
    kernel: KernelGeneration,
    /// Part of the buffer that is usable as window, in 256ths, on kernels that measure it.
    ratio: u64,
    buffer: u64,
    buffer_max: u64,
    /// Windows are multiples of 2^scale.
    scale: u32,
    /// Maximum window that the buffer allows.
    clamp: u64,
    opened: u64,
    right_edge: u64,
    /// The window in the last ACK.
    advertised: u64,
    /// Eight times the round-trip time as measured by the receiver, in ns; 0: unknown.
    rtt_8: u64,
    /// The latest echoed timestamp.
    last_tsecr: Option<Timestamp>,
    /// Stream offset at which the current window-based round trip ends.
    window_round_end: u64,
    /// Start of that round trip; `None` before the first.
    window_round_at: Option<Time>,
    /// Stream offset at which the current measurement of reading began.
    read_from: u64,
    /// Start time of that measurement.
    read_at: Time,
    /// Maximum number of bytes read in a round trip so far; at first, the initial window.
    read_before: u64,
}

impl ReceiveWindow {
    pub fn new(mss: Bytes, buffer_max: Bytes, kernel: KernelGeneration) -> ReceiveWindow {
        // The window must hold two segments; otherwise the sender would wait for delayed ACKs.
        let buffer_max = buffer_max.0.max(4 * mss.0);
        let buffer = BUFFER_INITIAL.min(buffer_max);
        let scale = (0..14).find(|scale| UNSCALED_MAX << scale >= buffer_max).unwrap_or(14);
        let mut window = ReceiveWindow {
            mss: mss.0,
            kernel,
            ratio: RATIO_INITIAL,
            buffer,
            buffer_max,
            scale,
            clamp: 0,
            opened: 0,
            right_edge: 0,
            advertised: 0,
            rtt_8: 0,
            last_tsecr: None,
            window_round_end: 0,
            window_round_at: None,
            read_from: 0,
            read_at: Time::ZERO,
            read_before: 0,
        };
        window.opened = window.initial();
        window.right_edge = window.opened;
        window.advertised = window.opened;
        window
    }

    /// Returns the window in the SYN-ACK.
    pub fn initial(&self) -> u64 {
        let space = self.space(self.buffer).min(UNSCALED_MAX);
        if space > self.mss { space - space % self.mss } else { space }
    }

    /// Initializes the window when the connection is established.
    pub fn establish(&mut self, now: Time) {
        // One segment is reserved.
        let most = self.space(self.buffer);
        self.clamp = most.saturating_sub(self.mss).max(2 * self.mss);
        self.opened = self.opened.min(self.clamp);
        self.read_at = now;
        self.read_before = self.opened.min(INITIAL_SEGMENTS * self.mss).max(1);
    }

    /// Returns the window in the last ACK.
    pub fn advertised(&self) -> u64 {
        self.advertised
    }

    /// Returns the round-trip time as measured by the receiver; zero before it is known.
    pub fn rtt(&self) -> Span {
        Span(self.rtt_8 / 8)
    }

    /// Returns the window for an ACK at `next_bytes` with `held` beyond a gap.
    pub fn select(&mut self, next_bytes: u64, held: Held) -> Selected {
        let free = self.free(held);
        let full = self.space(self.buffer).min(self.clamp);
        let size = free.min(self.opened);
        let unit = 1u64 << self.scale;
        let size = size.div_ceil(unit) * unit;
        let present = self.right_edge.saturating_sub(next_bytes).div_ceil(unit) * unit;
        self.advertised = size.max(present);
        self.right_edge = next_bytes + self.advertised;
        Selected { size: self.advertised, is_short: free < full / 2 }
    }

    /// Opens the window for a segment that has arrived, if there is space. Returns whether it has opened.
    pub fn grow(&mut self, len: u32, held: Held) -> bool {
        let room = self.clamp.min(self.free(held)).saturating_sub(self.opened);
        // A segment whose payload is below the window share of its memory opens the window only by twice its payload.
        let is_full = self.space(self.kernel.segment_memory()) <= u64::from(len);
        let step = if is_full { 2 * self.mss.max(u64::from(len)) } else { 2 * u64::from(len) };
        self.opened += step.min(room);
        room > 0
    }

    /// Samples the round-trip time from the echoed timestamp of a full segment.
    pub fn measure_rtt(&mut self, now: Time, data: &Data, full_size: u32) {
        if self.last_tsecr == Some(data.tsecr) {
            return;
        }
        self.last_tsecr = Some(data.tsecr);
        if data.len < full_size {
            return;
        }
        let ticks = Timestamp::at(now).0.saturating_sub(data.tsecr.0).max(1);
        let sample = u64::from(ticks) * 1_000_000;
        // A smaller sample replaces the estimate; a larger one has a weight of 1/8.
        let is_shorter = self.rtt_8 == 0 || sample * 8 < self.rtt_8;
        self.rtt_8 = if is_shorter { sample * 8 } else { self.rtt_8 - self.rtt_8 / 8 + sample };
    }

    /// Samples the round-trip time as the time in which a complete window arrives, which is at least a round trip.
    pub fn measure_rtt_by_window(&mut self, now: Time, next_bytes: u64) {
        if let Some(began) = self.window_round_at {
            if next_bytes < self.window_round_end {
                return;
            }
            let sample = now.since(began).0.max(1_000) * 8;
            self.rtt_8 = if self.rtt_8 == 0 { sample } else { self.rtt_8.min(sample) };
        }
        self.window_round_end = next_bytes + self.advertised;
        self.window_round_at = Some(now);
    }

    /// Measures the part of the buffer that is usable as window, from a segment of `len` payload bytes.
    pub fn measure_ratio(&mut self, len: u32) {
        if !self.kernel.measures_window() {
            return;
        }
        let memory = self.kernel.segment_memory();
        self.ratio = ((u64::from(len) << 8) / memory).clamp(1, 255);
        let clamp = self.space(self.buffer).max(CLAMP_MIN);
        if clamp < self.clamp {
            self.opened = self.opened.min(clamp);
        } else {
            self.opened = self.opened.max(self.advertised.min(clamp));
        }
        self.clamp = clamp;
        self.read_before = self.read_before.min(clamp);
    }

    /// Handles a read of the application up to `next_bytes`: the segment that ends at `arrived`, and the data beyond
    /// the gap that it has filled. The last segment beyond a gap ends `span` bytes after `next_bytes`.
    pub fn on_read(&mut self, now: Time, arrived: u64, next_bytes: u64, span: u64) {
        if self.rtt_8 == 0 || now.since(self.read_at).0 < self.rtt_8 / 8 {
            return;
        }
        let waiting = self.waiting(arrived, next_bytes);
        let read_to = next_bytes - waiting;
        let read = (read_to - self.read_from).saturating_sub(waiting);
        if read > self.read_before {
            self.expand(read, self.read_before, span);
            self.read_before = read;
        }
        self.read_from = read_to;
        self.read_at = now;
    }

    /// Returns the bytes still in the receive queue when the application has copied the first socket buffer: the
    /// arrived segment, unless all data that follows it fits into the same buffer. Returns 0 for kernels that do not
    /// subtract them.
    fn waiting(&self, arrived: u64, next_bytes: u64) -> u64 {
        let joined = next_bytes - arrived;
        if self.kernel.subtracts_queue() && joined >= MAX_FRAGMENTS * self.mss { joined } else { 0 }
    }

    /// Handles a segment beyond a gap. The last such segment ends `span` bytes after the in-order data.
    pub fn on_gap(&mut self, span: u64) {
        if self.kernel.grows_for_gaps() {
            self.expand(self.read_before, self.read_before, span);
        }
    }

    /// Makes the buffer large enough for `read` bytes per round trip. `before` is the previous maximum.
    fn expand(&mut self, read: u64, before: u64, span: u64) {
        let reserve = if self.kernel.grows_for_gaps() { 0 } else { 16 * self.mss };
        let needed = u128::from(2 * read + reserve);
        // 128-bit divisions are slow.
        let growth = if read == before { 0 } else { needed * u128::from(read - before) / u128::from(before) };
        let span = if self.kernel.grows_for_gaps() { span } else { 0 };
        let window = needed + 2 * growth + u128::from(span);
        let buffer = if self.kernel.measures_window() {
            let scaled = window << 8;
            u64::try_from(scaled).map_or_else(|_| scaled / u128::from(self.ratio), |it| u128::from(it / self.ratio))
        } else {
            window / u128::from(self.mss) * u128::from(segment_memory(self.mss))
        };
        let buffer = u64::try_from(buffer).unwrap_or(u64::MAX).min(self.buffer_max);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = self.space(buffer);
        }
    }

    /// Returns the window for a buffer of this size.
    fn space(&self, buffer: u64) -> u64 {
        if self.kernel.measures_window() { (buffer * self.ratio) >> 8 } else { halve(buffer) }
    }

    /// Returns the window for the free part of the buffer.
    fn free(&self, held: Held) -> u64 {
        let memory = self.kernel.held_memory(held, self.mss);
        self.space(self.buffer.saturating_sub(memory))
    }
}

/// Returns the window for a buffer of this size on Linux 6.1.
fn halve(buffer: u64) -> u64 {
    buffer - buffer / 2
}

/// Returns the memory per segment for which Linux 6.1 sizes the buffer: half of it holds the payload.
fn segment_memory(mss: u64) -> u64 {
    let mut memory = mss + SEGMENT_OVERHEAD;
    while halve(memory) < mss {
        memory += 128;
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_units::MSS;

    const ROUND_TRIP: Span = Span::from_millis(40);

    /// Returns the buffer after a round trip in which 100 segments were read. One of them fills a gap in front of the
    /// last `joined`.
    fn buffer_after(kernel: KernelGeneration, joined: u64) -> u64 {
        let mut window = ReceiveWindow::new(MSS, Bytes(6 << 20), kernel);
        window.establish(Time::ZERO);
        window.measure_ratio(MSS.0 as u32);
        window.rtt_8 = ROUND_TRIP.0 * 8;
        window.on_read(Time::ZERO + ROUND_TRIP, (100 - joined) * MSS.0, 100 * MSS.0, 0);
        window.buffer
    }

    #[test]
    fn linux_6_12_subtracts_what_waits_in_the_receive_queue_from_what_was_read() {
        // tcp_rcv_space_adjust runs after the first socket buffer: 20 segments were read, less 80 that are still
        // queued.
        assert_eq!(buffer_after(KernelGeneration::Linux6_12, 80), BUFFER_INITIAL);
        assert!(buffer_after(KernelGeneration::Linux6_12, 20) > BUFFER_INITIAL, "80 less 20 are");
        // MAX_SKB_FRAGS: 16 segments fit into the socket buffer of the previous one, and nothing is queued.
        let full_buffer = buffer_after(KernelGeneration::Linux6_12, 0);
        assert_eq!(buffer_after(KernelGeneration::Linux6_12, 16), full_buffer);
        assert!(buffer_after(KernelGeneration::Linux6_12, 17) < full_buffer);
        assert_eq!(
            buffer_after(KernelGeneration::Linux6_1, 80),
            buffer_after(KernelGeneration::Linux6_1, 0),
            "6.1 subtracts nothing"
        );
    }

    #[test]
    fn on_linux_6_12_segments_beyond_a_gap_share_socket_buffers() {
        // tcp_ooo_try_coalesce: 34 segments in a row fill two socket buffers of 17 fragments.
        let in_a_row = Held { bytes: 34 * MSS.0, runs: 1 };
        let apart = Held { bytes: 34 * MSS.0, runs: 34 };
        let kernel = KernelGeneration::Linux6_12;
        assert!(kernel.held_memory(in_a_row, MSS.0) < 34 * 1_600);
        assert!(kernel.held_memory(apart, MSS.0) >= 34 * kernel.segment_memory());
        assert_eq!(KernelGeneration::Linux6_1.held_memory(in_a_row, MSS.0), 34 * 2728);
    }
}
