//! The events that wait in memory which the programs in the kernel write and this process reads: `struct record_slot` of
//! `bpf/include/record_event.h` says whose a slot is when.

use super::event::Event;
use super::sys::Shared;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// So many slots there are.
const SLOTS: u64 = 8192;

/// How long a slot is, and where in it the length of the event and the event are.
const SLOT_BYTES: usize = 576;
const LENGTH_AT: usize = 8;
const EVENT_AT: usize = 16;

/// The reader.
#[derive(Debug)]
pub struct Events {
    memory: Shared,
    /// The number of the next event.
    next: u64,
}

impl Events {
    /// Of a map that nobody has read yet.
    ///
    /// # Errors
    /// If its memory cannot be shared.
    pub fn of(map: impl AsFd) -> io::Result<Events> {
        Ok(Events { memory: Shared::of(map, SLOTS as usize * SLOT_BYTES)?, next: 0 })
    }

    /// Takes all events that are there. One that is still being written, and those behind it, are there next time.
    pub fn take(&mut self, take: &mut dyn FnMut(&Event)) {
        let mut bytes = [0; Event::BYTES];
        // No more than there is room for: others write meanwhile.
        for _ in 0..SLOTS {
            let slot = (self.next % SLOTS) as usize * SLOT_BYTES;
            let (turn, ours) = (self.memory.number(slot), self.next / SLOTS * 2 + 1);
            if turn.load(Ordering::Acquire) != ours {
                break;
            }
            let length = self.memory.number(slot + LENGTH_AT).load(Ordering::Relaxed);
            // One of another length is from another program: there is none.
            let event = bytes.get_mut(..length as usize).and_then(|bytes| {
                self.memory.read(slot + EVENT_AT, bytes);
                Event::parse(bytes)
            });
            turn.store(ours + 1, Ordering::Release);
            self.next += 1;
            event.iter().for_each(&mut *take);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    const HEADER: &str = include_str!("../../../../bpf/include/record_event.h");

    /// What the programs do: slots are filled one after the other, where the reader has given them back.
    struct Writer {
        memory: Shared,
        next: u64,
    }

    impl Writer {
        fn turn(&self) -> (usize, u64) {
            ((self.next % SLOTS) as usize * SLOT_BYTES, self.next / SLOTS * 2)
        }

        /// Writes an event of this length, unless there is no room.
        fn write(&mut self, connection: u64, length: usize) -> bool {
            let (slot, turn) = self.turn();
            if self.memory.number(slot).load(Ordering::Acquire) != turn {
                return false;
            }
            self.memory.number(slot + LENGTH_AT).store(length as u64, Ordering::Relaxed);
            self.memory.number(slot + EVENT_AT).store(connection, Ordering::Relaxed);
            self.memory.number(slot).store(turn + 1, Ordering::Release);
            self.next += 1;
            true
        }
    }

    fn both() -> (Writer, Events) {
        let file = memfd_create("events", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, SLOTS * SLOT_BYTES as u64).unwrap();
        let memory = Shared::of(&file, SLOTS as usize * SLOT_BYTES).unwrap();
        (Writer { memory, next: 0 }, Events::of(&file).unwrap())
    }

    fn taken(events: &mut Events) -> Vec<u64> {
        let mut connections = Vec::new();
        events.take(&mut |event| connections.push(event.connection));
        connections
    }

    #[test]
    fn slots_are_as_the_header_says() {
        assert!(HEADER.contains(&format!("#define RECORD_SLOTS {SLOTS}\n")));
        let members =
            "\tu64 turn;\n\tu64 bytes; /* how long the event is */\n\tstruct record_event event;\n\tu64 unused[2];\n};";
        assert!(HEADER.contains(&format!("struct record_slot {{\n{members}")));
        assert_eq!(SLOT_BYTES, EVENT_AT + Event::BYTES + 2 * 8);
        assert!(SLOTS.is_power_of_two() && SLOT_BYTES % 64 == 0);
    }

    #[test]
    fn events_are_taken_in_their_order_round_after_round() {
        let (mut writer, mut events) = both();
        assert!(taken(&mut events).is_empty());
        let lengths = [Event::BYTES, Event::SHORT_BYTES, Event::TRANSFER_BYTES];
        let mut number = 0;
        for count in [1, 3, SLOTS - 1, SLOTS, 5, SLOTS, SLOTS] {
            let written: Vec<u64> = (number..number + count).collect();
            for one in &written {
                assert!(writer.write(*one, lengths[*one as usize % 3]), "there is room: {one}");
            }
            assert_eq!(taken(&mut events), written);
            assert!(taken(&mut events).is_empty(), "each is taken once");
            number += count;
        }
    }

    #[test]
    fn where_all_slots_are_full_there_is_room_again_once_they_were_read() {
        let (mut writer, mut events) = both();
        let fit = (0..SLOTS + 9).filter(|number| writer.write(*number, Event::SHORT_BYTES)).count();
        assert_eq!(fit as u64, SLOTS);
        assert_eq!(taken(&mut events).len() as u64, SLOTS);
        assert!(writer.write(7, Event::SHORT_BYTES));
        assert_eq!(taken(&mut events), [7]);
    }

    #[test]
    fn an_event_that_is_still_being_written_holds_up_those_behind_it() {
        let (mut writer, mut events) = both();
        let (slot, turn) = writer.turn();
        writer.memory.number(slot + LENGTH_AT).store(Event::SHORT_BYTES as u64, Ordering::Relaxed);
        writer.next += 1;
        assert!(writer.write(2, Event::SHORT_BYTES));
        assert!(taken(&mut events).is_empty());
        writer.memory.number(slot).store(turn + 1, Ordering::Release);
        assert_eq!(taken(&mut events), [0, 2]);
    }

    #[test]
    fn an_event_of_another_length_is_none_and_holds_up_nothing() {
        let (mut writer, mut events) = both();
        for (connection, length) in [(1, Event::BYTES - 8), (2, Event::BYTES + 8), (3, usize::MAX), (4, Event::BYTES)] {
            assert!(writer.write(connection, length));
        }
        assert_eq!(taken(&mut events), [4]);
    }
}
