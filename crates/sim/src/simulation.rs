//! The simulation: its components, and the events of each instant.

use crate::Summary;
use crate::calendar::{Alarm, Calendar, SimEvent};
use crate::connection::{Connection, Wakes};
use crate::connections::Connections;
use crate::cpu::{APPLICATION, Cpu, Task};
use crate::error::Error;
use crate::invalid;
use crate::ledger::{Ledger, Side};
use crate::offloads::{self, Card};
use crate::open::Open;
use crate::packet::Packet;
use crate::recording::Recording;
use crate::rows::Rows;
use rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use thalweg_cc::EcnFeedback;
use thalweg_link::Link;
use thalweg_plan::plan::{self, Experiment, Load};
use thalweg_tcp::{Data, KernelGeneration, Receiver, ReceiverConfig, Sender, SenderConfig, ToReceiver, ToSender};
use thalweg_trace::{Changes, Sink};
use thalweg_traffic::{Agenda, Delivery, Outbox, Randomness, Source, Stream, Wake};
use thalweg_units::{Bytes, Span, Time};

#[derive(Debug)]
struct Direction {
    link: Link<Box<Packet>>,
    stream: Stream,
    ends: Ends,
    is_ipv6: bool,
    mss: Bytes,
    is_merging: bool,
    /// The packet that the next one may be merged with.
    merged: Option<Box<Packet>>,
    recording: Option<Recording>,
}

/// An experiment in progress.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) experiment: Experiment,
    pub(crate) now: Time,
    pub(crate) calendar: Calendar,
    forward: Direction,
    reverse: Direction,
    /// Index of the host `receiver`, the only one that sends through the reverse link.
    receiver: usize,
    /// One for each host, in the order of their names; that of the host `receiver` stays empty.
    outboxes: Vec<Outbox<Box<Packet>>>,
    /// Min-heap of (next departure time, host) over hosts with queued packets.
    waiting_hosts: BinaryHeap<Reverse<(Time, usize)>>,
    /// CPUs of each host, in the order of their names; empty: the host has a CPU whenever it needs one.
    pub(crate) cpus: Vec<Vec<Cpu>>,
    /// One for each host, in the order of their names; `None`: the host handles each packet as it arrives.
    pub(crate) cards: Vec<Option<Card>>,
    receiver_outbox: Outbox<Box<Packet>>,
    /// Memory of packets that have arrived or were dropped, for reuse: recently used memory is still in the caches.
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")]
    spare: Vec<Box<Packet>>,
    pub(crate) connections: Connections,
    open: Open,
    agenda: Agenda,
    sources: Vec<Source>,
    next_sample: Option<Time>,
    last_sample: Option<Time>,
    rows: Rows,
}

/// Packets of one direction as counted by its ends.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    sent: u64,
    received: u64,
}

