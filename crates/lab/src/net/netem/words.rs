//! Formats parameters of queue disciplines for `tc`.

use thalweg_plan::plan::{Aggregation, Link, Loss, Policer};
use thalweg_units::{MTU, Probability, Rate, Span};

/// Minimum limit of netem in packets. `tc`'s default of 1000 would be a second bottleneck at high rates.
pub(super) const MIN_LIMIT: u64 = 100_000;

/// Maximum limit of netem in packets: more than fit into memory.
const MAX_LIMIT: u64 = 1_000_000_000;

/// Maximum lateness of timers in virtual time, rounded up: the clock of a user-mode Linux has steps, and its timers
/// have a minimum duration. With a smaller bucket, a fast link is slower than its rate.
const CLOCK_STEPS: Span = Span::from_micros(2);

/// Represents an unlimited rate where netem requires a rate.
const BEYOND: &str = "100gbit";

/// Returns the number of packets that netem must be able to hold: twice the number of packets of the smallest size that
/// a link at this rate sends in this time, between [`MIN_LIMIT`] and [`MAX_LIMIT`]. `None` counts as 100 Gbit/s.
pub(super) fn limit(delay: Span, rate: Option<Rate>) -> u64 {
    const SMALLEST_BYTES: u64 = 52;
    let bytes = rate.unwrap_or(Rate::from_mbps(100_000)).bytes_in(delay).0;
    (bytes / SMALLEST_BYTES).saturating_mul(2).clamp(MIN_LIMIT, MAX_LIMIT)
}

/// Formats a delay and a jitter between zero and `jitter`; packets stay in order unless reordering is allowed.
pub(super) fn delay(delay: Span, jitter: Span, allow_reordering: bool) -> String {
    match jitter {
        Span::ZERO => format!("delay {}", time(delay)),
        _ if allow_reordering => mean_and_deviation(delay, jitter),
        _ => changing_delay(delay, jitter, false),
    }
}

/// Like [`delay`], for a delay that changes while packets are in flight.
pub(super) fn changing_delay(delay: Span, jitter: Span, allow_reordering: bool) -> String {
    let order = if allow_reordering { String::new() } else { format!(" rate {BEYOND}") };
    mean_and_deviation(delay, jitter) + &order
}

/// Formats mean and deviation of a delay. Without a rate, netem sorts packets by departure time.
fn mean_and_deviation(delay: Span, jitter: Span) -> String {
    // netem draws from [mean - deviation, mean + deviation].
    let half = jitter.scale(1, 2);
    format!("delay {} {}", time(delay + half), time(half))
}

/// Like [`line`], with an additional delay and an in-order jitter.
pub(super) fn delay_on_line(delay: Span, jitter: Span, rate: Rate) -> String {
    let half = jitter.scale(1, 2);
    format!("delay {} {} rate {}bit -14", time(delay + half), time(half), rate.0)
}

/// Formats a netem behind a shaper at this rate that releases each packet when its transmission begins: netem holds
/// each packet for its own transmission time.
pub(super) fn line(rate: Rate) -> String {
    format!("limit {MIN_LIMIT} rate {}bit -14", rate.0)
}

/// Formats jitter or holding back on the forward link, if there is any.
pub(super) fn jitter_or_hold(link: &Link, fastest: Option<Rate>) -> Option<String> {
    let limit = limit(link.jitter_ns + link.reorder_delay_ns, fastest);
    if link.jitter_ns > Span::ZERO {
        return Some(format!("limit {limit} {}", delay(Span::ZERO, link.jitter_ns, link.allow_reordering)));
    }
    if link.reorder > Probability::NEVER {
        let pass = percent(1.0 - link.reorder.as_f64());
        return Some(format!("limit {limit} delay {} reorder {pass}", time(link.reorder_delay_ns)));
    }
    None
}

/// Formats loss, or else duplicates, if the link has any; the module `refused` rejects links with both.
pub(super) fn loss(link: &Link) -> Option<String> {
    let loss = match link.loss {
        Loss::Bernoulli { ratio: Probability::NEVER } => None,
        Loss::Bernoulli { ratio } => Some(random_loss(ratio)),
        Loss::GilbertElliott { p, r, loss_bad, loss_good } => {
            let [p, r, bad, good] = [p, r, loss_bad, loss_good].map(|probability| percent(probability.as_f64()));
            Some(format!("loss gemodel {p} {r} {bad} {good}"))
        }
    };
    let duplicate =
        (link.duplicate > Probability::NEVER).then(|| format!("duplicate {}", percent(link.duplicate.as_f64())));
    loss.or(duplicate)
}

/// Formats independent losses.
pub(super) fn random_loss(ratio: Probability) -> String {
    format!("loss random {}", percent(ratio.as_f64()))
}

/// Formats bursts: packets that arrive within the interval after the first one leave together, up to a number of bytes.
pub(super) fn slots(aggregation: Aggregation, fastest: Option<Rate>) -> String {
    let interval = time(aggregation.interval_ns);
    let bytes = aggregation.max_bytes.map(|bytes| format!(" bytes {}", bytes.0)).unwrap_or_default();
    format!("limit {} slot {interval} {interval}{bytes}", limit(aggregation.interval_ns, fastest))
}

