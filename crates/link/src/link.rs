//! The link: passes packets from one stage to the next.

use crate::aggregation::Aggregation;
use crate::capacity::Capacity;
use crate::delay::{Delay, DelayLine, Drawn};
use crate::error::{LinkError, probability};
use crate::loss::LossProcess;
use crate::packet::Packet;
use crate::policer::Policer;
use crate::profile::Profile;
use crate::queue::{Discipline, Item, Tally};
use crate::record::{DropCause, Fate, Outcome};
use crate::stats::Stats;
use crate::thinning::Thinning;
use rand_core::Rng;
use thalweg_plan::plan;
use thalweg_trace::QueueCounters;
use thalweg_units::{Bytes, MTU, Packets, Probability, Span, Time};

/// One direction of a path.
///
/// Times must not decrease from call to call. [`Link::send`], [`Link::poll`] and [`Link::stats`] process everything due
/// by then, so a caller need not wake up for departures from the queue.
#[derive(Debug)]
pub struct Link<P> {
    loss: LossProcess,
    duplicate: Probability,
    thinning: Option<Thinning<P>>,
    policer: Option<Policer>,
    queue: Discipline<P>,
    tally: Tally,
    capacity: Capacity,
    /// The packet being sent; without one, the queue is empty. The packet itself is already in `line`, which saves a
    /// move, unless it never leaves or was policed.
    sending: Option<Sending>,
    /// Whether a router shapes merged packets: it then hands over a merged packet in one piece.
    offloads: bool,
    delay: Delay,
    aggregation: Option<Aggregation>,
    line: DelayLine<P>,
    profile: Profile,
    /// The latest packet that found a drop-tail queue full.
    discarded: Option<P>,
    /// Time of the latest call.
    now: Time,
    /// The counters that the link itself keeps; [`Link::stats`] adds those of its parts.
    counters: Stats,
}

/// Outcome of offering a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It was queued or is being sent, or is held by ACK thinning.
    Queued,
    /// It was lost at random.
    Lost,
    /// The queue discipline dropped it on arrival.
    Dropped,
    /// The policer before the queue dropped it.
    Policed,
}

/// The packet being sent. If the rate stays 0 forever, both times are [`Time::MAX`] and the packet is discarded.
#[derive(Clone, Copy, Debug)]
struct Sending {
    size: Bytes,
    departure: Time,
    /// Due time, or with reordering the earliest arrival. No later packet arrives before it, unless the link allows
    /// reordering and its delay decreases.
    due: Time,
}

impl Sending {
    /// Returns whether the packet never leaves.
    fn is_stuck(self) -> bool {
        self.departure == Time::MAX
    }

    /// Returns whether the packet has left by `now`, which may be [`Time::MAX`].
    fn has_left(self, now: Time) -> bool {
        self.departure <= now && !self.is_stuck()
    }
}

impl<P: Packet> Link<P> {
    /// Creates an idle link.
    ///
    /// `traces` contains the trace and the profile that the link names. `seed` seeds the random decisions of its queue
    /// discipline.
    ///
    /// # Errors
    /// If the configuration, or the trace or profile that it names, is invalid, or the discipline is cake, which only
    /// the kernel has.
    pub fn new(config: &plan::Link, traces: &plan::Traces, seed: u64) -> Result<Link<P>, LinkError> {
        let profile = Profile::new(config, traces)?;
        Ok(Link {
            loss: LossProcess::new(&config.loss, profile.loss.is_some())?,
            duplicate: probability("duplicate", config.duplicate)?,
            thinning: config.ack_thinning.filter(|ratio| *ratio > 1).map(Thinning::new),
            policer: config.policer.as_ref().map(Policer::new),
            queue: Discipline::new(&config.queue, config.buffer, seed)?,
            tally: Tally::default(),
            capacity: Capacity::new(config, traces)?,
            sending: None,
            offloads: config.offloads,
            delay: Delay::new(config)?,
            aggregation: config.aggregation.as_ref().map(Aggregation::new),
            line: DelayLine::new(),
            profile,
            discarded: None,
            now: Time::ZERO,
            counters: Stats::default(),
        })
    }