impl Simulation {
    /// Sets up the simulation at time zero. `traces` are the plan's.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the experiment is inconsistent or requests a feature that the simulator lacks.
    pub fn new(experiment: &Experiment, traces: &plan::Traces) -> Result<Simulation, Error> {
        invalid::check(experiment)?;
        invalid::check_traces(experiment, traces)?;
        let streams = Randomness::new(experiment);
        let link = |name, config, seed| Link::new(config, traces, seed).map_err(|error| Error::link(name, &error));
        let [forward_seed, reverse_seed] = streams.queues;
        let mut forward = link("forward", &experiment.forward, forward_seed)?;
        let link = |name, config, seed| Link::new(config, traces, seed).map_err(|error| Error::link(name, &error));
        let mut reverse = link("reverse", &experiment.reverse, reverse_seed)?;
        let recordings = [("forward", &mut forward), ("reverse", &mut reverse)];
        let [forward_recording, reverse_recording] =
            recordings.map(|(name, link)| Recording::new(experiment, name, link));
        let receiver_outbox = Outbox::new(experiment.hosts["receiver"].delay_jitter_ns, streams.receiver);
        let hosts = experiment.hosts.values().zip(streams.hosts);
        let outboxes = hosts.map(|(host, stream)| Outbox::new(host.delay_jitter_ns, stream)).collect();
        let cpus = experiment.hosts.values().zip(streams.cpus);
        let cpus = cpus.map(|(host, mut stream)| Cpu::all(host, &mut stream)).collect();
        let is_merging = experiment.forward.offloads || experiment.reverse.offloads;
        let cards = experiment.hosts.values().map(|host| Card::new(host, is_merging, experiment.mss())).collect();
        let sources = experiment.background.iter().zip(streams.sources);
        let mut simulation = Simulation {
            now: Time::ZERO,
            calendar: Calendar::default(),
            forward: Direction::new(
                experiment,
                forward,
                streams.forward,
                experiment.forward.offloads,
                forward_recording,
            ),
            reverse: Direction::new(
                experiment,
                reverse,
                streams.reverse,
                experiment.reverse.offloads,
                reverse_recording,
            ),
            receiver: host_index(experiment, "receiver"),
            outboxes,
            waiting_hosts: BinaryHeap::new(),
            cpus,
            cards,
            receiver_outbox,
            spare: Vec::new(),
            connections: Connections::default(),
            open: Open::default(),
            agenda: Agenda::new(experiment, streams.series, |_| true),
            sources: sources.map(|(config, stream)| Source::new(config, stream)).collect(),
            next_sample: (experiment.sample_interval_ns > Span::ZERO).then_some(Time::ZERO),
            last_sample: None,
            rows: Rows::new(experiment),
            experiment: experiment.clone(),
        };
        simulation.enter_first_events();
        Ok(simulation)
    }

    /// Advances to the next instant with events, and processes them. Returns false when the experiment is over.
    pub fn step(&mut self, sink: &mut dyn Sink) -> bool {
        let end = self.experiment.duration_ns.map_or(Time::MAX, |duration| Time::ZERO + duration);
        let (forward_wake, reverse_wake) = (self.forward.next_wake(), self.reverse.next_wake());
        let next = forward_wake.min(reverse_wake).min(self.next_wake());
        if next > end || next == Time::MAX || self.agenda.is_over() {
            if end != Time::MAX && !self.agenda.is_over() {
                self.now = end;
            }
            return false;
        }
        self.now = next;
        let is_forward_due = self.forward.is_due(forward_wake, next);
        if is_forward_due {
            while let Some(packet) = self.forward.link.poll(next) {
                self.arrive_at_receiver(packet, sink);
            }
        }
        // Packets that a receiver has just sent may arrive immediately.
        let reverse_wake = if is_forward_due { self.reverse.next_wake() } else { reverse_wake };
        if self.reverse.is_due(reverse_wake, next) {
            while let Some(packet) = self.reverse.link.poll(next) {
                self.arrive_at_sender(packet, sink);
            }
        }
        while let Some(host) = self.leaving_host() {
            while let Some(packet) = self.outboxes[host].poll(next) {
                self.enter_forward(packet);
            }
            self.expect_departure(host);
        }
        while let Some(packet) = self.receiver_outbox.poll(next) {
            self.enter_reverse(packet);
        }
        while let Some(event) = self.calendar.take(next) {
            self.happen(event, sink);
        }
        self.forward_merged();
        self.forward.emit_packets(sink);
        self.reverse.emit_packets(sink);
        if self.next_sample.is_some_and(|at| at <= next) {
            self.sample(sink);
            self.last_sample = Some(next);
            self.next_sample = Some(next + self.experiment.sample_interval_ns);
        }
        true
    }

    /// Returns the number of open connections.
    pub(crate) fn open_connections(&self) -> usize {
        self.open.len()
    }

