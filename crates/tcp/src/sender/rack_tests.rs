//! Compares RACK's detection of losses with a scan of all outstanding segments.

use super::rack::Rack;
use super::scoreboard::{Flags, Scoreboard, Segment, SendCounts};
use proptest::prelude::*;
use thalweg_units::{Span, Time};

#[derive(Clone, Debug)]
enum Operation {
    Send(u64),
    Ack(u64),
    Sack { from: u64, length: u64 },
    Retransmit(u64),
    Probe,
    Timeout,
    Undo,
    Detect { window_us: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (1u64..12).prop_map(Operation::Send),
        2 => (1u64..6).prop_map(Operation::Ack),
        4 => (0u64..40, 1u64..5).prop_map(|(from, length)| Operation::Sack { from, length }),
        3 => (1u64..6).prop_map(Operation::Retransmit),
        1 => Just(Operation::Probe),
        1 => Just(Operation::Timeout),
        1 => Just(Operation::Undo),
        4 => (0u64..6_000).prop_map(|window_us| Operation::Detect { window_us }),
    ]
}

fn segment(now: Time) -> Segment {
    Segment {
        sent_at: now,
        first_sent_at: now,
        delivered_at: now,
        delivered: 0,
        offset: 0,
        len: 1,
        flags: Flags::default(),
    }
}

/// Returns the lost segments and the longest wait, from a scan of all segments in the order of their latest
/// transmission, as in Linux.
fn scan(rack: &Rack, board: &Scoreboard, now: Time, window: Span) -> (Vec<u64>, Option<Span>) {
    let mut order: Vec<u64> = (board.una()..board.next()).collect();
    order.sort_by_key(|seq| (board.segment(*seq).sent_at, *seq));
    let (mut lost, mut wait) = (Vec::new(), None);
    for seq in order {
        let Segment { sent_at, flags, .. } = *board.segment(seq);
        if flags.has(Flags::SACKED.or(Flags::UNLISTED)) || flags.awaits_retransmission() {
            continue;
        }
        if !rack.is_older(sent_at, seq) {
            break;
        }
        match rack.remaining(now, sent_at, window) {
            Span::ZERO => lost.push(seq),
            remaining => wait = wait.max(Some(remaining)),
        }
    }
    lost.sort_unstable();
    (lost, wait)
}

/// Returns the segments that RACK has declared lost and that were not retransmitted since.
fn found(board: &Scoreboard) -> Vec<u64> {
    (board.una()..board.next()).filter(|seq| board.segment(*seq).flags.has(Flags::UNLISTED)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_queues_yield_the_same_losses_as_a_full_scan(
        operations in prop::collection::vec((operation(), 0u64..3_000), 1..120),
    ) {
        let (mut rack, mut board, mut now) = (Rack::new(), Scoreboard::default(), Time::ZERO);
        for (operation, pause_us) in operations {
            now += Span::from_micros(pause_us + 1);
            match operation {
                Operation::Send(count) => (0..count).for_each(|_| board.push(segment(now), SendCounts::default())),
                Operation::Ack(count) => {
                    for _ in 0..count {
                        let seq = board.una();
                        if let Some((segment, _)) = board.pop().filter(|(segment, _)| !segment.flags.has(Flags::SACKED)) {
                            rack.on_delivered(now, seq, segment.sent_at, segment.flags, None);
                        }
                    }
                    board.trim();
                    rack.trim(board.una());
                }
                Operation::Sack { from, length } => {
                    let start = board.una() + 1 + from;
                    board.sack(start, start + length, |seq, segment, _| {
                        rack.on_delivered(now, seq, segment.sent_at, segment.flags, None);
                    });
                }
                Operation::Retransmit(count) => {
                    for _ in 0..count {
                        if let Some(seq) = board.first_to_retransmit() {
                            board.mark_retransmitted(seq, false, SendCounts::default()).sent_at = now;
                            rack.on_retransmitted(now, seq);
                        }
                    }
                }
                Operation::Probe => {
                    if let Some(last) = board.next().checked_sub(1).filter(|last| *last >= board.una()) {
                        if !board.segment(last).flags.has(Flags::SACKED.or(Flags::LOST)) {
                            board.mark_retransmitted(last, true, SendCounts::default()).sent_at = now;
                            rack.on_retransmitted(now, last);
                        }
                    }
                }
                Operation::Timeout => (board.una()..board.next()).for_each(|seq| board.mark_lost(seq)),
                Operation::Undo => {
                    board.unmark_all_lost();
                    rack.on_unmarked(&board);
                }
                Operation::Detect { window_us } => {
                    let window = Span::from_micros(window_us);
                    let (newly_lost, wait) = scan(&rack, &board, now, window);
                    let mut expected = found(&board);
                    expected.extend(&newly_lost);
                    expected.sort_unstable();
                    let longest = rack.detect(now, &mut board, window);
                    prop_assert_eq!(found(&board), expected);
                    prop_assert_eq!(longest, wait);
                }
            }
            board.verify();
        }
    }
}
