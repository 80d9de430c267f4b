//! The rule `schedule`: accounts for the data that pacing owes, and for the part of it that the path can take at once.
//!
//! Pacing is a schedule: at every moment it determines how much data may have left. A sender that is off CPU falls
//! behind the schedule, and BBR does not catch up: it delivers less than the path carries, and mistakes that rate for
//! the path's bandwidth. This rule sends what pacing owes as soon as the sender is on CPU again.
//! docs/concepts/bbr-cpu.md derives the formulas.
//!
//! Amounts of data derived from a time are in byte-microseconds (bytes times 10^6).

use super::rule::{BW_SHIFT, Input, Output, mode};
use crate::fixed_point::Bandwidth;
use thalweg_units::Bytes;

/// A sender that has handled no ACK for longer than this (a silence) may have been off CPU: a burst is the data of
/// 2^-10 s, and its ACKs arrive together.
const STALL_US: u64 = 1000;

/// In Startup, a full window does not explain a silence longer than both this and two round trips. The value is half of
/// BBR's allowance for aggregated ACKs.
const FULL_STALL_US: u64 = 50_000;

/// The cost of stalls is averaged over this time or more, since short bursts of stalls also occur on a dedicated CPU.
const LATELY_US: u64 = 1 << 20;

/// Added to the time over which the cost of stalls is averaged: the first packets of a connection are late even without
/// a stall.
const DOUBT_US: u64 = 30_000;

/// Owed bytes are sent within the larger of these two: the time of a burst, and 1/RATIO of the longest stall, so that
/// the queue drains meanwhile. It is at most MAX, since the time on CPU may be shorter than 1/RATIO of a long stall.
const BURST_US: u64 = 1024;
const BURST_RATIO: u64 = 16;
const MAX_BURST_US: u64 = 10_000;

/// Longer times are clamped to this value. The rule is inactive if the minimum RTT is longer or unknown.
const MAX_US: u64 = 1 << 20;

/// A stall is remembered for this multiple of the sum of the minimum RTT and the longest stall.
const MEMORY_ROUNDS: u64 = 10;

/// The longest stall decays by 1/N with each shorter one.
const STALL_FADE: u64 = 8;

/// A bandwidth below one packet per 17 ms does not bound samples: stalls do not affect flows that are paced so slowly.
const MIN_BW: u64 = 1000;

/// At a stall, the debt is limited to this multiple of the data that pacing allows in the longest stall.
const OWED_STALLS: u64 = 2;

/// A loss ratio above 1/N is congestion.
const LOSS_RATIO: u64 = 50;

/// Number of lost packets beyond that ratio before it counts as congestion.
const LOSS_EXCESS: u64 = 10;

/// Congestion reduces the window to the first percentage. One round trip later it grows by a quarter of the delivered
/// packets up to the second percentage, and then by 1/256 of them.
const CAP_KEPT_PERCENT: u64 = 70;
const CAP_KNOWN_PERCENT: u64 = 90;
const CAP_SHIFT: u32 = 8;
const CAP_BACK_SHIFT: u32 = 2;

/// Stalls empty the path. An RTT that exceeds the minimum by at most 1/N confirms the minimum.
const MIN_RTT_RATIO: u64 = 8;

const MIN_CWND: u64 = 4;

/// The state of loss recovery after a timeout.
const CA_LOSS: u64 = 4;

const US_PER_S: u64 = 1_000_000;

/// Data sent ahead of the schedule is counted up to the largest burst.
const MAX_AHEAD: i64 = 65_536 * US_PER_S as i64;

/// Maximum number of bytes sent between two ACKs, so that products fit.
const MAX_BYTES: u64 = 1 << 24;

/// The rule's state of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::bbr_cpu) struct Schedule {
    /// Stalls that cost at most 1/N of the time are left to BBR.
    missed_ratio: u64,
    /// A silence counts as a stall only if the sender missed more than this of the schedule in it.
    min_missed_us: u64,

    /// Time of the previous ACK; 0: no previous ACK.
    seen_us: u64,
    /// Time from which pacing allowed the next packet.
    free_us: u64,
    bytes_sent: u64,
    /// BBR's pacing rate, and this rule's.
    rate: u64,
    set_rate: u64,
    set_cwnd: u64,
    delivered: u64,
    lost: u64,

    /// Recent totals: time available for sending, and the part of it missed off CPU.
    passed_us: u64,
    missed_us: u64,

    /// Debt of pacing in byte-microseconds; negative: data was sent ahead.
    owed: i64,

    /// Longest recent stall; 0: too rare to compensate, and the members below are unused, except `last_stall_us` and
    /// those for Startup.
    stall_us: u64,
    last_stall_us: u64,
    stalled_at_us: u64,
    /// Maximum bandwidth between stalls, in the current time window and in the previous one.
    bw: u64,
    bw_before: u64,
    bw_since_us: u64,
    /// Start of the bandwidth sample.
    mark_us: u64,
    mark_delivered: u64,

    /// Startup: BBR's count of round trips without growth, the number of them with a stall, the time at which the last
    /// of these was counted, and whether a stall has begun since.
    full_bw_count: u32,
    flat_stalls: u32,
    flat_at_us: u64,
    has_stalled: bool,

    /// In units of 1/50 packet: losses beyond 2 %, and losses not yet offset by deliveries.
    excess: u64,
    unpaid: u64,
    /// Packets that the path can hold, times 256; 0: no known bound.
    cap: u64,
    /// Level up to which the cap recovers quickly.
    known: u64,
    /// Maximum number of packets in flight since the last congestion.
    peak: u64,
    /// Value of `delivered` at which the last congestion has passed.
    settled: Option<u64>,
}