    /// Ends the experiment at its current time: emits the last rows of transfers in progress and of links.
    pub fn finish(mut self, sink: &mut dyn Sink) -> Summary {
        for id in self.open.ids() {
            let mut connection = self.connections[id].take().expect("an open connection is there");
            while connection.transfer.is_some() {
                self.emit_transfer(&connection, sink);
                connection.advance(self.now);
            }
        }
        if self.last_sample != Some(self.now) {
            self.emit_queues(sink);
        }
        for Direction { link, recording, .. } in [&mut self.forward, &mut self.reverse] {
            link.stats(self.now);
            if let Some(recording) = recording.take() {
                recording.finish(link, sink);
            }
        }
        let packets = self.forward.link.stats(self.now).sent_packets + self.reverse.link.stats(self.now).sent_packets;
        Summary { simulated: self.now.since(Time::ZERO), packets: packets.0 }
    }

    /// Returns the current packet counts of both directions.
    pub fn ledger(&mut self) -> Ledger {
        let waiting = self.outboxes.iter().map(Outbox::waiting).sum();
        Ledger {
            forward: self.forward.side(self.now, waiting),
            reverse: self.reverse.side(self.now, self.receiver_outbox.waiting()),
        }
    }

    fn enter_first_events(&mut self) {
        for (first, series) in self.agenda.first_opens() {
            self.calendar.enter(first, SimEvent::Open { series });
        }
        for (flow, config) in self.experiment.flows.iter().enumerate() {
            if let Some(stop) = config.stop_ns {
                self.calendar.enter(stop, SimEvent::Stop { flow });
            }
        }
        for source in 0..self.sources.len() {
            self.enter_background(source);
        }
    }

    /// Returns the time of the next event outside of the links, or [`Time::MAX`].
    #[inline]
    fn next_wake(&self) -> Time {
        // Not an iterator, for speed.
        or_never(self.calendar.next())
            .min(or_never(self.next_sample))
            .min(or_never(self.receiver_outbox.next_wake()))
            .min(or_never(self.waiting_hosts.peek().map(|Reverse((at, _))| *at)))
    }

    fn leaving_host(&mut self) -> Option<usize> {
        self.waiting_hosts.peek().filter(|Reverse((at, _))| *at <= self.now)?;
        self.waiting_hosts.pop().map(|Reverse((_, host))| host)
    }

    /// Schedules the departure of a host's first queued packet, after that packet has changed.
    fn expect_departure(&mut self, host: usize) {
        if let Some(at) = self.outboxes[host].next_wake() {
            self.waiting_hosts.push(Reverse((at, host)));
        }
    }

    fn happen(&mut self, event: SimEvent, sink: &mut dyn Sink) {
        let now = self.now;
        match event {
            SimEvent::Open { series } => self.assign(self.ends_of(series).0, Task::Open { series }, sink),
            SimEvent::Stop { flow } => self.stop(flow, sink),
            SimEvent::Request { connection: id } => {
                let Some(connection) = &self.connections[id] else { return };
                self.assign(connection.host, Task::Request { connection: id }, sink);
            }
            SimEvent::SenderTimer { connection: id } => {
                let Some(connection) = &mut self.connections[id] else { return };
                let host = connection.host;
                if !connection.sender_alarm.expire(now) {
                    return;
                }
                if self.has_two_cpus(host) {
                    return self.on_sender_alarm(id, sink);
                }
                self.assign(host, Task::Wake { connection: id }, sink);
            }
            SimEvent::Pacing { connection: id } => {
                let Some(connection) = &self.connections[id] else { return };
                self.assign(connection.host, Task::Pace { connection: id }, sink);
            }
            SimEvent::Cpu { host, cpu } => self.on_turn(host as usize, cpu as usize, sink),
            SimEvent::Interrupt { host } => self.on_interrupt(host, sink),
            SimEvent::ReceiverTimer { connection: id } => {
                let Some(connection) = &mut self.connections[id] else { return };
                let host = connection.receiving_host;
                if connection.receiver_alarm.expire(now) {
                    self.assign(host, Task::Acknowledge { connection: id }, sink);
                }
            }
            SimEvent::Background { source } => {
                if self.experiment.background[source].up {
                    self.reverse.ends.sent += 1;
                    self.enter_reverse(Box::new(Packet::Udp { source }));
                } else {
                    self.forward.ends.sent += 1;
                    self.enter_forward(Box::new(Packet::Udp { source }));
                }
                self.enter_background(source);
            }
        }
    }

