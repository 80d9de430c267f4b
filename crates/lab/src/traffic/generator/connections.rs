//! Manages the connections of a host's flows, from opening to their rows.

use crate::clock::Clock;
use crate::error::Error;
use crate::protocol;
use crate::traffic::generator::account::Account;
use crate::traffic::rows::Ended;
use crate::traffic::socket::connection::Connection;
use crate::traffic::socket::limits;
use crate::traffic::socket::ports::{Ports, Who};
use crate::traffic::socket::transfer::{End, Transfer};
use crate::traffic::timers::Timers;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use thalweg_plan::plan::Load;
use thalweg_traffic::{Agenda, Delivery, Message, Wake};
use thalweg_units::{Span, Time};

/// Polling interval of a connection without a timestamp of its end. It grows with the number of open connections, to
/// limit the cost.
const LOOK: Span = Span::from_millis(1);

/// Polling interval of a connection with a timestamp of its end, which the kernel omits if memory is short.
const LOOK_FOR_LOST_STAMP: Span = Span::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GeneratorEvent {
    /// A series opens its next connection, or its application is woken.
    Open { series: usize },
    /// A connection sends its next request.
    Request { id: usize },
    /// The transfer of a connection is polled for completion.
    Look { id: usize },
    /// A flow stops.
    Stop { flow: usize },
    /// The experiment ends.
    End,
}

#[derive(Debug)]
pub(super) struct Connections {
    pub(super) agenda: Agenda,
    pub(super) timers: Timers<GeneratorEvent>,
    pub(super) epoll: OwnedFd,
    /// Transfers that have ended, completed or not.
    pub(super) ended: Vec<Ended>,
    /// Number of SYN retransmissions, by connection; zeros are omitted.
    pub(super) syn_retransmits: HashMap<Who, u64>,
    pub(super) account: Account,
    clock: Clock,
    /// Destination of each flow's data.
    to: BTreeMap<usize, SocketAddr>,
    ports: Arc<Ports>,
    /// Connections by id; closed ones leave `None`, so that late events are discarded.
    connections: Vec<Option<Box<Connection>>>,
    open: u64,
}

impl Connections {
    pub(super) fn new(
        agenda: Agenda,
        timers: Timers<GeneratorEvent>,
        ports: Arc<Ports>,
        epoll: OwnedFd,
        clock: Clock,
        to: BTreeMap<usize, SocketAddr>,
    ) -> Connections {
        Connections {
            agenda,
            timers,
            epoll,
            ended: Vec::new(),
            syn_retransmits: HashMap::new(),
            account: Account::default(),
            clock,
            to,
            ports,
            connections: Vec::new(),
            open: 0,
        }
    }

    pub(super) fn enter_first_events(&mut self, flows: &[usize], end: Option<Time>) {
        for (at, series) in self.agenda.first_opens() {
            self.timers.enter(at, GeneratorEvent::Open { series });
        }
        for flow in flows {
            if let Some(stop) = self.agenda.flow(*flow).stop_ns {
                self.timers.enter(stop, GeneratorEvent::Stop { flow: *flow });
            }
        }
        if let Some(end) = end {
            self.timers.enter(end, GeneratorEvent::End);
        }
    }

    /// Opens the next connection of a series, or wakes its application; `due` is the scheduled time.
    pub(super) fn open(&mut self, series: usize, due: Time) -> Result<(), Error> {
        if let Some(wake) = self.agenda.wake(series, due) {
            return self.run_app(series, wake);
        }
        let Some(opening) = self.agenda.open(series, due) else { return Ok(()) };
        if let Some(next) = opening.next {
            self.timers.enter(next, GeneratorEvent::Open { series });
        }
        let start = self.clock.now();
        self.account.opened(start.since(due));
        let first = Transfer { start, size: opening.size.map(|size| size.0), offset: 0, before: None, item: None };
        self.connect(series, opening.number, first)
    }

