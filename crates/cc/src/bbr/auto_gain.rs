//! The probing gain of `bbr_auto`, which depends on losses and queueing.
//!
//! `bbr_auto` sets the gain of each probe from the measurements since the start of the previous one:
//!
//! ```text
//!   least  = auto_min_gain / (1 - base)
//!   target = auto_max_gain - auto_loss_response x excess - auto_queue_response x queue, or least if that is more;
//!            at most 1.9
//!   gain   = gain + auto_weight x (target - gain)
//! ```
//!
//! | value | meaning |
//! | --- | --- |
//! | base | share of packets lost while cruising: losses that do not depend on the gain |
//! | excess | share lost because of the probe: that of the probe and up to two rounds after it, less base |
//! | queue | mean queueing delay while cruising, in minimum round-trip times |
//!
//! A path that loses packets at random needs a gain of at least 1 / (1 - base): below that a probe delivers less than
//! the bandwidth, and BBR's estimate falls. So random loss raises the minimum gain.
//!
//! bpf/cc/bbr_tuned/auto_gain.h implements the same arithmetic for the kernel.

use super::settings::{GAIN, Word, word};
use crate::fixed_point::Gain;
use crate::{Ack, Param};
use thalweg_units::Span;

/// Maximum number of rounds after a probe whose losses count as the probe's: a loss is detected a round trip after the
/// packet was sent.
const PROBE_TAIL_ROUNDS: u32 = 2;

/// Shares of packets are in units of 1 / 2^SHARE_SHIFT.
const SHARE_SHIFT: u32 = 16;

/// Maximum gain, in 256ths: the end of the range of `probe_gain`.
const MAX_GAIN: u64 = 256 * 19 / 10;

/// Parameters of the rule. The defaults were found by the search in studies/better-bbr.
pub(crate) const PARAMS: [Param; 5] = [
    param("auto_max_gain", "probing gain on a path without loss or queueing", 1.109, 1.0, 1.9),
    param("auto_min_gain", "lower bound of the probing gain, net of random loss", 1.02, 1.0, 1.9),
    param("auto_loss_response", "decrease of the gain per unit of a probe's excess loss ratio", 6.554, 0.0, 20.0),
    param("auto_queue_response", "decrease of the gain per minimum RTT of queueing delay", 0.656, 0.0, 2.0),
    param("auto_weight", "weight of the latest probe in the gain", 0.2444, 0.01, 1.0),
];

const fn param(name: &'static str, about: &'static str, default: f64, min: f64, max: f64) -> Param {
    Param { name, about, default, min, max, is_whole: false }
}

/// The rule's parameters, in 256ths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    max_gain: u64,
    min_gain: u64,
    loss: u64,
    queue: u64,
    weight: u64,
}

impl Response {
    /// Returns the response for the values that `value` returns for the names of [`PARAMS`].
    pub fn of(value: &dyn Fn(&str) -> f64) -> Response {
        let raw = |name| Gain::of(value(name)).raw();
        Response {
            max_gain: raw("auto_max_gain"),
            min_gain: raw("auto_min_gain"),
            loss: raw("auto_loss_response"),
            queue: raw("auto_queue_response"),
            weight: raw("auto_weight").max(1),
        }
    }

    /// Returns the last members of `struct tuned_params` in bpf/cc/bbr_tuned/tuned.h; zeros without the rule.
    pub fn words(response: Option<&Response>) -> [Word; 5] {
        let value = |of: fn(&Response) -> u64| response.map_or(0, of);
        [
            word("auto_max_gain", value(|it| it.max_gain), GAIN),
            word("auto_min_gain", value(|it| it.min_gain), GAIN),
            word("auto_loss_response", value(|it| it.loss), GAIN),
            word("auto_queue_response", value(|it| it.queue), GAIN),
            word("auto_weight", value(|it| it.weight), GAIN),
        ]
    }

    /// Returns the target gain in 256ths. `base` and `excess` are shares of packets in units of 2^-16; `queue` is the
    /// queueing delay in 256ths of the minimum round-trip time.
    fn target(&self, base: u64, excess: u64, queue: u64) -> u64 {
        let reduction = ((excess * self.loss) >> SHARE_SHIFT) + ((queue * self.queue) >> 8);
        let least = (self.min_gain << SHARE_SHIFT) / ((1 << SHARE_SHIFT) - base).max(1);
        self.max_gain.saturating_sub(reduction).max(least).min(MAX_GAIN)
    }
}

/// Counts of packets in a part of the cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    delivered: u64,
    lost: u64,
}

impl Tally {
    fn add(&mut self, ack: &Ack) {
        self.delivered += ack.acked.0;
        self.lost += ack.lost.0;
    }

    /// Returns the share of packets lost, in units of 2^-16.
    fn share(&self) -> u64 {
        (self.lost << SHARE_SHIFT) / (self.lost + self.delivered).max(1)
    }
}