    /// Offers a packet of `size` bytes (IP header included) at `now`.
    ///
    /// `extra_delay` adds to the packet's propagation delay. Packets with the same extra delay stay in order unless the
    /// link itself reorders packets; those with less may overtake those with more. Each distinct value in use has a
    /// small cost, so it should be constant within a flow.
    ///
    /// If the packet is duplicated, the result is that of the original.
    ///
    /// # Panics
    /// If `now` is earlier than in the previous call.
    pub fn send<R: Rng + ?Sized>(&mut self, now: Time, packet: P, size: Bytes, extra_delay: Span, rng: &mut R) -> Sent {
        self.advance(now);
        let number = self.counters.offered.0 as u32;
        self.counters.offered += Packets(1);

        if let Some(probability) = self.profile.loss.as_ref().and_then(|loss| loss.at(now)) {
            self.loss.set_ratio(probability);
        }
        // All random draws precede all decisions, so the outcome of this packet does not change the random numbers of
        // others.
        let is_lost = self.loss.takes(rng);
        let may_duplicate = self.duplicate > Probability::NEVER;
        let is_doubled = may_duplicate && self.duplicate.sample(rng.next_u64());
        let drawn = self.delay.draw(rng);
        let drawn_for_copy = if may_duplicate { self.delay.draw(rng) } else { drawn };

        if is_lost {
            self.counters.lost += Packets(1);
            self.tally.record(number, Fate::Dropped(DropCause::Random));
            return Sent::Lost;
        }
        let item = |packet, drawn: Drawn| Item {
            packet,
            size,
            number,
            is_marked: false,
            enqueued: now,
            jitter: drawn.jitter,
            offset: extra_delay + drawn.hold,
        };
        let copy = is_doubled.then(|| item(packet.clone(), drawn_for_copy));
        let sent = self.enqueue(now, item(packet, drawn));
        if let Some(copy) = copy {
            self.enqueue_copy(now, copy);
        }
        sent
    }

    /// Takes the latest packet that found a drop-tail queue full.
    #[inline]
    pub fn take_discarded(&mut self) -> Option<P> {
        self.discarded.take()
    }

    /// Returns the time at which [`Link::poll`] may next return a packet; `None` if none will without a further
    /// [`Link::send`].
    ///
    /// The time is exact unless the link has extra delays, reordering, aggregation, ACK thinning, merged packets or a
    /// policer after the capacity: then `poll` may return nothing yet, and this returns a later time. It is in the past
    /// if `poll` has not been called until it returned nothing.
    pub fn next_wake(&self) -> Option<Time> {
        // All packets in the queue are due after the packet being sent, unless reordering is allowed and the delay
        // decreases. A merged packet may have arrived before its last segment has left.
        let mut next = self.line.next_arrival().unwrap_or(Time::MAX);
        if let Some(Sending { departure, due, .. }) = self.sending {
            next = next.min(if due > self.now { due } else { due.max(departure) });
        }
        if let Some(deadline) = self.thinning.as_ref().and_then(Thinning::next_deadline) {
            next = next.min(deadline);
        }
        (next != Time::MAX).then_some(next)
    }

    /// Returns the packet that probably arrives next.
    pub fn upcoming(&self) -> Option<&P> {
        self.line.first()
    }

    /// Returns the next packet that has arrived by `now`, in order of arrival. Call this until it returns `None`.
    ///
    /// # Panics
    /// If `now` is earlier than in the previous call.
    pub fn poll(&mut self, now: Time) -> Option<P> {
        self.poll_due(now).map(|(_, packet)| packet)
    }

    /// Like [`Link::poll`], with the time at which the packet arrived.
    ///
    /// # Panics
    /// If `now` is earlier than in the previous call.
    pub fn poll_due(&mut self, now: Time) -> Option<(Time, P)> {
        self.advance(now);
        let arrived = self.line.pop(now)?;
        self.counters.delivered += Packets(1);
        Some(arrived)
    }

