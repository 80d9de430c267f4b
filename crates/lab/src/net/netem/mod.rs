//! Links made of the kernel's queue disciplines.
//!
//! ```text
//!             ┌──────────────────────────────── router ─────────────────────────────────┐
//!  sender ──► s1 in ─► [f-loss: netem] ─► route ─► [f-queue:] htb + queue ─► [netem] ─► r0 ──► receiver
//!                        loss or duplicates           policer, rate             jitter, or packets held back
//!  sender ◄── s1 ◄─ netem ◄─ [r-queue: htb + queue] ◄─ route ◄─ [r-loss: netem] ◄─ r0 in ◄──── receiver
//!                     all of the delay
//!             └──────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Stages in brackets exist if the experiment needs them. Each stage except aggregation is alone on an interface;
//! `f-loss` and similar devices are ifb devices, to which a filter redirects packets. A classful tree could hold
//! several stages on one interface, but netem's counters have been wrong in such trees in several kernels, and newer
//! kernels refuse duplicates there.
//!
//! **The queue** is htb with a single class, because it accepts new rates while packets wait, or tbf on kernels without
//! htb. Sizes are those of IP packets (`stab overhead -14` subtracts the Ethernet header). A packet leaves htb when its
//! transmission begins, so that the one being sent is not in the queue, as in the plan. The child of htb is the
//! discipline of the plan.
//!
//! **The policer** is a filter of htb: only there does its bucket use the sizes of the table (`stab`). htb counts the
//! drops of its filter and of its child.
//!
//! **Conditions that change** are commands that run when they are due (`watch.at`). When the delay falls, no packet
//! overtakes another, because the netem with the delay has a `rate`, as for jitter below (not with `allow_reordering`).
//!
//! **Aggregation** is a netem with `slot`, alone or as the child of an existing one.
//!
//! **The delay** of both directions, and of `extra_rtt`, is entirely on the reverse path: the sender cannot detect the
//! difference, and behind the queue it would need an additional stage. A packet leaves a link of the plan when its
//! transmission ends, but it leaves htb when its transmission begins. Therefore, the delay includes the transmission
//! time of a full packet forward and of an ACK in reverse; it changes with the rate. In virtual time, forward packets
//! pass an additional netem instead, which holds each for its own transmission time (`rate`), unless there is jitter,
//! holding back, or a policer behind the queue. With up traffic, packets of both sizes take the reverse path, and the
//! netem with the delay holds each for its own transmission time (`rate`) on the reverse link.
//!
//! **Jitter** keeps packets in order, as in the plan: with a `rate`, netem computes a packet's delay from its
//! predecessor's departure (sch_netem.c, netem_enqueue), and a rate of 100 Gbit/s has no other effect. With
//! `allow_reordering` this rate is omitted, and netem reorders. **Holding back** is `delay D reorder R%`: R % of the
//! packets pass immediately, the others wait for D.
//!
//! Deviations from the plan:
//! - unless each forward packet is held for its own transmission time, a small forward packet has the transmission time
//!   of a full one;
//! - a buffer smaller than a packet is enlarged to one packet, because a packet must enter htb's queue before it can
//!   leave; a comment in the log reports it;
//! - after a pause, and after late timers, some data leaves at once ([`TIMER_SLACK`]);
//! - the delay of both directions changes for packets on the reverse path, so that a change of the delay of ACKs takes
//!   effect later by the delay of the data;
//! - cake's limit counts memory, of which a packet takes more than its size;
//! - random numbers are the kernel's, and do not depend on the experiment's seed.
//!
//! The module `refused` lists what queue disciplines cannot emulate.
//!
//! Source: tc-htb(8), tc-tbf(8), tc-netem(8), tc-stab(8), tc-mirred(8), tc-police(8); Linux 5.10 to 6.18,
//! net/sched/sch_{htb,tbf,netem}.c and drivers/net/ifb.c.

mod conditions;
mod discipline;
mod refused;
mod words;