/// Measurements since the start of the latest probe, and the gain.
#[derive(Debug)]
pub(super) struct AutoGain {
    response: Response,
    /// The gain in units of 2^-16, so that a small weight has an effect.
    gain: u64,
    probe: Tally,
    cruise: Tally,
    /// Sum of the queueing delays while cruising, in microseconds, and the number of samples.
    queued_us: u64,
    samples: u64,
    /// Number of rounds for which losses still count as the probe's.
    tail_rounds: u32,
}

impl AutoGain {
    /// Starts with `gain`.
    pub fn new(response: Response, gain: Gain) -> AutoGain {
        let none = Tally::default();
        AutoGain {
            response,
            gain: gain.raw() << 8,
            probe: none,
            cruise: none,
            queued_us: 0,
            samples: 0,
            tail_rounds: 0,
        }
    }

    /// Handles an ACK in ProbeBW. `is_probing` is set in a probing phase.
    pub fn update(&mut self, ack: &Ack, min_rtt: Option<Span>, is_round_start: bool, is_probing: bool) {
        if is_probing {
            self.tail_rounds = PROBE_TAIL_ROUNDS;
        } else if is_round_start {
            self.tail_rounds = self.tail_rounds.saturating_sub(1);
        }
        if self.tail_rounds > 0 {
            self.probe.add(ack);
            return;
        }
        self.cruise.add(ack);
        if let (Some(rtt), Some(min_rtt)) = (ack.rtt, min_rtt) {
            self.queued_us += rtt.as_micros().saturating_sub(min_rtt.as_micros());
            self.samples += 1;
        }
    }

    /// Starts a probe and returns its gain.
    pub fn on_probe(&mut self, min_rtt: Option<Span>) -> Gain {
        if self.probe.delivered > 0 {
            let base = self.cruise.share();
            let excess = self.probe.share().saturating_sub(base);
            let path_us = self.samples * min_rtt.map_or(0, Span::as_micros);
            let queue = (self.queued_us << 8).checked_div(path_us).unwrap_or(0);
            let target = self.response.target(base, excess, queue) << 8;
            let weight = self.response.weight;
            self.gain = (self.gain * (256 - weight) + target * weight) >> 8;
        }
        *self = AutoGain { gain: self.gain, ..AutoGain::new(self.response, Gain::UNIT) };
        self.gain()
    }

    fn gain(&self) -> Gain {
        Gain::from_raw((self.gain >> 8) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_units::Packets;

    fn response() -> Response {
        Response::of(&|name| match name {
            "auto_max_gain" => 1.5,
            "auto_min_gain" => 1.0625,
            "auto_loss_response" => 2.0,
            "auto_queue_response" => 0.25,
            _ => 0.5,
        })
    }

    fn percent(value: u64) -> u64 {
        (value << SHARE_SHIFT) / 100
    }

    #[test]
    fn losses_and_queueing_during_a_probe_lower_the_gain() {
        let gain = |base, excess, queue| response().target(percent(base), percent(excess), queue) as f64 / 256.0;
        let is = |value: f64, expected: f64| assert!((value - expected).abs() < 0.01, "{value} is not {expected}");
        is(gain(0, 0, 0), 1.5);
        is(gain(0, 10, 0), 1.3);
        is(gain(0, 0, 256), 1.25);
        is(gain(0, 50, 0), 1.0625);
        // On a path that loses 15 % at random, the minimum gain is about 1.0625 / 0.85.
        is(gain(15, 50, 0), 1.25);
        is(gain(15, 0, 0), 1.5);
        is(gain(80, 0, 0), 1.9);
    }

    fn ack(acked: u64, lost: u64, rtt_ms: u64) -> Ack {
        Ack {
            acked: Packets(acked),
            lost: Packets(lost),
            prior_inflight: Packets(0),
            rtt: Some(Span::from_millis(rtt_ms)),
            is_delayed: false,
            is_marked: false,
            is_probe_answer: false,
            rate: None,
        }
    }

    #[test]
    fn the_gain_moves_by_its_weight_towards_the_target_of_the_latest_probe() {
        let min_rtt = Some(Span::from_millis(40));
        let mut auto = AutoGain::new(response(), Gain::of(1.25));
        // No probe has been measured yet.
        assert_eq!(auto.on_probe(min_rtt), Gain::of(1.25));
        auto.update(&ack(90, 10, 50), min_rtt, false, true);
        for _ in 0..PROBE_TAIL_ROUNDS {
            auto.update(&ack(0, 0, 60), min_rtt, true, false);
        }
        auto.update(&ack(100, 0, 60), min_rtt, false, false);
        // 10 % lost in the probe and half a round trip of queue: the target is 1.5 - 0.2 - 0.125, and the gain moves
        // half of the way from 1.25.
        let gain = auto.on_probe(min_rtt).as_f64();
        assert!((gain - 1.2125).abs() < 0.01, "{gain}");
    }
}