    fn has_two_cpus(&self, host: usize) -> bool {
        self.cpus[host].len() > 1
    }

    /// Executes a task of a host on one of its CPUs.
    pub(crate) fn perform(&mut self, task: Task, cpu: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let id = match task {
            Task::Open { series } => return self.open(series, sink),
            Task::Arrival(packet) => return self.take(packet, cpu, sink),
            Task::Acknowledge { connection: id } => {
                let Some(connection) = &mut self.connections[id] else { return };
                if connection.receiver.next_wake().is_some_and(|due| due <= now) {
                    connection.receiver.on_wake(now);
                }
                return self.after_receiver(id);
            }
            Task::Request { connection: id } => {
                let Some(connection) = &mut self.connections[id] else { return };
                let size = self.agenda.next_size(connection.series);
                connection.begin(now, size);
                id
            }
            Task::Wake { connection: id } => {
                let has_two_cpus = self.connections[id].as_ref().is_some_and(|it| self.has_two_cpus(it.host));
                let Some(connection) = &mut self.connections[id] else { return };
                connection.wakes.is_timer_queued = false;
                if has_two_cpus {
                    connection.sender.on_timer(now, &mut connection.stream);
                } else if connection.sender.next_wake().is_some_and(|due| due <= now) {
                    connection.sender.on_wake(now, &mut connection.stream);
                }
                id
            }
            Task::Pace { connection: id } => {
                let Some(connection) = &mut self.connections[id] else { return };
                connection.wakes.pacing_cpu = None;
                connection.sender.on_pacing(now);
                id
            }
            Task::Write { connection: id } => {
                let Some(connection) = &mut self.connections[id] else { return };
                connection.wakes.is_write_queued = false;
                id
            }
        };
        self.after_sender(id, cpu, sink);
    }

    fn ends_of(&self, series: usize) -> (usize, usize) {
        let flow = self.agenda.flow(self.agenda.copy_of(series).0);
        let host = host_index(&self.experiment, &flow.host);
        if flow.up { (self.receiver, host) } else { (host, self.receiver) }
    }

    fn enter_background(&mut self, source: usize) {
        if let Some(at) = self.sources[source].next_departure() {
            self.calendar.enter(at, SimEvent::Background { source });
        }
    }

    fn open(&mut self, index: usize, sink: &mut dyn Sink) {
        let now = self.now;
        if let Some(wake) = self.agenda.wake(index, now) {
            return self.run_app(index, wake, sink);
        }
        let Some(opening) = self.agenda.open(index, now) else { return };
        let mut connection = self.connect(index, opening.number, opening.seed);
        connection.begin(now, opening.size);
        let id = self.add(connection);
        if let Some(next) = opening.next {
            self.calendar.enter(next, SimEvent::Open { series: index });
        }
        self.after_sender(id, APPLICATION, sink);
    }

    /// Sends the messages of an application that was woken, and opens connections for them if needed.
    fn run_app(&mut self, index: usize, wake: Wake, sink: &mut dyn Sink) {
        for message in wake.messages {
            let id = match self.agenda.app_connections(index).get(message.connection as usize) {
                Some(id) => *id,
                None => self.open_for_app(index),
            };
            if let Some(connection) = &mut self.connections[id] {
                connection.send(self.now, message);
                self.after_sender(id, APPLICATION, sink);
            }
        }
        self.wake_app(index, wake.next);
    }

    fn open_for_app(&mut self, index: usize) -> usize {
        let (number, seed) = self.agenda.open_for_app(index, self.connections.next_id());
        let connection = self.connect(index, number, seed);
        self.add(connection)
    }

    /// Schedules a wakeup of the application of a series, immediately if `at` has passed.
    fn wake_app(&mut self, index: usize, at: Option<Time>) {
        if let Some(at) = at {
            self.calendar.enter(at.max(self.now), SimEvent::Open { series: index });
        }
    }

    fn add(&mut self, connection: Connection) -> usize {
        let id = self.connections.next_id();
        self.connections.push(connection);
        self.open.insert(id);
        id
    }