use crate::error::Error;
use crate::net::places::{self, RECEIVER_INTERFACE, ROUTER};
use crate::net::shell::Shell;
use crate::net::{Place, build};
use crate::protocol::{Qdisc, Qdiscs};
use conditions::Conditions;
use std::collections::{BTreeMap, BTreeSet};
use thalweg_plan::plan::{Buffer, Capacity, Experiment, Link, Policer, Queue, Step, Traces};
use thalweg_units::{Bytes, MTU, Packets, Rate, Span, Time};

/// Checks whether queue disciplines can emulate an experiment on a kernel that has the `available` ones.
///
/// # Errors
/// `not-on-netem`: they cannot. `no-qdisc`: the kernel lacks one.
pub(crate) fn check(experiment: &Experiment, traces: &Traces, available: &BTreeSet<String>) -> Result<(), Error> {
    refused::checked(experiment, traces, available).map(|_| ())
}

pub(crate) use refused::in_virtual_time;

/// IP packet length of an ACK without data: two headers and timestamps.
const ACK: Bytes = Bytes(20 + 20 + 12);

/// Time that both hosts together take to answer a packet in virtual time. If the round-trip time is a multiple of the
/// packet time, an answering packet arrives at the queue at the instant at which another packet leaves it. Without a
/// host delay, the rounding of timers would determine whether it fits in a full queue (Floyd and Jacobson, "On traffic
/// phase effects in packet-switched gateways", 1992). With real hosts it arrives slightly later, and fits.
const HOSTS: Span = Span::from_micros(10);

/// Tolerated lateness of a queue's timer without loss of capacity while it has packets. On a busy machine, timers can
/// be late by most of a millisecond. The cost is that packets for up to this time may leave at once after a pause.
pub const TIMER_SLACK: Span = Span::from_millis(1);

/// The stages of an experiment, as commands in the router's namespace.
#[derive(Debug, Default)]
pub(crate) struct Shaping {
    lines: Vec<Line>,
    /// Tolerated lateness of timers.
    slack: Span,
    /// Interfaces that already have `clsact`.
    classified: BTreeSet<String>,
    watch: Qdiscs,
}

#[derive(Debug)]
enum Line {
    Command(String),
    /// Creates an ifb device.
    Device(String),
    Note(String),
}

impl Line {
    fn command(&self) -> Option<String> {
        if let Line::Command(command) = self { Some(command.clone()) } else { None }
    }

    /// Returns the commands that create the device, if it is an ifb device.
    fn device(&self) -> Vec<String> {
        let Line::Device(name) = self else { return Vec::new() };
        let add = format!("ip link add {name} address {} type ifb", device_mac(name));
        [add].into_iter().chain(build::be_silent(name)).chain([format!("ip link set {name} up")]).collect()
    }
}

/// One direction: its link with the conditions, the first letter of its device names, and the incoming and the outgoing
/// interfaces.
struct Direction<'a> {
    link: &'a Link,
    conditions: &'a Conditions,
    letter: char,
    from: &'a [String],
    to: &'a [String],
}

impl Shaping {
    /// Builds the stages, for timers that are late by at most `slack`.
    ///
    /// # Errors
    /// The same as [`check`].
    pub fn new(
        experiment: &Experiment,
        traces: &Traces,
        senders: &[Place],
        available: &BTreeSet<String>,
        slack: Span,
    ) -> Result<Shaping, Error> {
        let [forward, reverse] = &refused::checked(experiment, traces, available)?;
        let sender_interfaces: Vec<String> = (1..=senders.len()).map(places::sender_interface).collect();
        let receiver_interface = [RECEIVER_INTERFACE.to_owned()];
        let mut shaping = Shaping { slack, ..Shaping::default() };
        if experiment.engine.offloads {
            shaping
                .lines
                .push(Line::Note("offloads are on: packets in the queues below can be up to 64 KiB".to_owned()));
        }

        let (from, to) = (&sender_interfaces, &receiver_interface);
        let there = Direction { link: &experiment.forward, conditions: forward, letter: 'f', from, to };
        let has_htb = available.contains("htb");
        let is_line = shaping.forward(&there, has_htb);
        // With up traffic, the netem of the delay accounts for transmission times on the reverse link.
        let back = if experiment.has_up_traffic() { Bytes::ZERO } else { ACK };
        let ways = ways((forward, is_line), (reverse, back));

        let (from, to) = (&receiver_interface, &sender_interfaces);
        let back = Direction { link: &experiment.reverse, conditions: reverse, letter: 'r', from, to };
        let loss = shaping.loss(&back);
        if !reverse.rates.is_empty() || loss.is_some() || back.link.policer.is_some() {
            let queue = shaping.queue(&back, has_htb, true);
            shaping.watch.reverse = Some(Qdisc { loss, ..queue });
        }
        for (place, interface) in senders.iter().zip(&sender_interfaces) {
            shaping.delay(experiment, [forward, reverse], (place, interface), &ways);
            if let Some(aggregation) = back.link.aggregation {
                shaping.slots(interface, words::slots(aggregation, reverse.fastest()), true);
            }
        }
        shaping.watch.at.sort_by_key(|(at, _)| *at);
        Ok(shaping)
    }

