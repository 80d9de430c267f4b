//! Hosts with shared CPUs: the simulation assigns tasks to them and executes the tasks while the host is on CPU.
//!
//! With one CPU, everything runs on it. With two, as in Linux with the application pinned to the first CPU and the
//! network card's interrupts to the second:
//!
//! | work | CPU |
//! | --- | --- |
//! | the application: connecting, writing into the send buffer, and the transmissions that this allows | the first |
//! | arriving packets, and transmissions that acknowledgements allow | the second (softirq) |
//! | the pacing timer | the one whose attempt to send armed it (`HRTIMER_MODE_ABS_PINNED_SOFT`) |
//! | retransmission timeout, loss probe, RACK timer | the one that set it last |
//! | delayed acknowledgements of an upload | the second |
//!
//! A pacing timer that is armed is not armed again elsewhere: while that CPU is not running, a due burst is sent with
//! the next acknowledgement that the other CPU handles. An acknowledgement that arrives while the first CPU has
//! unfinished work for the connection waits for that CPU (the socket's backlog). The application fills the send buffer
//! only in its own slices.
//!
//! Not modelled: a CPU that spins on a lock whose holder is off CPU.

use crate::calendar::SimEvent;
use crate::connection::Wakes;
use crate::cpu::{APPLICATION, Cpu, Task};
use crate::simulation::{Simulation, earlier};
use thalweg_trace::Sink;
use thalweg_units::Span;

impl Simulation {
    /// Assigns a task to a host, which runs it as soon as the host is on the task's CPU.
    pub(crate) fn assign(&mut self, host: usize, task: Task, sink: &mut dyn Sink) {
        if self.cpus[host].is_empty() {
            return self.perform(task, APPLICATION, sink);
        }
        let cpu = self.cpu_for(host, &task);
        self.cpus[host][cpu].add(task);
        self.go_on(host, cpu, sink);
    }

    fn cpu_for(&self, host: usize, task: &Task) -> usize {
        let interrupts = self.cpus[host].len() - 1;
        let pinned = |id: usize, cpu: fn(&Wakes) -> usize| self.connections[id].as_ref().map(|it| cpu(&it.wakes));
        match task {
            Task::Open { .. } | Task::Request { .. } | Task::Write { .. } => APPLICATION,
            Task::Arrival(_) | Task::Acknowledge { .. } => interrupts,
            Task::Wake { connection } => pinned(*connection, |wakes| wakes.timer_cpu).unwrap_or(interrupts),
            Task::Pace { connection } => {
                pinned(*connection, |wakes| wakes.pacing_cpu.unwrap_or(APPLICATION)).unwrap_or(interrupts)
            }
        }
    }

    /// Resumes work on a shared CPU of a host.
    pub(crate) fn on_turn(&mut self, host: usize, cpu: usize, sink: &mut dyn Sink) {
        let now = self.now;
        if self.cpus[host].get_mut(cpu).is_some_and(|cpu| cpu.alarm.expire(now)) {
            self.go_on(host, cpu, sink);
        }
    }

    /// Runs the pending work of a shared CPU as far as possible now.
    pub(crate) fn go_on(&mut self, host: usize, index: usize, sink: &mut dyn Sink) {
        let now = self.now;
        while let Some(cpu) = self.cpus[host].get_mut(index).filter(|cpu| !cpu.is_idle()) {
            let turn = cpu.next_turn(now);
            if turn > now {
                let event = SimEvent::Cpu { host: host as u32, cpu: index as u32 };
                cpu.alarm.set(Some(turn), event, &mut self.calendar);
                return;
            }
            if let Some(id) = cpu.sending.front().copied() {
                self.hold_application(id, index);
                if self.send_one(id) {
                    self.spend(host, index, |cpu| cpu.per_packet);
                } else {
                    self.cpus[host][index].sending.pop_front();
                    self.settle(id, index, sink);
                }
            } else if let Some(task) = cpu.next_task() {
                if let Some(task) = self.defer_to_application(host, index, task) {
                    if let Task::Arrival(_) = task {
                        self.spend(host, index, |cpu| cpu.per_ack);
                    }
                    self.perform(task, index, sink);
                }
            }
        }
    }

