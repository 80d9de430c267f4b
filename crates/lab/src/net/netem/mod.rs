//! Links made of the kernel's queue disciplines.
//!
//! ```text
//!             ┌──────────────────────────────── router ─────────────────────────────────┐
//!  sender ──► s1 in ─► [f-loss: netem] ─► route ─► [f-queue:] htb + fifo ─► [netem] ─► r0 ──► receiver
//!                        loss or duplicates                                   jitter, or packets held back
//!  sender ◄── s1 ◄─ netem ◄─ [r-queue: htb + fifo] ◄─ route ◄─ [r-loss: netem] ◄─ r0 in ◄──── receiver
//!                     all of the delay
//!             └──────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! What stands in brackets is there where the experiment needs it. A packet meets the stages in the order of the plan.
//! Each stage is alone on an interface; `f-loss` and its like are ifb devices, through which a filter leads what comes in
//! or goes out. A classful tree could hold several stages on one interface, but netem's counters have been wrong in such
//! trees in several kernels, and newer ones refuse duplicates there.
//!
//! **The queue** is htb with a single class, because it takes new rates while packets wait, or tbf where there is no htb.
//! Sizes are those of IP packets (`stab overhead -14` takes Ethernet's header off). A packet leaves htb when its
//! transmission begins, so that the one being sent is not in the queue, as in the plan.
//!
//! **The delay** of both directions, and of `extra_rtt`, is all on the way back: the sender cannot tell, and behind the queue
//! it would need one more stage. `limit` is far above what can be under way. A packet leaves a line when its transmission
//! ends, and htb when it begins, so the delay also has the time that a full packet takes forward and an ACK takes back; it
//! changes with the rate. In virtual time, forward packets go through one more netem instead, which holds each for its own
//! transmission (`rate`), unless jitter or holding back takes that place. Where traffic goes up, packets of both sizes take
//! the way back, and the netem with the delay holds each for its own transmission (`rate`) on the reverse link.
//!
//! **Jitter** keeps packets in order, as in the plan: with a `rate`, netem counts a packet's delay from its predecessor's
//! departure (sch_netem.c, netem_enqueue), and at 100 Gbit/s nothing else is seen of that rate. With `allow_reordering` that
//! rate is left out, and netem reorders. **Holding back** is
//! `delay D reorder R%`: R % of the packets pass at once, the others wait for D.
//!
//! Deviations:
//! - but for that, a packet smaller than the path's MTU (a SYN, the last one of a transfer) is under way as long as a full one;
//! - a buffer smaller than a packet is made one packet large, because htb's queue takes every packet before it lets it
//!   pass; a comment in the log says so;
//! - after a pause, and after late timers, as much as the link carries in [`TIMER_SLACK`], or half a packet, leaves at once;
//!   not in virtual time, where no timer is late;
//! - random numbers are the kernel's: the experiment's seed does not fix them.
//!
//! What this cannot do is in the module `refused`.
//!
//! Source: tc-htb(8), tc-tbf(8), tc-netem(8), tc-stab(8), tc-mirred(8); Linux 5.10 to 6.18, net/sched/sch_{htb,tbf,netem}.c
//! and drivers/net/ifb.c.

mod refused;
mod words;

use crate::error::Error;
use crate::net::places::{self, RECEIVER_INTERFACE, ROUTER};
use crate::net::shell::Shell;
use crate::net::{Place, build};
use crate::protocol::{Qdisc, Qdiscs};
use std::collections::{BTreeMap, BTreeSet};
use thalweg_plan::plan::{Buffer, Capacity, Experiment, Link, Step};
use thalweg_units::{Bytes, MTU, Packets, Rate, Span};

pub(crate) use refused::check;

/// IP packet of an ACK without data: two headers, and timestamps.
const ACK: Bytes = Bytes(20 + 20 + 12);

/// What both hosts take for a packet and its answer, in virtual time. Where a round trip is a whole number of packet times,
/// as in 30 ms at 10 Mbit/s, a packet that answers one comes to the queue at the moment at which another leaves it; if nothing
/// took any time, the rounding of timers would decide whether a full queue has room for it (Floyd and Jacobson, "On traffic
/// phase effects in packet-switched gateways", 1992). Behind real hosts it comes a little later, and it has.
const HOSTS: Span = Span::from_micros(10);