    /// Builds the forward link without its delay; returns whether each packet is held for its own transmission time.
    fn forward(&mut self, there: &Direction<'_>, has_htb: bool) -> bool {
        let late = words::jitter_or_hold(there.link, there.conditions.fastest());
        let behind = there.link.policer.filter(|policer| policer.after);
        // An additional stage per packet is acceptable only in virtual time, in which it takes no time.
        let may_have_line = self.slack == Span::ZERO && late.is_none() && behind.is_none();
        let line: &[(Span, Rate)] = if may_have_line { &there.conditions.rates } else { &[] };
        let has_stage = late.is_some() || !line.is_empty();
        let aggregation = there.link.aggregation;

        let loss = self.loss(there);
        let queue = self.queue(there, has_htb, has_stage || aggregation.is_some() || behind.is_some());
        let mut link = Qdisc { loss, ..queue };
        if let Some(late) = late {
            self.command(format!("tc qdisc add dev {RECEIVER_INTERFACE} root handle 1: netem {late}"));
        }
        for (verb, (at, rate)) in ["add"].into_iter().chain(std::iter::repeat("change")).zip(line) {
            let words = words::line(*rate);
            let command = format!("tc qdisc {verb} dev {RECEIVER_INTERFACE} root handle 1: netem {words}");
            if verb == "add" {
                self.command(command);
            } else {
                self.later(*at, &command);
            }
        }
        if let Some(aggregation) = aggregation {
            self.slots(RECEIVER_INTERFACE, words::slots(aggregation, there.conditions.fastest()), has_stage);
        }
        if let Some(policer) = behind {
            self.command(format!("tc qdisc add dev {RECEIVER_INTERFACE} root handle 1: {UNLIMITED_HTB}"));
            link.policer = Some(self.police(RECEIVER_INTERFACE, policer));
        }
        self.watch.forward = Some(link);
        !line.is_empty()
    }

    /// Builds the netem on the reverse path to a sender, which has all of the delay.
    fn delay(
        &mut self,
        experiment: &Experiment,
        [forward, reverse]: [&Conditions; 2],
        (place, interface): (&Place, &str),
        ways: &BTreeMap<Span, Span>,
    ) {
        // Outside of virtual time, real hosts take this time anyway.
        let hosts = if self.slack == Span::ZERO { HOSTS } else { Span::ZERO };
        let link = &experiment.reverse;
        let up = experiment.has_up_traffic();
        let fixed_delay = place.extra_rtt + hosts;
        let longest = ways.values().max().copied().unwrap_or_default();
        // Data that goes up crosses this netem as well, at most at its own link's rate; `None` is faster than any.
        let fastest = |one: Option<Rate>, other: Option<Rate>| one.zip(other).map(|(one, other)| one.max(other));
        let rate = if up { fastest(forward.fastest(), reverse.fastest()) } else { forward.fastest() };
        let limit = words::limit(fixed_delay + longest + link.jitter_ns, rate);
        let words = if ways.len() > 1 { words::changing_delay } else { words::delay };
        let netem = |verb: &str, at: Span, way: Span| {
            let line = reverse.rate_at(at).filter(|_| up);
            let delay = match line {
                Some(rate) => words::delay_on_line(way + fixed_delay, link.jitter_ns, rate),
                None => words(way + fixed_delay, link.jitter_ns, link.allow_reordering),
            };
            format!("tc qdisc {verb} dev {interface} root handle 1: netem limit {limit} {delay}")
        };
        for (&at, &way) in ways {
            if at == Span::ZERO {
                self.command(netem("add", at, way));
            } else {
                self.later(at, &netem("change", at, way));
            }
        }
    }

