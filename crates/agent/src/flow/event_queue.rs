//! Reads the event queue, which is memory shared with the BPF programs. The comment on `RECORD_SLOTS` in
//! `bpf/include/record_event.h` describes the protocol.

use super::record_event::RecordEvent;
use super::sys::Shared;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

const SLOTS: u64 = 8192;

/// Length of a slot, and the offsets of the event's number, length and content in it.
const SLOT_BYTES: usize = 576;
const NUMBER_AT: usize = 0;
const LENGTH_AT: usize = 8;
const EVENT_AT: usize = 16;

/// Length of the progress area, and the offset of the reader's position in it.
const PROGRESS_BYTES: usize = 72;
const READ_AT: usize = 64;

/// Number of events after which the read slots are released to the programs.
const BATCH: u64 = 256;

/// The reader of the queue.
#[derive(Debug)]
pub struct EventQueue {
    slots: Shared,
    progress: Shared,
    /// Number of slots read so far.
    read: u64,
}

impl EventQueue {
    /// Opens the queue in maps that have no reader yet.
    ///
    /// # Errors
    /// If the maps cannot be mapped into memory.
    pub fn of(slots: impl AsFd, progress: impl AsFd) -> io::Result<EventQueue> {
        let slots = Shared::of(slots, SLOTS as usize * SLOT_BYTES)?;
        Ok(EventQueue { slots, progress: Shared::of(progress, PROGRESS_BYTES)?, read: 0 })
    }

    /// Consumes the complete events, at most one queue's capacity, because the programs write meanwhile. An incomplete
    /// event, and the events behind it, are left for the next call.
    pub fn take(&mut self, take: &mut dyn FnMut(&RecordEvent)) {
        let mut bytes = [0; RecordEvent::BYTES];
        for _ in 0..SLOTS {
            let slot = (self.read % SLOTS) as usize * SLOT_BYTES;
            if self.slots.number(slot + NUMBER_AT).load(Ordering::Acquire) != self.read + 1 {
                break;
            }
            let length = self.slots.number(slot + LENGTH_AT).load(Ordering::Relaxed);
            // An event of an unexpected length is skipped.
            let event = bytes.get_mut(..length as usize).and_then(|bytes| {
                self.slots.read(slot + EVENT_AT, bytes);
                RecordEvent::parse(bytes)
            });
            self.read += 1;
            if self.read % BATCH == 0 {
                self.publish_progress();
            }
            event.iter().for_each(&mut *take);
        }
        self.publish_progress();
    }

    /// Permits the programs to overwrite the slots that were read.
    fn publish_progress(&self) {
        self.progress.number(READ_AT).store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    const HEADER: &str = include_str!("../../../../bpf/include/record_event.h");

    struct Writer {
        slots: Shared,
        progress: Shared,
        taken: u64,
    }

    impl Writer {
        /// Reserves a slot; `None` if the queue is full.
        fn take(&mut self, connection: u64, length: usize) -> Option<(usize, u64)> {
            if self.taken - self.progress.number(READ_AT).load(Ordering::Acquire) >= SLOTS {
                return None;
            }
            let slot = (self.taken % SLOTS) as usize * SLOT_BYTES;
            self.taken += 1;
            self.slots.number(slot + LENGTH_AT).store(length as u64, Ordering::Relaxed);
            self.slots.number(slot + EVENT_AT).store(connection, Ordering::Relaxed);
            Some((slot, self.taken))
        }

        fn submit(&self, (slot, number): (usize, u64)) {
            self.slots.number(slot + NUMBER_AT).store(number, Ordering::Release);
        }

        /// Writes an event of this length; returns false if the queue is full.
        fn write(&mut self, connection: u64, length: usize) -> bool {
            self.take(connection, length).map(|taken| self.submit(taken)).is_some()
        }
    }

    fn both() -> (Writer, EventQueue) {
        let file = |bytes: usize| {
            let file = memfd_create("events", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&file, bytes as u64).unwrap();
            file
        };
        let (slots, progress) = (file(SLOTS as usize * SLOT_BYTES), file(PROGRESS_BYTES));
        let events = EventQueue::of(&slots, &progress).unwrap();
        let slots = Shared::of(slots, SLOTS as usize * SLOT_BYTES).unwrap();
        (Writer { slots, progress: Shared::of(progress, PROGRESS_BYTES).unwrap(), taken: 0 }, events)
    }

    fn taken(events: &mut EventQueue) -> Vec<u64> {
        let mut connections = Vec::new();
        events.take(&mut |event| connections.push(event.connection));
        connections
    }

    #[test]
    fn queue_slots_match_the_c_header() {
        assert!(HEADER.contains(&format!("#define RECORD_SLOTS {SLOTS}\n")));
        let members = |structure: &str| {
            let (_, body) = HEADER.split_once(&format!("struct {structure} {{\n")).unwrap();
            let lines = body.lines().take_while(|line| *line != "};");
            lines.map(|line| line.split(';').next().unwrap_or("").trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(members("record_slot"), ["u64 number", "u64 bytes", "struct record_event event", "u64 unused[2]"]);
        assert_eq!(members("record_progress"), ["u64 taken", "u64 unused[7]", "u64 read"]);
        assert_eq!(SLOT_BYTES, EVENT_AT + RecordEvent::BYTES + 2 * 8);
        assert!(SLOTS.is_power_of_two() && SLOT_BYTES % 64 == 0);
    }

    #[test]
    fn events_are_drained_in_order_across_wraparounds() {
        let (mut writer, mut events) = both();
        assert!(taken(&mut events).is_empty());
        let lengths = [RecordEvent::BYTES, RecordEvent::SHORT_BYTES, RecordEvent::TRANSFER_BYTES];
        let mut number = 0;
        for count in [1, 3, SLOTS - 1, SLOTS, 5, SLOTS, SLOTS] {
            let written: Vec<u64> = (number..number + count).collect();
            for event in &written {
                assert!(writer.write(*event, lengths[*event as usize % 3]), "the queue has space: {event}");
            }
            assert_eq!(taken(&mut events), written);
            assert!(taken(&mut events).is_empty(), "each is taken once");
            number += count;
        }
    }

    #[test]
    fn a_full_queue_accepts_events_again_after_it_is_drained() {
        let (mut writer, mut events) = both();
        let fit = (0..SLOTS + 9).filter(|number| writer.write(*number, RecordEvent::SHORT_BYTES)).count();
        assert_eq!(fit as u64, SLOTS);
        assert_eq!(taken(&mut events).len() as u64, SLOTS);
        assert!(writer.write(7, RecordEvent::SHORT_BYTES));
        assert_eq!(taken(&mut events), [7]);
    }

    #[test]
    fn an_incomplete_event_blocks_the_events_behind_it() {
        let (mut writer, mut events) = both();
        let first = writer.take(1, RecordEvent::SHORT_BYTES).unwrap();
        assert!(writer.write(2, RecordEvent::SHORT_BYTES));
        assert!(taken(&mut events).is_empty());
        writer.submit(first);
        assert_eq!(taken(&mut events), [1, 2]);
    }

    #[test]
    fn an_event_of_unexpected_length_is_skipped_and_does_not_block_the_queue() {
        let (mut writer, mut events) = both();
        for (connection, length) in
            [(1, RecordEvent::BYTES - 8), (2, RecordEvent::BYTES + 8), (3, usize::MAX), (4, RecordEvent::BYTES)]
        {
            assert!(writer.write(connection, length));
        }
        assert_eq!(taken(&mut events), [4]);
    }
}