    /// Returns the counters of the link at `now`.
    ///
    /// # Panics
    /// If `now` is earlier than in the previous call.
    pub fn stats(&mut self, now: Time) -> Stats {
        self.advance(now);
        Stats {
            backlog_packets: self.queue.packets(),
            backlog_bytes: self.queue.bytes(),
            in_flight: self.line.len() + Packets(u64::from(self.is_stuck())) + self.held(),
            thinned: self.thinning.as_ref().map_or(Packets(0), |thinning| thinning.thinned),
            dropped: self.tally.dropped,
            early: self.tally.early,
            marked: self.tally.marked,
            ..self.counters
        }
    }

    /// Starts to record the outcome of each packet; [`Link::outcomes`] returns them.
    pub fn record(&mut self) {
        self.tally.log.get_or_insert_default();
    }

    /// Returns the outcomes that became known since the last call, in that order; empty unless they are recorded.
    pub fn outcomes(&mut self) -> Vec<Outcome> {
        let offered = self.counters.offered.0;
        // Returns the number of the latest offered packet whose number has these low 32 bits.
        let number = |low: u32| offered - 1 - u64::from((offered as u32).wrapping_sub(1).wrapping_sub(low));
        let log = self.tally.log.as_mut().map(std::mem::take).unwrap_or_default();
        log.into_iter().map(|(low, fate)| (number(low), fate)).collect()
    }

    /// Returns the bytes that the link could have carried from 0 to `now`; `None` if it is unlimited.
    pub fn capacity_bytes(&self, now: Time) -> Option<Bytes> {
        self.capacity.bytes_until(now)
    }

    /// Returns the counters at `now` in the form of the table `queue`.
    ///
    /// # Panics
    /// Like [`Link::stats`].
    pub fn queue_counters(&mut self, now: Time) -> QueueCounters {
        let stats = self.stats(now);
        QueueCounters {
            backlog_bytes: stats.backlog_bytes.0,
            backlog_packets: stats.backlog_packets.0,
            dropped_packets: stats.dropped.0,
            early_drops: Some(stats.early.0),
            policed_packets: Some(stats.policed.0),
            lost_packets: stats.lost.0,
            marked_packets: stats.marked.0,
            sent_packets: stats.sent_packets.0,
            sent_bytes: stats.sent_bytes.0,
            sojourn_sum_us: Some(stats.sojourn.as_micros()),
            capacity_bytes: self.capacity_bytes(now).map(|bytes| bytes.0),
        }
    }