    /// Runs the commands.
    ///
    /// # Errors
    /// `no-qdisc`: the kernel rejects a command. `old-tc`: `tc` does not support a queue discipline. `no-tool`.
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

    /// Adds a command that runs at a time since the start.
    fn later(&mut self, at: Span, line: &str) {
        self.watch.at.push((at, line.split(' ').map(str::to_owned).collect()));
    }

    /// Lets packets leave an interface in bursts, behind its netem if it has one. Linux supports a size table only at
    /// the root: behind a netem, `max_bytes` includes Ethernet headers.
    fn slots(&mut self, interface: &str, words: String, is_behind_netem: bool) {
        let place = if is_behind_netem { "parent 1:1 handle 2:" } else { "root handle 1: stab overhead -14" };
        self.command(format!("tc qdisc add dev {interface} {place} netem {words}"));
    }

    /// Adds a policer to the htb at the root of a device.
    fn police(&mut self, device: &str, policer: Policer) -> (String, String) {
        self.command(format!(
            "tc filter add dev {device} parent 1: protocol all u32 match u32 0 0 action police {}",
            words::police(policer)
        ));
        (device.to_owned(), "1:".to_owned())
    }

    /// Redirects the traffic that enters or leaves an interface through an ifb device.
    fn lead(&mut self, interface: &str, way: &str, device: &str) {
        if self.classified.insert(interface.to_owned()) {
            self.command(format!("tc qdisc add dev {interface} clsact"));
        }
        self.command(format!(
            "tc filter add dev {interface} {way} protocol all u32 match u32 0 0 action mirred egress redirect dev \
             {device}"
        ));
    }

    /// Adds random loss or duplicates, if the link has any.
    fn loss(&mut self, direction: &Direction<'_>) -> Option<(String, String)> {
        let mut losses = direction.conditions.losses.iter();
        let loss = match losses.next() {
            Some((_, first)) => words::random_loss(*first),
            None => words::loss(direction.link)?,
        };
        let device = format!("{}-loss", direction.letter);
        self.lines.push(Line::Device(device.clone()));
        let netem = |verb: &str, loss: &str| {
            format!("tc qdisc {verb} dev {device} root handle 1: netem limit {} {loss}", words::MIN_LIMIT)
        };
        self.command(netem("add", &loss));
        for (at, ratio) in losses {
            self.later(*at, &netem("change", &words::random_loss(*ratio)));
        }
        for interface in direction.from {
            self.lead(interface, "ingress", &device);
        }
        Some((device, "1:".to_owned()))
    }

    /// Returns the device of the queue: the interface itself if there is only one and no stage follows.
    fn queue_device(&mut self, direction: &Direction<'_>, is_something_behind: bool) -> String {
        match direction.to {
            [only] if !is_something_behind => only.clone(),
            interfaces => {
                let device = format!("{}-queue", direction.letter);
                self.lines.push(Line::Device(device.clone()));
                for interface in interfaces {
                    self.lead(interface, "egress", &device);
                }
                device
            }
        }
    }

