//! The loop that carries packets.
//!
//! ```text
//!      ┌────────────────────────── asleep until something comes or is due ◄─────────────────────────┐
//!      ▼                                                                                            │
//!  take what the kernel has received ──► offer it to the links, each at its time of receipt ──► send what has arrived
//! ```
//!
//! Each iteration reads the clock, offers the packets that were received until then, and sends those that have arrived
//! by then. If it reaches the maximum number of packets in a direction, the link only advances to the time of receipt
//! of the first packet left. Therefore, the relay's lateness delays packets, but does not change the queue.

use super::capture::Recorder;
use super::direction::Direction;
use super::interface::{Addresses, Interface};
use super::lateness::Lateness;
use super::packet::{Packet, Pool};
use super::sleep_control::SleepControl;
use crate::clock::{Clock, monotonic_ns, timespec};
use crate::packet_socket::BATCH;
use crate::stage::CommandQueue;
use crate::stamps::Stamps;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use thalweg_units::{Span, Time};

/// Maximum number of packets that an iteration receives, and sends, in a direction.
const TURN: usize = 4 * BATCH;
/// Maximum time for which the relay sleeps without waiting for packets.
const MAX_RECEIVE_INTERVAL: Span = Span::from_millis(1);
/// Interval of the checks for commands while the relay does not sleep.
const MAX_COMMAND_INTERVAL: Span = Span::from_millis(2);

pub(super) struct Pump {
    pub clock: Clock,
    pub stamps: Stamps,
    pub pool: Rc<Pool>,
    pub forward: Direction,
    pub reverse: Direction,
    pub senders: Side,
    pub receiver: Side,
    /// The smaller configured propagation delay of the two directions.
    pub shortest_delay: Span,
    pub recorder: Option<Recorder>,
    pub lateness: Lateness,
    /// Packets that wait for the rest of their batch.
    pub batch: Vec<Packet>,
    /// Due times of the packets in `batch`.
    pub dues: Vec<Time>,
}

/// Interfaces at one end of the path.
pub(super) struct Side {
    pub interfaces: Vec<Interface>,
    /// Address of the host, and header of packets to it, by interface.
    pub hosts: Vec<(IpAddr, Addresses)>,
    /// Time and destination of the oldest received packet, by interface.
    pub heads: Vec<Option<(Time, IpAddr)>>,
}

impl Pump {
    /// Carries packets until the command `stop`.
    ///
    /// # Errors
    /// If a descriptor cannot be duplicated, or waiting for packets fails.
    pub fn run(&mut self, commands: &CommandQueue) -> io::Result<()> {
        let interfaces = self.senders.interfaces.iter().chain(&self.receiver.interfaces);
        // Duplicated descriptors, so that waiting does not borrow the interfaces.
        let sockets: Vec<OwnedFd> =
            interfaces.map(|way| way.readable_fd().try_clone_to_owned()).collect::<io::Result<_>>()?;
        let fds = [commands.wakeup()].into_iter().chain(sockets.iter().map(AsFd::as_fd));
        let mut waits: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();

        let start_ns = self.clock.monotonic_ns(Time::ZERO);
        while monotonic_ns() < start_ns {
            sleep(&mut waits[..1], Some(Span(start_ns.saturating_sub(monotonic_ns()))))?;
            if commands.is_stopped() {
                return Ok(());
            }
        }
        let receive_interval = self.shortest_delay.min(MAX_RECEIVE_INTERVAL);
        let mut sleep_control = SleepControl::default();
        let mut checked = Time::ZERO;
        loop {
            self.stamps.refresh(monotonic_ns());
            let now = self.clock.now();
            let is_busy = self.turn(now);
            if !is_busy {
                let wake = [self.forward.next_wake(), self.reverse.next_wake()].into_iter().flatten().min();
                let from = self.clock.now();
                match wake.map(|wake| Span(wake.0.saturating_sub(from.0))) {
                    // Packets that are received meanwhile keep their time of receipt.
                    Some(wait) if wait <= receive_interval => {
                        if let Some(asleep) = sleep_control.sleep_before(from, wait) {
                            sleep(&mut waits[..1], Some(asleep))?;
                            sleep_control.record_timed_sleep(from, asleep, self.clock.now());
                        }
                    }
                    wait => {
                        sleep(&mut waits, wait)?;
                        sleep_control.record_sleep(from, self.clock.now());
                    }
                }
            }
            if waits[0].revents().contains(PollFlags::IN) || now.since(checked) >= MAX_COMMAND_INTERVAL {
                waits[0].clear_revents();
                checked = now;
                if commands.is_stopped() {
                    return Ok(());
                }
            }
        }
    }