/// How late the timer of a queue may be without the link losing capacity, as far as it has packets. High-resolution timers
/// and the softirqs behind them take tens of microseconds, and now and then most of a millisecond on a busy machine: with
/// 250 us, a 100 Mbit/s link carried 94 to 96 % of its rate on two busy cores, with 1 ms all of it. In exchange, as much may
/// leave at once after a pause.
pub const TIMER_SLACK: Span = Span::from_millis(1);

/// The stages of an experiment, as commands in the router's namespace.
#[derive(Debug, Default)]
pub(crate) struct Shaping {
    lines: Vec<Line>,
    /// How late timers may be.
    slack: Span,
    /// Interfaces that have `clsact` already.
    classified: BTreeSet<String>,
    watch: Qdiscs,
}

#[derive(Debug)]
enum Line {
    Command(String),
    /// Makes an ifb device.
    Device(String),
    Note(String),
}

impl Line {
    /// The command, if it is one.
    fn command(&self) -> Option<String> {
        if let Line::Command(command) = self { Some(command.clone()) } else { None }
    }

    /// The commands that make the device, if it is one.
    fn device(&self) -> Vec<String> {
        let Line::Device(name) = self else { return Vec::new() };
        let add = format!("ip link add {name} address {} type ifb", device_mac(name));
        [add].into_iter().chain(build::be_silent(name)).chain([format!("ip link set {name} up")]).collect()
    }
}

/// One direction: where packets come in and go out, and the first letter of the names of its devices.
struct Direction<'a> {
    link: &'a Link,
    letter: char,
    from: &'a [String],
    to: &'a [String],
}

impl Shaping {
    /// The stages where timers are never later than `slack`.
    ///
    /// # Errors
    /// `not-on-netem`: it cannot be done. `no-qdisc`: the kernel, which has these, lacks one.
    pub fn new(
        experiment: &Experiment,
        senders: &[Place],
        available: &BTreeSet<String>,
        slack: Span,
    ) -> Result<Shaping, Error> {
        check(experiment, available)?;
        let sender_interfaces: Vec<String> = (1..=senders.len()).map(places::sender_interface).collect();
        let receiver_interface = [RECEIVER_INTERFACE.to_owned()];
        let (forward, reverse) = (&experiment.forward, &experiment.reverse);
        let mut shaping = Shaping { slack, ..Shaping::default() };
        if experiment.engine.offloads {
            shaping
                .lines
                .push(Line::Note("offloads are on: a packet in the queues below may be 64 KiB large".to_owned()));
        }

        let there = Direction { link: forward, letter: 'f', from: &sender_interfaces, to: &receiver_interface };
        let has_htb = available.contains("htb");
        let late = words::jitter_or_hold(forward);
        // Another stage for each packet is worth its time where time costs nothing.
        let line = if slack == Span::ZERO && late.is_none() { steps_of(forward) } else { &[] };
        let loss = shaping.loss(&there);
        let queue = shaping.queue(&there, has_htb, late.is_some() || !line.is_empty());
        if let Some(late) = late {
            shaping.command(format!("tc qdisc add dev {RECEIVER_INTERFACE} root handle 1: netem {late}"));
        }
        for (verb, step) in ["add"].into_iter().chain(std::iter::repeat("change")).zip(line) {
            let words = words::line(step.rate_bps);
            let command = format!("tc qdisc {verb} dev {RECEIVER_INTERFACE} root handle 1: netem {words}");
            if verb == "add" {
                shaping.command(command);
            } else {
                shaping.watch.at.push((Span(step.at_ns.0), command.split(' ').map(str::to_owned).collect()));
            }
        }
        let there = if line.is_empty() { steps_of(forward) } else { &[] };
        // Where traffic goes up, the delay's own netem accounts for the reverse link's transmissions.
        let up = experiment.has_up_traffic();
        let transmission = transmissions(there, steps_of(reverse), if up { Bytes::ZERO } else { ACK });
        shaping.watch.forward = Some(Qdisc { queue, loss });

        let back = Direction { link: reverse, letter: 'r', from: &receiver_interface, to: &sender_interfaces };
        let loss = shaping.loss(&back);
        let is_limited = !matches!(reverse.capacity, Capacity::Unlimited);
        if is_limited || loss.is_some() {
            let queue = shaping.queue(&back, has_htb, true);
            shaping.watch.reverse = Some(Qdisc { queue, loss });
        }
        for (place, interface) in senders.iter().zip(&sender_interfaces) {
            shaping.delay(experiment, place, interface, &transmission);
        }
        shaping.watch.at.sort_by_key(|(at, _)| *at);
        Ok(shaping)
    }

