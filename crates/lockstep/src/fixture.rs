//! Text format of a recording, which docs/concepts/fidelity.md describes.
//!
//! A header of `key value` lines and an empty line is followed by one line per call: its name, its inputs, `>`, and its
//! outputs. Inputs and outputs are `name=value`, or `name+increment` if that is shorter, and only values that differ
//! from the previous ones under that name are written. Clocks and sequence numbers are relative to origins near the
//! first event, so that equal behaviour results in equal text.

use crate::algorithm::{Algorithm, Clock};
use crate::layout::Member;
use crate::lockstep_event::{Call, LockstepEvent};
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[cfg(test)]
mod tests;

const FORMAT: u32 = 1;

/// Value of the coarse clock at the first event. It is far above 0, which means never.
const FIRST_JIFFIES: u64 = 100_000;

/// Minimum of the connection's clock at the first event, in seconds; the maximum is a second more.
const FIRST_SECOND: i64 = 100;

/// Possible tick rates of the coarse clock.
const HZ: [u64; 4] = [100, 250, 300, 1000];

/// Metadata of a recording.
#[derive(Clone, Debug)]
pub struct Header {
    /// The recorded algorithm.
    pub algorithm: Algorithm,
    /// Name of the recorded scene.
    pub scene: &'static str,
    /// Purpose of the scene.
    pub about: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Date of the recording.
    pub date: String,
}

/// Origin of the clocks and sequence numbers of a recording.
#[derive(Debug)]
struct Origin {
    jiffies: u64,
    /// Whole seconds, so that rounding to coarser units does not change; negative on a machine that was booted
    /// recently.
    clock_s: i64,
    sequence: u32,
}

impl Origin {
    fn of(first: &LockstepEvent) -> Origin {
        Origin {
            jiffies: first.jiffies.wrapping_sub(FIRST_JIFFIES),
            clock_s: (first.clock_ns / 1_000_000_000) as i64 - FIRST_SECOND,
            sequence: first.snd_una as u32,
        }
    }

    fn jiffies(&self, jiffies: u64) -> u64 {
        jiffies.wrapping_sub(self.jiffies)
    }

    /// Makes a time of the connection's clock, in units of 1/`per_second` seconds, relative to the origin. Returns 0,
    /// which means never, for 0 and for times before the origin.
    fn clock(&self, time: u64, per_second: i64) -> u64 {
        if time == 0 { 0 } else { (time as i64 - self.clock_s * per_second).max(0) as u64 }
    }

    fn sequence(&self, sequence: u64) -> u64 {
        u64::from((sequence as u32).wrapping_sub(self.sequence))
    }

    /// Makes a member of the state relative to the origin of its clock. Such members become 32-bit numbers, because
    /// Linux stores some of them in 32 bits.
    fn member(&self, clock: Option<Clock>, value: u64) -> u64 {
        let narrow = |origin: i64| u64::from((value as u32).wrapping_sub(origin as u32));
        match clock {
            None => value,
            Some(Clock::Sequence) => self.sequence(value),
            Some(_) if value == 0 => 0,
            Some(Clock::Jiffies) => narrow(self.jiffies as i64),
            Some(Clock::Micros) => narrow(self.clock_s * 1_000_000),
            Some(Clock::Millis) => narrow(self.clock_s * 1_000),
        }
    }
}