    /// Sends the messages of an application, and opens the connections for them.
    fn run_app(&mut self, series: usize, wake: Wake) -> Result<(), Error> {
        for message in wake.messages {
            let late = self.clock.now().since(message.due);
            let Some(id) = self.agenda.app_connections(series).get(message.connection as usize).copied() else {
                self.account.opened(late);
                let (number, _) = self.agenda.open_for_app(series, self.connections.len());
                self.connect(series, number, Transfer::of(&message, 0, None))?;
                continue;
            };
            self.account.late(late);
            self.send(id, message)?;
        }
        if let Some(next) = wake.next {
            self.timers.enter(next, GeneratorEvent::Open { series });
        }
        Ok(())
    }

    fn send(&mut self, id: usize, message: Message) -> Result<(), Error> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        connection.send(message);
        if connection.is_connecting() {
            return Ok(());
        }
        let written = connection.write();
        self.after(id, written.err())
    }

    fn connect(&mut self, series: usize, number: u64, first: Transfer) -> Result<(), Error> {
        let flow = self.agenda.copy_of(series).0;
        let connection = Connection::new(series, number, self.agenda.flow(flow), first, self.to[&flow].is_ipv6())?;
        let id = self.connections.len();
        self.open += 1;
        if let Err(error) = connection.connect(self.to[&flow]) {
            self.connections.push(None);
            return self.not_connected(connection, error);
        }
        // epoll reports an established connection as writable.
        epoll::add(&self.epoll, connection.fd(), EventData::new_u64(id as u64), EventFlags::OUT)
            .map_err(limits::exhausted)?;
        if let Some(port) = connection.local_port() {
            self.ports.take(port, self.to[&flow].ip(), who(&connection));
        }
        self.connections.push(Some(Box::new(connection)));
        Ok(())
    }

    pub(super) fn request(&mut self, id: usize, due: Time) -> Result<(), Error> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        let size = self.agenda.next_size(connection.series);
        let start = self.clock.now();
        self.account.late(start.since(due));
        connection.begin(start, size.map(|size| size.0));
        let written = connection.write();
        self.after(id, written.err())
    }

    pub(super) fn on_socket(&mut self, id: usize, flags: EventFlags) -> Result<(), Error> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            if let Some(at) = connection.read_stamps(&self.clock) {
                return self.end_transfer(id, at);
            }
            if let Some(error) = connection.error() {
                return self.fail(id, error);
            }
            if flags.contains(EventFlags::HUP) {
                return self.fail(id, Errno::CONNRESET);
            }
        }
        if !flags.contains(EventFlags::OUT) {
            return Ok(());
        }
        if connection.is_connecting() {
            connection.on_established();
            if connection.syn_retransmits() > 0 {
                self.syn_retransmits.insert(who(connection), connection.syn_retransmits());
            }
        }
        let written = connection.write();
        self.after(id, written.err())
    }

    pub(super) fn look(&mut self, id: usize) -> Result<(), Error> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        connection.is_watched = false;
        // Several messages of an application may have been delivered meanwhile.
        while let Some(connection) = self.connections[id].as_mut().filter(|connection| connection.is_drained()) {
            let stamp = connection.read_stamps(&self.clock);
            let is_missing = stamp.is_none() && connection.has_stamps() && !connection.is_stopped;
            self.account.stamps_missing += u64::from(is_missing);
            self.end_transfer(id, stamp.unwrap_or_else(|| self.clock.now()))?;
        }
        self.keep_watch(id);
        Ok(())
    }

    pub(super) fn stop(&mut self, flow: usize) -> Result<(), Error> {
        for id in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[id] else { continue };
            if self.agenda.copy_of(connection.series).0 != flow {
                continue;
            }
            connection.stop();
            if connection.transfer.is_none() {
                self.close(id, self.clock.now());
            } else if connection.is_drained() {
                let stamp = connection.read_stamps(&self.clock);
                self.end_transfer(id, stamp.unwrap_or_else(|| self.clock.now()))?;
            } else {
                self.after(id, None)?;
            }
        }
        self.agenda.stop(flow);
        Ok(())
    }

    /// Ends the experiment: records the transfers in progress, and resets the connections.
    pub(super) fn finish(&mut self, at: Time) {
        for id in 0..self.connections.len() {
            let Some(mut connection) = self.connections[id].take() else { continue };
            self.note_all(&mut connection, at);
            connection.abort();
        }
    }

    /// Called after a write, with its error: waits until the socket accepts more data, or polls for the end of the
    /// transfer.
    fn after(&mut self, id: usize, error: Option<std::io::Error>) -> Result<(), Error> {
        if let Some(error) = error {
            return self.fail(id, Errno::from_io_error(&error).unwrap_or(Errno::CONNRESET));
        }
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        let needs_room = connection.is_connecting() || connection.unwritten() > 0;
        if needs_room != connection.waits_for_room {
            connection.waits_for_room = needs_room;
            let flags = if needs_room { EventFlags::OUT } else { EventFlags::empty() };
            epoll::modify(&self.epoll, connection.fd(), EventData::new_u64(id as u64), flags)
                .map_err(limits::exhausted)?;
        }
        if !needs_room {
            self.keep_watch(id);
        }
        Ok(())
    }

    fn keep_watch(&mut self, id: usize) {
        let Some(connection) = &mut self.connections[id] else { return };
        if connection.transfer.is_none() || connection.is_watched {
            return;
        }
        connection.is_watched = true;
        let will_have_stamp = connection.has_stamps() && !connection.is_stopped;
        let pause = if will_have_stamp { LOOK_FOR_LOST_STAMP } else { LOOK.scale(1 + self.open / 64, 1) };
        self.timers.enter(self.clock.now() + pause, GeneratorEvent::Look { id });
    }

    fn end_transfer(&mut self, id: usize, at: Time) -> Result<(), Error> {
        let Some(mut connection) = self.connections[id].take() else { return Ok(()) };
        let (flow, _) = self.agenda.copy_of(connection.series);
        if let Load::App { .. } = self.agenda.flow(flow).load {
            self.connections[id] = Some(connection);
            return self.end_messages(id, at);
        }
        self.note_end(&connection, &connection.end(at));
        connection.transfer = None;
        connection.transfers_ended += 1;
        let is_last = match self.agenda.flow(flow).load {
            Load::Requests { count, .. } => {
                connection.is_stopped || count.is_some_and(|count| connection.transfers_ended >= u64::from(count))
            }
            Load::Unlimited | Load::Sizes { .. } | Load::App { .. } => true,
        };
        let think = match self.agenda.flow(flow).load {
            Load::Requests { think_ns, .. } => think_ns,
            Load::Unlimited | Load::Sizes { .. } | Load::App { .. } => Span::ZERO,
        };
        self.connections[id] = Some(connection);
        if is_last {
            self.close(id, at);
            return Ok(());
        }
        self.timers.enter(at + think, GeneratorEvent::Request { id });
        self.after(id, None)
    }

    /// Ends a message of an application, and later messages that have a timestamp.
    fn end_messages(&mut self, id: usize, at: Time) -> Result<(), Error> {
        let mut end = Some(at);
        while let Some(at) = end {
            let Some(mut connection) = self.connections[id].take() else { return Ok(()) };
            let series = connection.series;
            let delivery = self.note_end(&connection, &connection.end(at));
            connection.advance();
            end = connection.read_stamps(&self.clock);
            let is_over = connection.is_stopped && connection.transfer.is_none();
            self.connections[id] = Some(connection);
            if let Some(next) = delivery.next {
                self.timers.enter(next, GeneratorEvent::Open { series });
            }
            if delivery.is_done {
                self.end_app(series, at);
                return Ok(());
            }
            if is_over {
                self.close(id, at);
                return Ok(());
            }
        }
        self.after(id, None)
    }

    fn end_app(&mut self, series: usize, at: Time) {
        self.agenda.end_app(series);
        for id in self.agenda.app_connections(series).to_vec() {
            if let Some(mut connection) = self.connections[id].take() {
                self.note_all(&mut connection, at);
                self.leave(*connection, at);
            }
        }
    }

    fn fail(&mut self, id: usize, error: Errno) -> Result<(), Error> {
        let Some(connection) = self.connections[id].take() else { return Ok(()) };
        if connection.is_connecting() {
            return self.not_connected(*connection, error);
        }
        self.account.failed += 1;
        self.lose(*connection);
        Ok(())
    }

    /// Handles a connection that could not be opened.
    ///
    /// # Errors
    /// If the error would repeat for the next connection.
    fn not_connected(&mut self, connection: Connection, error: Errno) -> Result<(), Error> {
        let to = self.to[&self.agenda.copy_of(connection.series).0];
        if let Some(error) = hopeless(error, to) {
            return Err(error);
        }
        self.account.not_opened(to, error);
        self.lose(connection);
        Ok(())
    }

    /// Ends a broken connection. Its series continues, unless it is that of an application, which ends.
    fn lose(&mut self, mut connection: Connection) {
        let (now, series) = (self.clock.now(), connection.series);
        self.note_all(&mut connection, now);
        self.leave(connection, now);
        if !self.agenda.app_connections(series).is_empty() {
            self.end_app(series, now);
        }
    }

    fn close(&mut self, id: usize, at: Time) {
        if let Some(connection) = self.connections[id].take() {
            self.leave(*connection, at);
        }
    }

    fn leave(&mut self, connection: Connection, at: Time) {
        if let Some(port) = connection.local_port() {
            let flow = self.agenda.copy_of(connection.series).0;
            self.ports.give_back(port, self.to[&flow].ip());
        }
        self.open -= 1;
        let series = connection.series;
        drop(connection);
        if let Some(next) = self.agenda.end(series, at) {
            self.timers.enter(next, GeneratorEvent::Open { series });
        }
    }

    /// Ends the transfers of a connection at a time, or at the earlier time of a timestamp.
    fn note_all(&mut self, connection: &mut Connection, at: Time) {
        while connection.transfer.is_some() {
            let end = connection.read_stamps(&self.clock).map_or(at, |stamp| stamp.min(at));
            self.note_end(connection, &connection.end(end));
            connection.advance();
        }
    }

    /// Records the transfer in progress. Returns the application's reaction to its end.
    fn note_end(&mut self, connection: &Connection, end: &End) -> Delivery {
        let Some(transfer) = connection.transfer else { return Delivery::default() };
        let (flow, copy) = self.agenda.copy_of(connection.series);
        let of = protocol::Connection { flow, copy, connection: connection.number };
        let mut report = transfer.report(of, connection.transfers_ended, end);
        let mut delivery = Delivery::default();
        if transfer.item.is_some() {
            delivery = self.agenda.end_message(connection.series, connection.number, end.at);
            report.stall_us = delivery.stall.map(Span::as_micros);
        }
        self.ended.push(Ended { who: who(connection), report, offset: transfer.offset, srtt_us: end.info.srtt_us });
        delivery
    }
}

fn who(connection: &Connection) -> Who {
    // The numbers of series and connections that fit in memory are below 2^32.
    Who { series: connection.series as u32, connection: connection.number as u32 }
}

/// Returns an error for `error` if it would repeat for the next connection.
fn hopeless(error: Errno, receiver: SocketAddr) -> Option<Error> {
    match error {
        Errno::ADDRNOTAVAIL | Errno::AGAIN => Some(Error::new(
            "no-ports",
            format!(
                "no local port is left for a connection to {receiver}: ports of closed connections stay in TIME-WAIT"
            ),
            "open fewer connections: lower `rate` or `count`, or use `requests`, which sends many transfers over one \
             connection",
        )),
        Errno::NETUNREACH | Errno::NETDOWN | Errno::ACCESS | Errno::PERM | Errno::INVAL => Some(Error::new(
            "cannot-connect",
            format!("{receiver} cannot be reached: {error}"),
            "check the commands that created the network, in commands.log",
        )),
        _ => None,
    }
}
