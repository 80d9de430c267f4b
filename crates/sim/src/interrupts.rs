//! Arrival of packets at hosts: immediately, or at an interrupt of the host's network card.

use crate::calendar::SimEvent;
use crate::cpu::Task;
use crate::packet::Packet;
use crate::simulation::Simulation;
use thalweg_trace::Sink;

impl Simulation {
    /// Handles the arrival of a packet at a host.
    pub(crate) fn arrive(&mut self, host: usize, packet: Box<Packet>, sink: &mut dyn Sink) {
        let Some(card) = &mut self.cards[host] else { return self.assign(host, Task::Arrival(packet), sink) };
        if card.arrivals.is_empty() {
            card.alarm.set(Some(self.now + card.interval), SimEvent::Interrupt { host }, &mut self.calendar);
        }
        card.arrivals.push_back(packet);
    }

    /// Handles the packets that a host's card has collected.
    pub(crate) fn on_interrupt(&mut self, host: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let Some(card) = &mut self.cards[host] else { return };
        if !card.alarm.expire(now) {
            return;
        }
        for packet in card.take() {
            self.assign(host, Task::Arrival(packet), sink);
        }
    }
}