/// Formats a recording.
///
/// # Errors
/// If the recording is incomplete or cannot be compared call by call, as text for the user.
pub fn write(header: &Header, members: &[Member], events: &[LockstepEvent]) -> Result<String, String> {
    // Calls before `init` are dropped: the kernel passes the response to the SYN to a controller that is not
    // initialized yet, and older kernels release the controller of a socket that never connected. State that outlasts
    // the initialization is part of the inputs.
    let of_call = |call| move |event: &LockstepEvent| event.call() == Some(call);
    let events = events.iter().position(of_call(Call::Init)).map_or(&[][..], |init| &events[init..]);
    let release = events.iter().position(of_call(Call::Release));
    let events = release.map_or(&[][..], |release| &events[..release]);
    let (Some(first), Some(last)) = (events.first(), events.last()) else {
        return Err("no connection was recorded from its beginning to its end".to_owned());
    };
    check(events)?;
    let hz = hz(first, last)?;
    let origin = Origin::of(first);
    let mut text = format!(
        "lockstep {FORMAT}\nalgorithm {}\nscene {}\nabout {}\nkernel {}\nhz {hz}\ndate {}\n\n",
        header.algorithm.name(),
        header.scene,
        header.about,
        header.kernel,
        header.date
    );
    let mut writer = Writer { text: &mut text, left: BTreeMap::new() };
    for event in events {
        let call = event.call().ok_or_else(|| format!("unknown kind of event: {}", event.call))?;
        writer.text.push_str(call.name());
        given(&mut writer, &origin, header.algorithm, call, event);
        writer.text.push_str(" >");
        came_out(&mut writer, &origin, header.algorithm, call, event, members);
        writer.text.push('\n');
    }
    Ok(text)
}

/// Rejects recordings that cannot be compared call by call.
fn check(events: &[LockstepEvent]) -> Result<(), String> {
    let mut state = events[0].ca_state;
    for (number, event) in (events[0].number..).zip(events) {
        if event.flow != events[0].flow {
            return Err("more than one connection was recorded".to_owned());
        }
        if event.number != number {
            return Err(format!("call {number} is missing"));
        }
        // Calls that the program did not receive have no number; a change of the recovery state without `set_state`
        // shows one.
        if event.ca_state != state {
            return Err(format!("the recovery state changed before call {number} without a call"));
        }
        if event.call() == Some(Call::SetState) {
            state = event.arg;
        }
        if event.jiffies != event.jiffies_after {
            return Err(format!(
                "the coarse clock ticked during call {number}: the value that the call read is unknown"
            ));
        }
    }
    Ok(())
}

fn hz(first: &LockstepEvent, last: &LockstepEvent) -> Result<u64, String> {
    let elapsed_ns = last.clock_ns.saturating_sub(first.clock_ns).max(1);
    let measured = (last.jiffies - first.jiffies) * 1_000_000_000 / elapsed_ns;
    HZ.into_iter()
        .find(|hz| measured.abs_diff(*hz) * 50 <= *hz)
        .ok_or_else(|| format!("the coarse clock ticked {measured} times a second, expected one of {HZ:?}"))
}