    /// Runs one iteration; returns whether packets were taken or sent.
    fn turn(&mut self, now: Time) -> bool {
        let Pump { clock, stamps, pool, forward, reverse, senders, receiver, recorder, .. } = self;
        let times = (&*clock, &*stamps);
        let destination = receiver.hosts[0];
        let to_receiver = |port: usize, to: IpAddr| (to == destination.0).then_some((port, destination.1));
        let (forward_now, came) =
            senders.take(now, times, pool, to_receiver, |at, packet| forward.offer(at, packet, recorder));
        forward.catch_up(forward_now, recorder);

        let hosts = &senders.hosts;
        let to_sender = |_: usize, to: IpAddr| {
            let port = hosts.iter().position(|(address, _)| *address == to)?;
            Some((port, hosts[port].1))
        };
        let (reverse_now, came_back) =
            receiver.take(now, times, pool, to_sender, |at, packet| reverse.offer(at, packet, recorder));
        reverse.catch_up(reverse_now, recorder);

        let went = self.deliver(true);
        let went_back = self.deliver(false);
        came + came_back + went + went_back > 0
    }

    /// Sends at most [`TURN`] packets that have arrived at the end of a link; returns their number.
    fn deliver(&mut self, is_forward: bool) -> usize {
        let mut count = 0;
        let mut target = 0;
        while count < TURN {
            let direction = if is_forward { &mut self.forward } else { &mut self.reverse };
            let Some((due, packet)) = direction.poll() else { break };
            let to = if is_forward { 0 } else { packet.port };
            if to != target || self.batch.len() == BATCH {
                self.flush(is_forward, target);
                target = to;
            }
            self.batch.push(packet);
            self.dues.push(due);
            count += 1;
        }
        self.flush(is_forward, target);
        count
    }

    fn flush(&mut self, is_forward: bool, target: usize) {
        if self.batch.is_empty() {
            return;
        }
        let side = if is_forward { &mut self.receiver } else { &mut self.senders };
        side.interfaces[target].send(&self.batch);
        let sent = self.clock.now();
        self.batch.clear();
        for due in self.dues.drain(..) {
            self.lateness.add(due, sent);
        }
    }
}

impl Side {
    /// Passes at most [`TURN`] packets that were received until `now` to `hand_over`, in the order of receipt. `route`
    /// returns the sender's port and the header for an interface and a destination; `None` discards the packet. Returns
    /// the time until which all packets have been taken, and their number.
    fn take(
        &mut self,
        now: Time,
        (clock, stamps): (&Clock, &Stamps),
        pool: &Rc<Pool>,
        route: impl Fn(usize, IpAddr) -> Option<(usize, Addresses)>,
        mut hand_over: impl FnMut(Time, Packet),
    ) -> (Time, usize) {
        for (interface, head) in self.interfaces.iter_mut().zip(&mut self.heads) {
            *head = next_head(interface, clock, stamps);
        }
        for count in 0..TURN {
            let first = self.heads.iter().enumerate().filter_map(|(from, head)| Some((*head.as_ref()?, from)));
            let Some(((at, to), from)) = first.min_by_key(|((at, _), _)| *at).filter(|((at, _), _)| *at <= now) else {
                return (now, count);
            };
            let interface = &mut self.interfaces[from];
            match route(from, to) {
                Some((port, addresses)) => hand_over(at, interface.take(&addresses, port, pool)),
                None => interface.skip(),
            }
            self.heads[from] = next_head(interface, clock, stamps);
        }
        let next = self.heads.iter().flatten().map(|(at, _)| *at).min();
        (next.map_or(now, |next| next.min(now)), TURN)
    }
}

/// Returns the time of receipt and the destination of the oldest packet received since the start; earlier ones are
/// skipped.
#[inline]
fn next_head(interface: &mut Interface, clock: &Clock, stamps: &Stamps) -> Option<(Time, IpAddr)> {
    loop {
        let head = interface.head()?;
        let received_ns = stamps.monotonic_ns(head.realtime_ns);
        if received_ns >= clock.monotonic_ns(Time::ZERO) {
            return Some((clock.at(received_ns), head.to));
        }
        interface.skip();
    }
}

/// Waits for one of these descriptors for at most this time; `None` is unlimited.
fn sleep(waits: &mut [PollFd<'_>], wait: Option<Span>) -> io::Result<()> {
    let limit = wait.map(|wait| timespec(wait.0));
    match poll(waits, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