impl Schedule {
    pub fn new(missed_ratio: u64, min_missed_us: u64) -> Schedule {
        Schedule { missed_ratio, min_missed_us, ..Schedule::default() }
    }

    /// Returns the corrected interval of a rate sample of `delivered` packets in `interval_us`.
    ///
    /// ACKs that wait for the CPU are handled at the same moment, so a sample that begins between them is too fast.
    /// Therefore, samples are limited to the ACK rate between stalls.
    pub fn interval_us(&self, now_us: u64, min_rtt_us: u64, delivered: u64, interval_us: u64) -> u64 {
        let most = self.bw.max(self.bw_before);
        if most < MIN_BW || !self.is_stalling(now_us, min_rtt_us) || delivered << BW_SHIFT <= most * interval_us {
            return interval_us;
        }
        (delivered << BW_SHIFT) / most
    }

    /// Processes an ACK that BBR has handled.
    pub fn step(&mut self, input: &Input) -> Output {
        let mut output = Output::default();
        if input.min_rtt_us > MAX_US {
            // Events before the RTT becomes shorter are not counted later.
            (self.seen_us, self.delivered, self.lost) = (0, input.delivered, input.lost);
            return output;
        }
        let free_us = input.departure_us.max(input.now_us);
        if self.stall_us > 0 && !self.is_stalling(input.now_us, input.min_rtt_us) {
            self.forget();
        }
        if self.account(input, free_us) {
            self.on_stall(input, (input.now_us - self.seen_us).min(MAX_US));
        }
        output.is_min_rtt_fresh = self.stall_us > 0
            && input.rtt_us > 0
            && input.rtt_us <= input.min_rtt_us + input.min_rtt_us / MIN_RTT_RATIO
            && input.mode != mode::PROBE_RTT;
        if self.stall_us > 0 && self.on_losses(input) && input.mode == mode::STARTUP && input.bw > 0 {
            output.is_startup_over = true;
        }
        output.full_bw_count = self.startup_count(input);
        let (bound, is_kept_full) = self.bound(input);
        let cwnd = bound.or(self.opened(input));
        output.snd_cwnd = cwnd;
        let is_boosted = self.owed > 0 && input.mode != mode::PROBE_RTT && (is_kept_full || self.has_room(input));
        let own = input.pacing_rate_bytes_per_s;
        // The next burst includes the debt, unless stalls are long.
        let rate = if is_boosted {
            let within_us = (self.stall_us / BURST_RATIO).clamp(BURST_US, MAX_BURST_US);
            own.saturating_add(self.owed.unsigned_abs() / within_us).min(input.max_pacing_rate_bytes_per_s)
        } else {
            own
        };
        output.pacing_rate_bytes_per_s = is_boosted.then_some(rate);
        output.is_boosted = is_boosted;

        self.seen_us = input.now_us;
        self.free_us = free_us;
        self.bytes_sent = input.bytes_sent;
        self.rate = own;
        self.set_rate = rate;
        self.set_cwnd = cwnd.unwrap_or(input.snd_cwnd);
        self.delivered = input.delivered;
        self.lost = input.lost;
        output
    }

    /// Returns whether the sender has recently been off CPU.
    fn is_stalling(&self, now_us: u64, min_rtt_us: u64) -> bool {
        self.stall_us > 0 && now_us - self.stalled_at_us < MEMORY_ROUNDS * (min_rtt_us + self.stall_us)
    }

    /// Resets the state that is valid only while stalls are recent.
    fn forget(&mut self) {
        self.stall_us = 0;
        (self.bw, self.bw_before) = (0, 0);
        (self.excess, self.unpaid, self.cap, self.known, self.peak) = (0, 0, 0, 0, 0);
        self.settled = None;
    }