    /// The way back to a sender, with all of the delay.
    fn delay(&mut self, experiment: &Experiment, place: &Place, interface: &str, transmission: &BTreeMap<Span, Span>) {
        let (forward, reverse) = (&experiment.forward, &experiment.reverse);
        // Where timers are late, hosts take time as it is.
        let hosts = if self.slack == Span::ZERO { HOSTS } else { Span::ZERO };
        let up = experiment.has_up_traffic();
        let way = forward.delay_ns + reverse.delay_ns + place.extra_rtt + hosts;
        let longest = transmission.values().max().copied().unwrap_or_default();
        let limit = words::limit(way + longest + reverse.jitter_ns, words::fastest(forward));
        let words = if transmission.len() > 1 { words::changing_delay } else { words::delay };
        let netem = |verb: &str, at: Span, transmission: Span| {
            let line = rate_at(steps_of(reverse), at).filter(|_| up);
            let delay = match line {
                Some(rate) => words::delay_on_line(way + transmission, reverse.jitter_ns, rate),
                None => words(way + transmission, reverse.jitter_ns, reverse.allow_reordering),
            };
            format!("tc qdisc {verb} dev {interface} root handle 1: netem limit {limit} {delay}")
        };
        for (&at, &transmission) in transmission {
            if at == Span::ZERO {
                self.command(netem("add", at, transmission));
            } else {
                self.watch.at.push((at, netem("change", at, transmission).split(' ').map(str::to_owned).collect()));
            }
        }
    }

    /// Runs the commands.
    ///
    /// # Errors
    /// `no-qdisc`: the kernel refuses one.
    pub fn make(self, shell: &mut Shell) -> Result<Qdiscs, Error> {
        let devices: Vec<String> = self.lines.iter().flat_map(Line::device).collect();
        shell.run_all(Some(ROUTER), &devices).map_err(refused::by_kernel)?;
        let commands: Vec<String> = self.lines.iter().filter_map(Line::command).collect();
        shell.run_all(Some(ROUTER), &commands).map_err(refused::by_kernel)?;
        for line in &self.lines {
            if let Line::Note(text) = line {
                shell.note(&format!("# {text}"));
            }
        }
        Ok(self.watch)
    }

    fn command(&mut self, line: String) {
        self.lines.push(Line::Command(line));
    }

    /// Leads what comes in at an interface, or goes out, through an ifb device; it then goes on as if nothing had happened.
    fn lead(&mut self, interface: &str, way: &str, device: &str) {
        if self.classified.insert(interface.to_owned()) {
            self.command(format!("tc qdisc add dev {interface} clsact"));
        }
        // u32, because more kernels have it than matchall.
        self.command(format!(
            "tc filter add dev {interface} {way} protocol all u32 match u32 0 0 action mirred egress redirect dev {device}"
        ));
    }

    /// Random loss and duplicates, if there are any.
    fn loss(&mut self, direction: &Direction<'_>) -> Option<(String, String)> {
        let loss = words::loss(direction.link)?;
        let device = format!("{}-loss", direction.letter);
        self.lines.push(Line::Device(device.clone()));
        self.command(format!("tc qdisc add dev {device} root handle 1: netem limit {} {loss}", words::LEAST_LIMIT));
        for interface in direction.from {
            self.lead(interface, "ingress", &device);
        }
        Some((device, "1:".to_owned()))
    }