    fn spend(&mut self, host: usize, cpu: usize, cost: impl Fn(&Cpu) -> Span) {
        let now = self.now;
        let cpu = &mut self.cpus[host][cpu];
        cpu.work(now, cost(cpu));
    }

    /// Defers an arrival to the application's CPU if that has unfinished work for the connection. Returns the task if
    /// it was not deferred.
    fn defer_to_application(&mut self, host: usize, index: usize, task: Task) -> Option<Task> {
        let Task::Arrival(packet) = task else { return Some(task) };
        let application = &mut self.cpus[host][APPLICATION];
        let is_busy = |id| application.is_working_for(id);
        if index == APPLICATION || !packet.connection().is_some_and(is_busy) {
            return Some(Task::Arrival(packet));
        }
        application.arrivals.push_back(packet);
        None
    }

    /// Suspends the application's writes unless `cpu` is the application's CPU.
    fn hold_application(&mut self, id: usize, cpu: usize) {
        if let Some(connection) = &mut self.connections[id] {
            connection.sender.hold_application(cpu != APPLICATION);
        }
    }

    /// Sets the timers of a connection on a host with two CPUs after `cpu` has worked for it, and wakes the
    /// application.
    pub(crate) fn set_wakes(&mut self, id: usize, cpu: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let Some(connection) = &mut self.connections[id] else { return };
        let (sender, wakes) = (&connection.sender, &mut connection.wakes);
        if let (None, Some(due)) = (wakes.pacing_cpu, sender.pacing_wake()) {
            wakes.pacing_cpu = Some(cpu);
            self.calendar.enter(due.max(now), SimEvent::Pacing { connection: id });
        }
        if wakes.timer != sender.timer_wake() {
            (wakes.timer, wakes.timer_cpu) = (sender.timer_wake(), cpu);
        }
        let is_waking = cpu != APPLICATION && sender.application_can_write() && !wakes.is_write_queued;
        wakes.is_write_queued |= is_waking;
        let host = connection.host;
        self.set_sender_alarm(id);
        if is_waking {
            self.assign(host, Task::Write { connection: id }, sink);
        }
    }

    /// Handles a possible expiry of the timer, or the end of a write, of a connection on a host with two CPUs.
    pub(crate) fn on_sender_alarm(&mut self, id: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let Some(connection) = &mut self.connections[id] else { return };
        let (host, sender, wakes) = (connection.host, &connection.sender, &mut connection.wakes);
        let is_expired = !wakes.is_timer_queued && sender.timer_wake().is_some_and(|due| due <= now);
        let has_written = !wakes.is_write_queued && sender.application_wake().is_some_and(|due| due <= now);
        wakes.is_timer_queued |= is_expired;
        wakes.is_write_queued |= has_written;
        self.set_sender_alarm(id);
        if is_expired {
            self.assign(host, Task::Wake { connection: id }, sink);
        }
        if has_written {
            self.assign(host, Task::Write { connection: id }, sink);
        }
    }

    /// Sets the alarm to the earliest event that is not yet queued on a CPU.
    fn set_sender_alarm(&mut self, id: usize) {
        let now = self.now;
        let Some(connection) = &mut self.connections[id] else { return };
        let (sender, wakes) = (&connection.sender, &connection.wakes);
        let timer = sender.timer_wake().filter(|_| !wakes.is_timer_queued);
        let write = sender.application_wake().filter(|_| !wakes.is_write_queued);
        let due = earlier(timer, write).map(|due| due.max(now));
        connection.sender_alarm.set(due, SimEvent::SenderTimer { connection: id }, &mut self.calendar);
    }
}
