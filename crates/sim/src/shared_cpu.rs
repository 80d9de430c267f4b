//! Hosts that share their CPU: the simulation hands them tasks, and carries them out while a slice lasts.

use crate::calendar::SimEvent;
use crate::cpu::{Cpu, Task};
use crate::simulation::Simulation;
use thalweg_trace::Sink;
use thalweg_units::Span;

impl Simulation {
    /// Has a host do something, as soon as it has its CPU.
    pub(crate) fn assign(&mut self, host: usize, task: Task, sink: &mut dyn Sink) {
        let Some(cpu) = &mut self.cpus[host] else { return self.perform(task, sink) };
        match task {
            Task::Arrival(packet) => cpu.arrivals.push_back(packet),
            task => cpu.timers.push_back(task),
        }
        self.go_on(host, sink);
    }

    /// A host that shares its CPU was to go on now.
    pub(crate) fn on_turn(&mut self, host: usize, sink: &mut dyn Sink) {
        let now = self.now;
        if self.cpus[host].as_mut().is_some_and(|cpu| cpu.alarm.ring(now)) {
            self.go_on(host, sink);
        }
    }

    /// Lets a host that shares its CPU do what it can now.
    pub(crate) fn go_on(&mut self, host: usize, sink: &mut dyn Sink) {
        let now = self.now;
        while let Some(cpu) = self.cpus[host].as_mut().filter(|cpu| !cpu.is_idle()) {
            let turn = cpu.next_turn(now);
            if turn > now {
                cpu.alarm.set(Some(turn), SimEvent::Cpu { host }, &mut self.calendar);
                return;
            }
            if let Some(id) = cpu.sending.front().copied() {
                if self.send_one(id) {
                    self.spend(host, |cpu| cpu.per_packet);
                } else {
                    self.forget_sending(host);
                    self.settle(id, sink);
                }
            } else if let Some(task) = cpu.next_task() {
                if let Task::Arrival(_) = task {
                    cpu.work(now, cpu.per_ack);
                }
                self.perform(task, sink);
            }
        }
    }

    fn spend(&mut self, host: usize, cost: impl Fn(&Cpu) -> Span) {
        let now = self.now;
        if let Some(cpu) = &mut self.cpus[host] {
            cpu.work(now, cost(cpu));
        }
    }

    fn forget_sending(&mut self, host: usize) {
        if let Some(cpu) = &mut self.cpus[host] {
            cpu.sending.pop_front();
        }
    }
}