    fn connect(&self, index: usize, number: u64, seed: u64) -> Connection {
        let (host, receiving_host) = self.ends_of(index);
        let config = self.agenda.flow(self.agenda.copy_of(index).0);
        let cc = thalweg_cc::build(&config.cc, &config.cc_params).expect("the controller was checked");
        let (sending, receiving) = if config.up { ("receiver", &*config.host) } else { (&*config.host, "receiver") };
        let (sending, receiving) = (&self.experiment.hosts[sending], &self.experiment.hosts[receiving]);
        let ecn = cc.needs_ecn().or(config.ecn.then_some(EcnFeedback::Classic));
        let mss = self.experiment.mss();
        let sender = SenderConfig {
            mss,
            sndbuf_max: sending.sndbuf_max_bytes,
            kernel: kernel(sending),
            is_paced: config.paced,
            ecn,
        };
        let receiver = ReceiverConfig { mss, rcvbuf_max: receiving.rcvbuf_max_bytes, kernel: kernel(receiving), ecn };
        let mut connection = Connection {
            series: index,
            number,
            host,
            receiving_host,
            forward_extra: config.extra_rtt_ns.scale(1, 2),
            reverse_extra: config.extra_rtt_ns.saturating_sub(config.extra_rtt_ns.scale(1, 2)),
            sender: Sender::new(sender, cc),
            receiver: Receiver::new(receiver),
            sender_alarm: Alarm::default(),
            receiver_alarm: Alarm::default(),
            wakes: Wakes::default(),
            stream: Stream::seed_from_u64(seed),
            transfer: None,
            behind: VecDeque::new(),
            transfers_ended: 0,
            is_stopped: false,
            reported: Changes::default(),
        };
        connection.sender.connect(self.now);
        connection
    }

    /// Stops a flow: no new connections, and no new data on open ones.
    fn stop(&mut self, flow: usize, sink: &mut dyn Sink) {
        for id in self.open.ids() {
            let Some(connection) = &mut self.connections[id] else { continue };
            if self.agenda.copy_of(connection.series).0 == flow {
                let host = connection.host;
                connection.stop(self.now);
                self.after_sender(id, APPLICATION, sink);
                self.go_on(host, APPLICATION, sink);
            }
        }
        self.agenda.stop(flow);
    }

    fn arrive_at_receiver(&mut self, packet: Box<Packet>, sink: &mut dyn Sink) {
        self.forward.ends.received += 1;
        self.connections.expect(self.forward.link.upcoming().map(|packet| &**packet));
        self.arrive(self.receiver, packet, sink);
    }

    fn arrive_at_sender(&mut self, packet: Box<Packet>, sink: &mut dyn Sink) {
        self.reverse.ends.received += 1;
        self.connections.expect(self.reverse.link.upcoming().map(|packet| &**packet));
        let host = match *packet {
            Packet::Ack { connection, .. } => self.connections[connection].as_ref().map(|it| it.host),
            Packet::Data { connection, .. } | Packet::Merged { connection, .. } => {
                self.connections[connection].as_ref().map(|it| it.receiving_host)
            }
            Packet::Udp { .. } => None,
        };
        if let Some(host) = host {
            self.arrive(host, packet, sink);
        }
    }

    /// Handles a packet that a host has received, on one of its CPUs.
    fn take(&mut self, packet: Box<Packet>, cpu: usize, sink: &mut dyn Sink) {
        match &*packet {
            Packet::Data { connection, packet } => self.receive(*connection, packet),
            Packet::Merged { connection, segments } => self.receive_merged(*connection, segments),
            Packet::Ack { connection, packet } => self.receive_ack(*connection, packet, cpu, sink),
            Packet::Udp { .. } => {}
        }
        self.spare.push(packet);
    }