    /// Processes everything due by `now`, except the delivery of packets that have arrived.
    #[inline]
    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = now;
        if self.thinning.is_some() {
            return self.release(now);
        }
        if self.sending.as_ref().is_some_and(|sending| sending.has_left(now)) {
            self.drain(now);
        }
    }

    /// Enqueues the acknowledgements whose hold time is over by `now`, each after the departures due by its deadline;
    /// then completes the departures that are due by `now`.
    fn release(&mut self, now: Time) {
        while let Some(deadline) = self.thinning.as_ref().and_then(Thinning::next_deadline).filter(|at| *at <= now) {
            self.drain(deadline);
            if let Some(item) = self.thinning.as_mut().and_then(Thinning::release) {
                self.enqueue_passed(deadline, item);
            }
        }
        self.drain(now);
    }

    fn held(&self) -> Packets {
        self.thinning.as_ref().map_or(Packets(0), Thinning::held)
    }

    fn drain(&mut self, now: Time) {
        while let Some(Sending { size, departure, .. }) = self.sending.filter(|sending| sending.has_left(now)) {
            self.sending = None;
            self.counters.sent_packets += Packets(1);
            self.counters.sent_bytes += size;
            if let Some(next) = self.queue.pop(departure, &mut self.tally) {
                self.begin(departure, true, next);
            }
        }
    }

    fn is_stuck(&self) -> bool {
        self.sending.is_some_and(|sending| sending.is_stuck())
    }

    /// Returns whether the policer, if it is at this position, passes a packet; counts the packet otherwise.
    fn conforms(&mut self, is_after: bool, now: Time, item: &Item<P>) -> bool {
        let Some(policer) = self.policer.as_mut().filter(|policer| policer.is_after == is_after) else { return true };
        let conforms = policer.passes(now, item.size);
        if !conforms {
            self.counters.policed += Packets(1);
            self.tally.record(item.number, Fate::Dropped(DropCause::Policed));
        }
        conforms
    }

    #[cold]
    fn enqueue_copy(&mut self, now: Time, copy: Item<P>) {
        self.counters.duplicated += Packets(1);
        self.advance(now);
        self.enqueue(now, copy);
    }

    // Inlined so that the item is written once, to its slot in the queue: a copy right after the stores to its fields
    // waits for these and for all earlier stores.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, item: Item<P>) -> Sent {
        if let Some(thinning) = &mut self.thinning {
            return match thinning.offer(now, item) {
                Some(item) => self.enqueue_passed(now, item),
                None => Sent::Queued,
            };
        }
        self.enqueue_passed(now, item)
    }

    #[inline(always)] // As `enqueue`.
    fn enqueue_passed(&mut self, now: Time, item: Item<P>) -> Sent {
        if !self.conforms(false, now, &item) {
            return Sent::Policed;
        }
        let Discipline::Fifo(fifo) = &mut self.queue else { return self.enqueue_managed(now, item) };
        if self.sending.is_none() {
            self.begin(now, false, item);
            return Sent::Queued;
        }
        if !fifo.has_capacity(item.size) {
            self.tally.drop_at_limit(item.number);
            self.discarded = Some(item.packet);
            return Sent::Dropped;
        }
        fifo.push(item);
        Sent::Queued
    }

    /// Enqueues a packet with a discipline that manages its queue.
    fn enqueue_managed(&mut self, now: Time, item: Item<P>) -> Sent {
        let is_taken = self.queue.push(now, item, &mut self.tally);
        if self.sending.is_none() {
            if let Some(next) = self.queue.pop(now, &mut self.tally) {
                self.begin(now, false, next);
            }
        }
        if is_taken { Sent::Queued } else { Sent::Dropped }
    }

    /// Starts to send a packet.
    #[inline(always)] // As `enqueue`.
    fn begin(&mut self, start: Time, is_back_to_back: bool, item: Item<P>) {
        let sojourn = item.sojourn(start);
        self.counters.sojourn += sojourn;
        let sending = self.occupy(start, is_back_to_back, item.size, item.jitter);
        let Sending { departure, due, .. } = sending;
        if sending.is_stuck() || !self.conforms(true, departure, &item) {
            return;
        }
        self.tally.record(item.number, Fate::Left { sojourn, is_marked: item.is_marked });
        let due = match &mut self.aggregation {
            Some(aggregation) => aggregation.departure(due, item.size),
            None => due,
        };
        if self.delay.allows_reordering() {
            self.line.push_loose(due + item.jitter + item.offset, item.packet);
        } else {
            self.line.push(due, item.offset, item.packet);
        }
    }

    #[inline]
    fn occupy(&mut self, start: Time, is_back_to_back: bool, size: Bytes, jitter: Span) -> Sending {
        let mut sending = Sending { size, departure: Time::MAX, due: Time::MAX };
        if let Some(departure) = self.capacity.send(start, is_back_to_back, size) {
            if let Some(delay) = self.profile.delay.as_ref().and_then(|delay| delay.at(departure)) {
                self.delay.set(delay);
            }
            let handed_over = if self.offloads { handed_over(start, departure, size) } else { departure };
            sending.departure = departure;
            sending.due = self.delay.due(handed_over, jitter);
        }
        self.sending = Some(sending);
        sending
    }
}

/// Returns the time at which a shaper hands a merged packet to its network card: with its first segment; the time of
/// the other segments passes afterwards, as in htb and tbf.
fn handed_over(start: Time, departure: Time, size: Bytes) -> Time {
    let duration = u128::from(departure.since(start).0);
    start + Span((duration * u128::from(size.0.min(MTU.0)) / u128::from(size.0.max(1))) as u64)
}