    /// Updates the debt of pacing with this ACK. Returns whether the sender was off CPU before it, and stalls have
    /// recently cost more than is left to BBR.
    fn account(&mut self, input: &Input, free_us: u64) -> bool {
        let away_us = (input.now_us - self.seen_us).min(MAX_US);
        let passed_us = free_us.saturating_sub(self.free_us).min(MAX_US);
        let sent = (input.bytes_sent - self.bytes_sent).min(MAX_BYTES);
        let scheduled = self.rate * passed_us;

        // The path, the receiver, the application or BBR itself held the sender back.
        let is_probing_rtt = input.mode == mode::PROBE_RTT;
        let is_held_back = input.is_held_back || input.prior_inflight == 0 || input.ca_state == CA_LOSS;
        if self.seen_us == 0 || is_held_back || is_probing_rtt {
            self.owed = 0;
            if is_probing_rtt && self.stall_us > 0 {
                self.stalled_at_us = input.now_us;
            }
            return false;
        }
        let owed = self.owed + scheduled as i64 - (sent * US_PER_S) as i64;
        self.passed_us += passed_us;
        if self.passed_us > LATELY_US.max(MEMORY_ROUNDS * (input.min_rtt_us + self.last_stall_us)) {
            self.passed_us /= 2;
            self.missed_us /= 2;
        }

        // If cwnd is too small for a burst, the path may be the reason for the silence. Exceptions: stalls are known,
        // or the silence is longer than the path can cause and this ACK covers less than the path delivers in it.
        let needed = input.prior_inflight * input.mss + (self.rate >> 10) + 2 * input.mss;
        let is_full = needed > self.set_cwnd * input.mss;
        let is_long = input.mode == mode::STARTUP
            && away_us > FULL_STALL_US.max(2 * input.min_rtt_us)
            && (input.bw * away_us) >> BW_SHIFT > input.acked + MIN_CWND;
        if away_us > STALL_US && (self.stall_us > 0 || !is_full || is_long) {
            // Packets sent at a raised rate used less of the schedule's time.
            let paced = if self.set_rate > self.rate { sent * self.rate / self.set_rate } else { sent };
            let missed = scheduled.saturating_sub(paced * US_PER_S);
            if missed > self.rate * self.min_missed_us {
                self.missed_us += missed / self.rate;
                self.last_stall_us = away_us;
                self.has_stalled = true;
                if self.missed_us * self.missed_ratio > self.passed_us + DOUBT_US {
                    let most = OWED_STALLS * self.rate * self.stall_us.max(away_us);
                    self.owed = owed.min(most as i64);
                    return true;
                }
            }
        }
        // Only stalls are compensated, not late timers or a full window.
        self.owed = owed.min(self.owed.max(0)).max(-MAX_AHEAD);
        false
    }

    /// Handles a stall: the sender was off CPU for `away_us` until now. The ACK before a stall was handled when it
    /// arrived, so two such ACKs at least a round trip apart yield a valid bandwidth sample.
    fn on_stall(&mut self, input: &Input, away_us: u64) {
        let lasted_us = self.seen_us - self.mark_us;
        if self.stall_us == 0 {
            (self.mark_us, self.mark_delivered) = (self.seen_us, self.delivered);
        } else if lasted_us > 0 && lasted_us >= input.min_rtt_us {
            if self.seen_us - self.bw_since_us > MEMORY_ROUNDS * (input.min_rtt_us + self.stall_us) {
                (self.bw_before, self.bw, self.bw_since_us) = (self.bw, 0, self.seen_us);
            }
            self.bw = self.bw.max(((self.delivered - self.mark_delivered) << BW_SHIFT) / lasted_us);
            (self.mark_us, self.mark_delivered) = (self.seen_us, self.delivered);
        }
        self.stall_us = (self.stall_us - self.stall_us / STALL_FADE).max(away_us);
        self.stalled_at_us = input.now_us;
    }

    /// Learns from losses how much data the path can take at once. Returns whether there is congestion.
    fn on_losses(&mut self, input: &Input) -> bool {
        let acked = input.delivered - self.delivered;
        let lost = (input.lost - self.lost) * LOSS_RATIO;
        self.peak = self.peak.max(input.prior_inflight);
        // Before the window grows again, delivered packets must offset each loss, up to one window of losses.
        self.unpaid = (self.unpaid + lost).min(self.peak * LOSS_RATIO).saturating_sub(acked);
        // Losses among the packets in flight at the last congestion belong to that congestion.
        if self.settled.is_some_and(|settled| input.delivered < settled) {
            return false;
        }
        self.settled = None;
        self.excess = (self.excess + lost).saturating_sub(acked);
        if self.excess <= LOSS_EXCESS * LOSS_RATIO {
            if self.cap < self.known {
                self.cap = (self.cap + (acked << (CAP_SHIFT - CAP_BACK_SHIFT))).min(self.known);
            } else if self.cap > 0 && self.unpaid == 0 {
                self.cap += acked;
            }
            return false;
        }
        let floor = ((input.bw * input.min_rtt_us) >> BW_SHIFT).max(MIN_CWND);
        let before = if self.cap > 0 { (self.cap >> CAP_SHIFT).min(self.peak) } else { self.peak };
        self.cap = (before * CAP_KEPT_PERCENT / 100).max(floor) << CAP_SHIFT;
        self.known = (before << CAP_SHIFT) * CAP_KNOWN_PERCENT / 100;
        self.settled = Some(input.delivered + input.prior_inflight);
        self.excess = 0;
        self.peak = input.prior_inflight;
        true
    }