    fn receive_ack(&mut self, id: usize, packet: &ToSender, cpu: usize, sink: &mut dyn Sink) {
        let Some(connection) = &mut self.connections[id] else { return };
        let rtt = connection.sender.on_packet(self.now, packet, &mut connection.stream);
        if let (Some(rtt), Some(transfer)) = (rtt, &mut connection.transfer) {
            transfer.rtts.add(rtt);
        }
        self.after_sender(id, cpu, sink);
    }

    fn receive(&mut self, id: usize, packet: &ToReceiver) {
        let Some(connection) = &mut self.connections[id] else { return };
        connection.receiver.on_packet(self.now, packet);
        self.after_receiver(id);
    }

    fn receive_merged(&mut self, id: usize, segments: &[Data]) {
        let Some(connection) = &mut self.connections[id] else { return };
        connection.receiver.on_merged(self.now, segments);
        self.after_receiver(id);
    }

    /// Makes a sender send as much as it may, and its application continue. On a host with restricted CPUs, the CPU
    /// does this when it next runs.
    fn after_sender(&mut self, id: usize, cpu: usize, sink: &mut dyn Sink) {
        let connection = self.connections[id].as_ref().expect("an open connection is there");
        if let Some(cpu) = self.cpus[connection.host].get_mut(cpu) {
            return cpu.send(id);
        }
        while self.send_one(id) {}
        self.settle(id, cpu, sink);
    }

    /// Sends a connection's next packet, if one may leave.
    pub(crate) fn send_one(&mut self, id: usize) -> bool {
        let now = self.now;
        let Some(connection) = &mut self.connections[id] else { return false };
        let host = connection.host;
        let Some(packet) = connection.sender.poll_transmit(now, &mut connection.stream) else { return false };
        self.leave(host, Packet::Data { connection: id, packet });
        true
    }

    #[inline(always)] // The packet is thus written only once, directly to its box.
    fn leave(&mut self, host: usize, packet: Packet) {
        let packet = match self.spare.pop() {
            Some(mut spare) => {
                *spare = packet;
                spare
            }
            None => Box::new(packet),
        };
        if host == self.receiver {
            self.leave_receiver(packet);
        } else {
            self.leave_sender(host, packet);
        }
    }

    fn leave_sender(&mut self, host: usize, packet: Box<Packet>) {
        self.forward.ends.sent += 1;
        match self.outboxes[host].pass(self.now, packet) {
            Some(packet) => self.enter_forward(packet),
            None if self.outboxes[host].waiting() == 1 => self.expect_departure(host),
            None => {}
        }
    }

    fn leave_receiver(&mut self, packet: Box<Packet>) {
        self.reverse.ends.sent += 1;
        if let Some(packet) = self.receiver_outbox.pass(self.now, packet) {
            self.enter_reverse(packet);
        }
    }

    /// Ends completed transfers and sets the timers, after a connection has sent what it may.
    pub(crate) fn settle(&mut self, id: usize, cpu: usize, sink: &mut dyn Sink) {
        while self.connections[id].as_ref().is_some_and(|it| it.has_ended()) {
            self.end_transfer(id, sink);
        }
        let now = self.now;
        if self.connections[id].as_ref().is_some_and(|it| self.has_two_cpus(it.host)) {
            return self.set_wakes(id, cpu, sink);
        }
        if let Some(connection) = &mut self.connections[id] {
            // Events that became due while the host was off CPU are due now.
            let due = connection.sender.next_wake().map(|due| due.max(now));
            connection.sender_alarm.set(due, SimEvent::SenderTimer { connection: id }, &mut self.calendar);
        }
    }

    fn after_receiver(&mut self, id: usize) {
        let now = self.now;
        while let Some(connection) = &mut self.connections[id] {
            let host = connection.receiving_host;
            let Some(packet) = connection.receiver.poll_transmit(now) else { break };
            self.leave(host, Packet::Ack { connection: id, packet });
        }
        let connection = self.connections[id].as_mut().expect("an open connection is there");
        let due = connection.receiver.next_wake();
        connection.receiver_alarm.set(due, SimEvent::ReceiverTimer { connection: id }, &mut self.calendar);
    }

    fn enter_forward(&mut self, packet: Box<Packet>) {
        if let Some(packet) = self.forward.merge(packet) {
            self.send_forward(packet);
        }
    }