    /// Adds the policer in front of the queue, the queue, and the capacity.
    fn queue(&mut self, direction: &Direction<'_>, has_htb: bool, is_something_behind: bool) -> Qdisc {
        let device = self.queue_device(direction, is_something_behind);
        let policer = direction.link.policer.filter(|policer| !policer.after);
        let root = format!("dev {device} root handle 1: stab overhead -14");
        let mut rates = direction.conditions.rates.iter();
        let Some((_, first)) = rates.next() else {
            let command = match policer {
                Some(_) => format!("tc qdisc add dev {device} root handle 1: {UNLIMITED_HTB}"),
                None => format!("tc qdisc add {root} pfifo limit {}", words::MIN_LIMIT),
            };
            self.command(command);
            let policer = policer.map(|policer| self.police(&device, policer));
            return Qdisc { queue: (device, "1:".to_owned()), loss: None, policer, rates: Vec::new() };
        };
        self.note_small(direction.link);
        let child = discipline::words(&direction.link.queue, direction.link.buffer);
        let class = format!("dev {device} parent 1: classid 1:1 htb");
        let slack = self.slack;
        let change: Box<dyn Fn(Rate) -> String> = if has_htb {
            self.command(format!("tc qdisc add {root} htb default 1"));
            self.command(format!("tc class add {class} {}", words::htb(*first, slack)));
            Box::new(move |rate| format!("tc class change {class} {}", words::htb(rate, slack)))
        } else {
            let room = tbf_limit(&child);
            self.command(format!("tc qdisc add {root} tbf {} limit {room}", words::tbf(*first, slack)));
            Box::new(move |rate| format!("tc qdisc change {root} tbf {} limit {room}", words::tbf(rate, slack)))
        };
        self.command(format!("tc qdisc add dev {device} parent 1:1 handle 10: {child}"));
        for (at, rate) in rates {
            self.later(*at, &change(*rate));
        }
        let policer = policer.map(|policer| self.police(&device, policer));
        let rates = direction.conditions.rates.iter();
        let rates = match direction.link.capacity {
            Capacity::Profile {} => rates.map(|(at, rate)| Step { at_ns: Time::ZERO + *at, rate_bps: *rate }).collect(),
            _ => Vec::new(),
        };
        Qdisc { queue: (device, "10:".to_owned()), loss: None, policer, rates }
    }

    /// Adds a note if a queue is larger than in the plan, because it must hold at least one packet.
    fn note_small(&mut self, link: &Link) {
        let (has, gets) = match link.buffer {
            Buffer::Bytes { bytes: Bytes(bytes) } if bytes < MTU.0 => {
                let is_in_bytes = matches!(link.queue, Queue::Fifo {} | Queue::Red { .. });
                (format!("{bytes} bytes"), if is_in_bytes { "1500 bytes" } else { "1 packet" })
            }
            Buffer::Packets { packets: Packets(0) } => ("0 packets".to_owned(), "1"),
            _ => return,
        };
        self.lines.push(Line::Note(format!(
            "the buffer is {has}, but a queue of the kernel must hold at least one packet: it is {gets} here"
        )));
    }
}

/// An htb without a rate limit, whose filters can drop.
const UNLIMITED_HTB: &str = "stab overhead -14 htb direct_qlen 100000";

/// Returns the limit in the parameters of a child queue, because tbf applies its own limit to a child that is a fifo
/// when its rate changes.
fn tbf_limit(child: &str) -> &str {
    child.split(' ').skip_while(|word| !word.ends_with("limit")).nth(1).unwrap_or("1500")
}

/// Returns an Ethernet address for an ifb device. Packets do not use it, but the kernel's default is random, and two
/// networks would differ.
fn device_mac(name: &str) -> String {
    let number = ["f-loss", "f-queue", "r-loss", "r-queue"].iter().position(|device| *device == name);
    places::mac_text([0x02, 0, 0, 0, 0xff, number.map_or(0, |number| number as u8 + 1)])
}

/// Returns the sum of the forward and reverse delay over time: propagation, and the transmission times of a full packet
/// forward (unless each packet is held for its own, `is_line`) and of one of size `back` on the reverse path.
fn ways((forward, is_line): (&Conditions, bool), (reverse, back): (&Conditions, Bytes)) -> BTreeMap<Span, Span> {
    let there: &[(Span, Rate)] = if is_line { &[] } else { &forward.rates };
    let rates = there.iter().chain(&reverse.rates).map(|(at, _)| *at);
    let delays = forward.delays.iter().chain(&reverse.delays).map(|(at, _)| *at);
    let sent = |rate: Option<Rate>, size: Bytes| rate.map_or(Span::ZERO, |rate| rate.time_to_send(size));
    let way = |time: Span| {
        let there = sent(forward.rate_at(time).filter(|_| !is_line), Bytes(MTU.0));
        forward.delay_at(time) + there + reverse.delay_at(time) + sent(reverse.rate_at(time), back)
    };
    rates.chain(delays).chain([Span::ZERO]).map(|time| (time, way(time))).collect()
}

#[cfg(test)]
mod tests;