    /// Returns the corrected count of round trips without growth; `None`: unchanged. The rate is measured from stall to
    /// stall, and several round trips can pass between two stalls: only one of these is to count. So the count is held
    /// at one until every counted round trip had a stall of its own.
    fn startup_count(&mut self, input: &Input) -> Option<u32> {
        if input.full_bw_count == 0 {
            self.flat_stalls = 0;
        } else if input.full_bw_count > self.full_bw_count
            && self.has_stalled
            && input.now_us - self.flat_at_us >= input.min_rtt_us + self.stall_us
        {
            self.flat_stalls += 1;
            self.flat_at_us = input.now_us;
            self.has_stalled = false;
        }
        let is_held = self.stall_us > 0
            && input.mode == mode::STARTUP
            && input.full_bw_count > 1
            && self.flat_stalls < input.full_bw_count;
        self.full_bw_count = if is_held { 1 } else { input.full_bw_count };
        is_held.then_some(1)
    }

    /// Returns the window for a sender with stalls, if it exceeds BBR's. With stalls the window must cover a round trip
    /// and a stall: twice that in Startup, to grow, and a quarter more in ProbeBW, to probe. It opens as in slow start.
    fn opened(&self, input: &Input) -> Option<u64> {
        let needed = (input.bw * (input.min_rtt_us + self.stall_us)) >> BW_SHIFT;
        let wanted = match input.mode {
            mode::STARTUP => 2 * needed,
            mode::PROBE_BW => needed + needed / 4,
            _ => return None,
        };
        // Relative to cwnd before this ACK, which BBR may already have increased by `acked`.
        let cwnd = wanted.min(input.prior_cwnd + input.acked);
        (self.stall_us > 0 && cwnd > input.snd_cwnd).then_some(cwnd)
    }

    /// Returns whether less is in flight than the data of a round trip and the last stall at BBR's rate, plus BBR's
    /// headroom of three bursts. If more is in flight, the debt results from an overestimated bandwidth.
    fn has_room(&self, input: &Input) -> bool {
        let rate = input.pacing_rate_bytes_per_s;
        let headroom = 3 * (rate >> 10).max(2 * input.mss);
        (input.inflight * input.mss).saturating_sub(headroom) * US_PER_S
            < rate * (input.min_rtt_us + self.last_stall_us)
    }

    /// Returns the window, if the path bounds it. Also returns whether the bound is below 1.25 times the data of a
    /// round trip and a stall, and not used up: then it is kept full, and its unused part is owed.
    fn bound(&mut self, input: &Input) -> (Option<u64>, bool) {
        if self.stall_us == 0 || self.cap == 0 || input.mode == mode::PROBE_RTT {
            return (None, false);
        }
        let cap = self.cap >> CAP_SHIFT;
        let wanted = (input.bw * (input.min_rtt_us + self.stall_us)) >> BW_SHIFT;
        let is_kept_full = wanted + wanted / 4 > cap && cap > input.inflight;
        if is_kept_full {
            self.owed = ((cap - input.inflight) * input.mss * US_PER_S) as i64;
        }
        // The cap accounts for losses of bursts; BBR's own bounds ignore stalls.
        let cwnd = self.opened(input).unwrap_or(input.snd_cwnd).max(input.unbounded_cwnd.unwrap_or(0));
        (Some(cwnd.min(cap)), is_kept_full)
    }

    /// Passes the values that the rule reports to `take`.
    pub fn report(&self, mss: Bytes, take: &mut dyn FnMut(&'static str, f64)) {
        let stall_bw = Bandwidth::from_raw(self.bw.max(self.bw_before));
        take("owed_bytes", self.owed.max(0) as f64 / US_PER_S as f64);
        take("stall_us", self.stall_us as f64);
        take("stall_bw_bps", stall_bw.rate(mss).0 as f64);
        take("cap_packets", (self.cap >> CAP_SHIFT) as f64);
    }
}