    fn enter_reverse(&mut self, packet: Box<Packet>) {
        if let Some(packet) = self.reverse.merge(packet) {
            self.send_reverse(packet);
        }
    }

    /// Sends the packets held for merging, because no other packet reaches the links at this instant.
    fn forward_merged(&mut self) {
        if let Some(packet) = self.forward.merged.take() {
            self.send_forward(packet);
        }
        if let Some(packet) = self.reverse.merged.take() {
            self.send_reverse(packet);
        }
    }

    fn send_forward(&mut self, packet: Box<Packet>) {
        let connection = packet.connection().and_then(|id| self.connections[id].as_ref());
        let extra = connection.map_or(Span::ZERO, |connection| connection.forward_extra);
        self.forward.offer(self.now, packet, extra);
        self.spare.extend(self.forward.link.take_discarded());
    }

    fn send_reverse(&mut self, packet: Box<Packet>) {
        let connection = packet.connection().and_then(|id| self.connections[id].as_ref());
        let extra = connection.map_or(Span::ZERO, |connection| connection.reverse_extra);
        self.reverse.offer(self.now, packet, extra);
        self.spare.extend(self.reverse.link.take_discarded());
    }

    /// Ends a transfer: schedules the next request after the think time, or closes the connection.
    fn end_transfer(&mut self, id: usize, sink: &mut dyn Sink) {
        let mut connection = self.connections[id].take().expect("an open connection is there");
        let (flow, _) = self.agenda.copy_of(connection.series);
        if let Load::App { .. } = self.experiment.flows[flow].load {
            return self.end_message(id, connection, sink);
        }
        self.emit_transfer(&connection, sink);
        connection.transfer = None;
        connection.transfers_ended += 1;
        if let Load::Requests { think_ns, count, .. } = self.experiment.flows[flow].load {
            let is_last = count.is_some_and(|count| connection.transfers_ended >= u64::from(count));
            if !is_last && !connection.is_stopped {
                self.connections[id] = Some(connection);
                self.calendar.enter(self.now + think_ns, SimEvent::Request { connection: id });
                return;
            }
        }
        self.forget(id, connection.series);
    }

    /// Ends a message of an application, delivered or not; or closes its connection if that has stopped and has nothing
    /// left to send.
    fn end_message(&mut self, id: usize, mut connection: Box<Connection>, sink: &mut dyn Sink) {
        let index = connection.series;
        if connection.transfer.is_none() {
            return self.forget(id, index);
        }
        let is_delivered = connection.transfer.as_ref().is_some_and(|it| it.is_complete(connection.sender.acked()));
        let delivery = self.emit_transfer(&connection, sink);
        connection.advance(self.now);
        self.connections[id] = Some(connection);
        if !is_delivered {
            return;
        }
        self.wake_app(index, delivery.next);
        if delivery.is_done {
            self.agenda.end_app(index);
            for id in self.agenda.app_connections(index).to_vec() {
                self.connections[id] = None;
                self.forget(id, index);
            }
        }
    }

    /// Removes a closed connection, and schedules the next one of its series.
    fn forget(&mut self, id: usize, index: usize) {
        self.open.remove(id);
        if let Some(next) = self.agenda.end(index, self.now) {
            self.calendar.enter(next, SimEvent::Open { series: index });
        }
    }

    /// Emits the row of the transfer in progress, which ends now. Returns the application's reaction.
    fn emit_transfer(&mut self, connection: &Connection, sink: &mut dyn Sink) -> Delivery {
        let mut delivery = Delivery::default();
        if let Some(transfer) = &connection.transfer {
            let (flow, copy) = self.agenda.copy_of(connection.series);
            let mut row = self.rows.transfer(flow, copy, connection, transfer, self.now);
            if transfer.item.is_some() {
                delivery = self.agenda.end_message(connection.series, connection.number, self.now);
                row.stall_us = delivery.stall.map(Span::as_micros);
            }
            sink.flow(row);
        }
        delivery
    }