/// Formats a token bucket that drops excess packets.
pub(super) fn police(policer: Policer) -> String {
    format!("rate {}bit burst {} conform-exceed drop/ok", policer.rate_bps.0, policer.burst_bytes.0)
}

/// Formats the parameters of htb's class, for timers that are late by at most `slack`. htb sends while its tokens are
/// not negative, so with a bucket smaller than a packet, packets leave one by one.
pub(super) fn htb(rate: Rate, slack: Span) -> String {
    let burst = bucket(rate, slack);
    format!("rate {}bit burst {burst} cburst {burst} quantum {}", rate.0, MTU.0)
}

/// Formats the parameters of tbf. As for htb, but the bucket must hold a packet's worth of tokens before the packet
/// leaves.
pub(super) fn tbf(rate: Rate, slack: Span) -> String {
    format!("rate {}bit burst {}", rate.0, MTU.0 + bucket(rate, slack))
}

/// Returns the number of bytes that may be sent late: those that the rate sends in `slack`, but at least half a packet.
/// In virtual time (`slack` is zero), these are the bytes of [`CLOCK_STEPS`], but at least one, because `tc` would
/// replace zero by its own default.
fn bucket(rate: Rate, slack: Span) -> u64 {
    let (slack, at_least) = if slack == Span::ZERO { (CLOCK_STEPS, 1) } else { (slack, MTU.0 / 2) };
    rate.bytes_in(slack).0.max(at_least)
}

/// Formats a time in microseconds with decimals, because older versions of `tc` do not support nanoseconds.
pub(super) fn time(span: Span) -> String {
    let (us, rest_ns) = (span.0 / 1000, span.0 % 1000);
    if rest_ns == 0 { format!("{us}us") } else { format!("{us}.{rest_ns:03}us") }
}

/// Formats a ratio in percent. netem stores 32 bits, so ten decimals suffice.
fn percent(ratio: f64) -> String {
    let text = format!("{:.10}", ratio * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_never_binds_and_never_overflows() {
        assert_eq!(limit(Span::from_millis(40), Some(Rate::from_mbps(10))), MIN_LIMIT);
        // 1 Gbit/s for 200 ms is 25 MB, or 480,769 packets of 52 bytes.
        assert_eq!(limit(Span::from_millis(200), Some(Rate::from_mbps(1000))), 961_538);
        assert_eq!(limit(Span::MAX, Some(Rate(u64::MAX))), MAX_LIMIT);
    }

    #[test]
    fn jitter_is_centred_on_its_mean_and_keeps_packets_in_order() {
        assert_eq!(delay(Span::from_millis(10), Span::ZERO, false), "delay 10000us");
        assert_eq!(delay(Span(1_000_050), Span::ZERO, false), "delay 1000.050us");
        assert_eq!(delay(Span::from_millis(10), Span::from_millis(4), false), "delay 12000us 2000us rate 100gbit");
    }

    #[test]
    fn reordering_jitter_is_set_without_a_rate() {
        assert_eq!(delay(Span::from_millis(10), Span::from_millis(4), true), "delay 12000us 2000us");
        assert_eq!(changing_delay(Span::from_millis(10), Span::from_millis(4), true), "delay 12000us 2000us");
    }

    #[test]
    fn ratios_are_converted_to_percentages_without_rounding_noise() {
        assert_eq!(percent(0.01), "1%");
        assert_eq!(percent(0.3), "30%");
        assert_eq!(percent(0.000_001_5), "0.00015%");
        assert_eq!(percent(1.0), "100%");
        assert_eq!(percent(0.0), "0%");
    }

    #[test]
    fn the_bucket_is_half_a_packet_or_the_bytes_of_a_late_timer() {
        let slack = Span::from_millis(1);
        assert_eq!(htb(Rate::from_mbps(10), slack), "rate 10000000bit burst 1250 cburst 1250 quantum 1500");
        assert_eq!(htb(Rate::from_mbps(1), slack), "rate 1000000bit burst 750 cburst 750 quantum 1500");
        assert_eq!(htb(Rate::from_mbps(1000), slack), "rate 1000000000bit burst 125000 cburst 125000 quantum 1500");
        assert_eq!(tbf(Rate::from_mbps(10), slack), "rate 10000000bit burst 2750");
    }

    #[test]
    fn in_virtual_time_the_bucket_holds_the_steps_of_the_clock() {
        assert_eq!(htb(Rate::from_mbps(10), Span::ZERO), "rate 10000000bit burst 2 cburst 2 quantum 1500");
        assert_eq!(htb(Rate::from_mbps(1), Span::ZERO), "rate 1000000bit burst 1 cburst 1 quantum 1500");
        assert_eq!(tbf(Rate::from_mbps(10), Span::ZERO), "rate 10000000bit burst 1502");
    }

    #[test]
    fn a_changing_delay_does_not_reorder_packets() {
        assert_eq!(changing_delay(Span::from_millis(10), Span::ZERO, false), "delay 10000us 0us rate 100gbit");
    }
}