fn given(writer: &mut Writer<'_>, origin: &Origin, algorithm: Algorithm, call: Call, event: &LockstepEvent) {
    // The kernel stores `lsndtime` in 32 bits; it is 0 before the first segment was sent.
    let behind = u64::from((event.jiffies as u32).wrapping_sub(event.lsndtime as u32)).min(FIRST_JIFFIES);
    writer.put("jiffies", origin.jiffies(event.jiffies));
    writer.put("clock_ns", origin.clock(event.clock_ns, 1_000_000_000));
    writer.put("departure_ns", origin.clock(event.wstamp_ns, 1_000_000_000));
    writer.put("last_sent_jiffies", origin.jiffies(event.jiffies).saturating_sub(behind));
    writer.put("ca_state", event.ca_state);
    writer.put("mss", event.mss);
    writer.put("srtt_us_8", event.srtt_us_8);
    writer.put("min_rtt_us", event.min_rtt_us);
    writer.put("inflight", event.inflight);
    writer.put("delivered", event.delivered);
    if algorithm.uses_marks() {
        writer.put("delivered_ce", event.delivered_ce);
    }
    writer.put("delivered_us", origin.clock(event.delivered_mstamp_us, 1_000_000));
    writer.put("lost", event.lost);
    writer.put("una", origin.sequence(event.snd_una));
    writer.put("next", origin.sequence(event.snd_nxt));
    writer.put("is_cwnd_limited", event.is_cwnd_limited);
    writer.put("prior_cwnd", event.prior_cwnd);
    writer.put("gso_max_size", event.gso_max_size);
    writer.put("pacing_shift", event.pacing_shift);
    writer.put("pacing_status", event.pacing_status);
    writer.put("app_limited", event.app_limited);
    writer.put("cwnd", event.cwnd);
    writer.put("ssthresh", event.ssthresh);
    writer.put("pacing_rate", event.pacing_rate);
    writer.put("snd_cwnd_cnt", event.cwnd_cnt);
    match call {
        Call::Init | Call::Ssthresh | Call::UndoCwnd | Call::Release => {}
        Call::InAckEvent | Call::SetState | Call::CwndEvent => writer.put("arg", event.arg),
        Call::PktsAcked => {
            writer.put("acked", event.acked);
            writer.put_signed("rtt_us", event.rtt_us);
        }
        Call::CongAvoid => writer.put("acked", event.acked),
        Call::CongControl => {
            writer.put("acked", event.acked);
            writer.put_signed("rtt_us", event.rtt_us);
            writer.put("losses", event.losses);
            writer.put("prior_inflight", event.prior_inflight);
            writer.put("rs_prior_delivered", event.rs_prior_delivered);
            writer.put_signed("rs_delivered", event.rs_delivered);
            writer.put_signed("rs_interval_us", event.rs_interval_us);
            writer.put("rs_is_app_limited", event.rs_is_app_limited);
            writer.put("rs_is_ack_delayed", event.rs_is_ack_delayed);
        }
    }
}

fn came_out(
    writer: &mut Writer<'_>,
    origin: &Origin,
    algorithm: Algorithm,
    call: Call,
    event: &LockstepEvent,
    members: &[Member],
) {
    writer.put("app_limited", event.app_limited_after);
    writer.put("cwnd", event.cwnd_after);
    writer.put("ssthresh", event.ssthresh_after);
    writer.put("pacing_rate", event.pacing_rate_after);
    writer.put("snd_cwnd_cnt", event.cwnd_cnt_after);
    if matches!(call, Call::Ssthresh | Call::UndoCwnd) {
        writer.put("result", event.result);
    }
    if algorithm == Algorithm::Bbr && call == Call::Init {
        writer.put("sndbuf_expand", event.result);
    }
    if algorithm == Algorithm::Bbr && matches!(call, Call::Init | Call::CongControl) {
        writer.put("min_tso_segs", event.min_tso_segs);
    }
    for member in members.iter().filter(|member| algorithm.records(&member.name)) {
        let value = member.read(&event.priv_words);
        writer.put(&member.name, origin.member(algorithm.clock(&member.name), value));
    }
}

/// Writes only the values that differ from the previous ones.
struct Writer<'text> {
    text: &'text mut String,
    left: BTreeMap<String, u64>,
}

impl Writer<'_> {
    fn put(&mut self, name: &str, value: u64) {
        let before = self.left.get(name).copied();
        if before == Some(value) {
            return;
        }
        self.left.insert(name.to_owned(), value);
        let digits = value.to_string();
        let increment = before.and_then(|before| value.checked_sub(before)).map(|increment| increment.to_string());
        let (sign, digits) = match increment {
            Some(increment) if increment.len() < digits.len() => ('+', increment),
            _ => ('=', digits),
        };
        write!(self.text, " {name}{sign}{digits}").expect("a String takes everything");
    }

    /// Writes a signed value. All negative values mean "unset", and are written as one value.
    fn put_signed(&mut self, name: &str, value: u64) {
        if (value as i64) >= 0 {
            self.put(name, value);
        } else if self.left.insert(name.to_owned(), u64::MAX) != Some(u64::MAX) {
            write!(self.text, " {name}=-").expect("a String takes everything");
        }
    }
}