    fn sample(&mut self, sink: &mut dyn Sink) {
        for (id, last) in self.open.iter_mut() {
            if let Some(connection) = self.connections.take_touched(id) {
                let (flow, copy) = self.agenda.copy_of(connection.series);
                *last = Some(self.rows.sample(flow, copy, connection, self.now));
                self.rows.state(flow, copy, connection, self.now, sink);
            }
            let row = last.as_mut().expect("a new connection counts as touched");
            row.t_us = self.now.as_micros();
            sink.sample(row.clone());
        }
        self.emit_queues(sink);
    }

    fn emit_queues(&mut self, sink: &mut dyn Sink) {
        sink.queue(self.rows.queue("forward", &mut self.forward.link, self.now));
        sink.queue(self.rows.queue("reverse", &mut self.reverse.link, self.now));
    }
}

fn kernel(host: &plan::Host) -> KernelGeneration {
    host.kernel.map_or_else(KernelGeneration::default, |kernel| match kernel {
        plan::Kernel::Linux6_1 => KernelGeneration::Linux6_1,
        plan::Kernel::Linux6_12 => KernelGeneration::Linux6_12,
        plan::Kernel::Linux6_18 => KernelGeneration::Linux6_18,
    })
}

#[inline]
fn or_never(time: Option<Time>) -> Time {
    time.unwrap_or(Time::MAX)
}

/// Returns the earlier of two times; `None` is later than any.
pub(crate) fn earlier(left: Option<Time>, right: Option<Time>) -> Option<Time> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}

fn host_index(experiment: &Experiment, name: &str) -> usize {
    experiment.hosts.keys().position(|other| other == name).expect("the host was checked")
}

impl Direction {
    fn new(
        experiment: &Experiment,
        link: Link<Box<Packet>>,
        stream: Stream,
        is_merging: bool,
        recording: Option<Recording>,
    ) -> Direction {
        let (is_ipv6, mss) = (experiment.ipv6, experiment.mss());
        Direction { link, stream, ends: Ends::default(), is_ipv6, mss, is_merging, merged: None, recording }
    }

    /// Returns whether the link, whose next wake is at `wake`, may deliver a packet now. A link whose packets are
    /// recorded is polled in every step, so that their rows are in order of time.
    #[inline]
    fn is_due(&self, wake: Time, now: Time) -> bool {
        wake <= now || self.recording.is_some()
    }

    #[inline]
    fn next_wake(&self) -> Time {
        or_never(self.link.next_wake())
    }

    #[inline]
    fn offer(&mut self, now: Time, packet: Box<Packet>, extra: Span) {
        let size = packet.wire_size(self.is_ipv6);
        self.link.send(now, packet, size, extra, &mut self.stream);
        if let Some(recording) = &mut self.recording {
            recording.offer(now, size, &mut self.link);
        }
    }

    fn emit_packets(&mut self, sink: &mut dyn Sink) {
        if let Some(recording) = &mut self.recording {
            recording.emit(&mut self.link, sink);
        }
    }

    /// Offers a packet for merging. Returns a packet that may enter the link now, if any.
    #[inline]
    fn merge(&mut self, packet: Box<Packet>) -> Option<Box<Packet>> {
        if !self.is_merging {
            return Some(packet);
        }
        if self.merged.as_mut().is_some_and(|merged| offloads::merge(merged, &packet, self.mss)) {
            // Merged segments count as one packet from here on.
            self.ends.sent -= 1;
            return None;
        }
        self.merged.replace(packet)
    }

    /// Returns the packet counts of this direction; `waiting` packets are queued in its hosts.
    fn side(&mut self, now: Time, waiting: u64) -> Side {
        let stats = self.link.stats(now);
        Side {
            sent: self.ends.sent,
            duplicated: stats.duplicated.0,
            delivered: self.ends.received,
            dropped: stats.dropped.0 + stats.policed.0 + stats.thinned.0 + stats.lost.0,
            in_flight: waiting + stats.backlog_packets.0 + stats.in_flight.0,
        }
    }
}