    /// The queue and the capacity: at the interface itself if there is one and nothing comes behind.
    fn queue(&mut self, direction: &Direction<'_>, has_htb: bool, is_something_behind: bool) -> (String, String) {
        let device = match direction.to {
            [only] if !is_something_behind => only.clone(),
            all => {
                let device = format!("{}-queue", direction.letter);
                self.lines.push(Line::Device(device.clone()));
                for interface in all {
                    self.lead(interface, "egress", &device);
                }
                device
            }
        };
        let root = format!("dev {device} root handle 1: stab overhead -14");
        let Capacity::Steps { steps } = &direction.link.capacity else {
            self.command(format!("tc qdisc add {root} pfifo limit {}", words::LEAST_LIMIT));
            return (device, "1:".to_owned());
        };
        let (kind, room) = self.room(direction.link.buffer);
        let class = format!("dev {device} parent 1: classid 1:1 htb");
        let later = steps.iter().skip(1);
        let first = steps.first().map_or(Rate::ZERO, |step| step.rate_bps);
        let slack = self.slack;
        let change: Box<dyn Fn(Rate) -> String> = if has_htb {
            self.command(format!("tc qdisc add {root} htb default 1"));
            self.command(format!("tc class add {class} {}", words::htb(first, slack)));
            Box::new(move |rate| format!("tc class change {class} {}", words::htb(rate, slack)))
        } else {
            self.command(format!("tc qdisc add {root} tbf {} limit {room}", words::tbf(first, slack)));
            Box::new(move |rate| format!("tc qdisc change {root} tbf {} limit {room}", words::tbf(rate, slack)))
        };
        self.command(format!("tc qdisc add dev {device} parent 1:1 handle 10: {kind} limit {room}"));
        for step in later {
            let at = Span(step.at_ns.0);
            let command = change(step.rate_bps).split(' ').map(str::to_owned).collect();
            self.watch.at.push((at, command));
        }
        (device, "10:".to_owned())
    }

    /// Kind and limit of the queue: never less than a packet.
    fn room(&mut self, buffer: Buffer) -> (&'static str, u64) {
        let note = |room: &str, least: &str| {
            Line::Note(format!(
                "the buffer is {room}, but a queue of the kernel needs room for a packet: it has {least}"
            ))
        };
        match buffer {
            Buffer::Bytes { bytes: Bytes(bytes) } if bytes < MTU.0 => {
                self.lines.push(note(&format!("{bytes} bytes"), &format!("{} bytes", MTU.0)));
                ("bfifo", MTU.0)
            }
            Buffer::Bytes { bytes: Bytes(bytes) } => ("bfifo", bytes),
            Buffer::Packets { packets: Packets(0) } => {
                self.lines.push(note("0 packets", "1"));
                ("pfifo", 1)
            }
            Buffer::Packets { packets: Packets(packets) } => ("pfifo", packets),
        }
    }
}

/// An Ethernet address for an ifb device: no packet bears it, but without one the kernel draws it, and no two networks
/// would be the same.
fn device_mac(name: &str) -> String {
    let number = ["f-loss", "f-queue", "r-loss", "r-queue"].iter().position(|known| *known == name);
    places::mac_text([0x02, 0, 0, 0, 0xff, number.map_or(0, |number| number as u8 + 1)])
}

/// The rates of a link; none if it has no limit.
fn steps_of(link: &Link) -> &[Step] {
    match &link.capacity {
        Capacity::Steps { steps } => steps,
        Capacity::Unlimited | Capacity::Trace { .. } | Capacity::Profile {} => &[],
    }
}

/// The rate of a link at a time; nothing if it has no limit.
fn rate_at(steps: &[Step], time: Span) -> Option<Rate> {
    steps.iter().rev().find(|step| Span(step.at_ns.0) <= time).map(|step| step.rate_bps)
}

/// What transmission adds to the way there and back, from when on: a full packet's forward, a packet of size `back` on the way
/// back.
fn transmissions(forward: &[Step], reverse: &[Step], back: Bytes) -> BTreeMap<Span, Span> {
    let at = |steps: &[Step], time: Span, size: Bytes| {
        rate_at(steps, time).map_or(Span::ZERO, |rate| rate.time_to_send(size))
    };
    let moments = forward.iter().chain(reverse).map(|step| Span(step.at_ns.0)).chain([Span::ZERO]);
    moments.map(|time| (time, at(forward, time, Bytes(MTU.0)) + at(reverse, time, back))).collect()
}

#[cfg(test)]
mod tests;
