//! Converts a closed connection to the outcome that the policy learns from.

use super::kernel::Choice;
use super::wire::Slots;
use crate::flow::measures;
use crate::flow::off_cpu::OffCpu;
use crate::flow::reason::Reason;
use crate::flow::record_event::{Kind, RecordEvent, flag};
use std::collections::HashMap;
use std::net::IpAddr;
use thalweg_policy::{ArmId, Arms, Direction, Group, Outcome, Prefix};
use thalweg_units::{Bytes, Packets, Rate, Span};

const PEERS: usize = 1 << 14;

/// Converts events to outcomes.
#[derive(Debug)]
pub struct Outcomes {
    arms: Arms,
    slots: Slots,
    lengths: [u8; 2],
    least: u64,
    jiffy_ns: u64,
    /// Close time of each peer's last counted connection with at least `least` bytes.
    counted_us: HashMap<(u32, IpAddr), u64>,
}

impl Outcomes {
    /// Returns a converter for connections under this choice.
    pub fn of(choice: &Choice, jiffy_ns: u64) -> Outcomes {
        let longest = |lengths: &[u8], whole| lengths.first().copied().unwrap_or(whole);
        Outcomes {
            arms: choice.arms.clone(),
            slots: Slots::of(&choice.arms),
            lengths: [longest(&choice.lengths_v4, 32), longest(&choice.lengths_v6, 128)],
            least: choice.least.0,
            jiffy_ns,
            counted_us: HashMap::new(),
        }
    }

    /// Returns the network namespace and the outcome of a closed connection. `None` if the connection is open, or its
    /// opening, decision, peer or arm is unknown.
    ///
    /// Simultaneous connections of a peer depend on each other. Once one of them with enough bytes has closed as
    /// [`Group::Treated`] or [`Group::HeldOut`], the others get [`Group::Untouched`].
    pub fn take(&mut self, event: &RecordEvent, off_cpu: &OffCpu) -> Option<(u32, Outcome)> {
        if !matches!(event.kind(), Some(Kind::Close | Kind::Gone)) || event.is(flag::JOINED) {
            return None;
        }
        let remote = measures::address(event.family, event.remote_address)?;
        let arm = self.arms.find(&measures::name(event.cc))?;
        let group = match event.reason() {
            Reason::Undecided => return None,
            Reason::Treated => self.treated(event, arm),
            Reason::HeldOut if event.cc == event.cc_at_open => Group::HeldOut,
            _ => Group::Untouched,
        };
        let group = if group == Group::Untouched || self.counts(event, remote) { group } else { Group::Untouched };
        let length = self.lengths[usize::from(remote.is_ipv6())];
        Some((event.netns, self.outcome(event, Prefix::of(remote, length), arm, group, off_cpu)))
    }

    /// Returns `Untouched` if the algorithm at the close is not the drawn one or, if none was drawn, not that at the
    /// opening.
    fn treated(&self, event: &RecordEvent, arm: ArmId) -> Group {
        let drawn = event.slot().and_then(|slot| self.slots.arm(slot));
        let is_kept = match drawn {
            Some(drawn) => drawn == arm,
            None => event.cc == event.cc_at_open,
        };
        if is_kept { Group::Treated } else { Group::Untouched }
    }

    /// Returns false if the connection started before the close of the peer's last counted one with at least `least`
    /// bytes.
    fn counts(&mut self, event: &RecordEvent, remote: IpAddr) -> bool {
        let peer = (event.netns, remote);
        if self.counted_us.get(&peer).is_some_and(|end_us| event.start_us < *end_us) {
            return false;
        }
        if event.acked_bytes >= self.least {
            if self.counted_us.len() >= PEERS {
                self.forget();
            }
            self.counted_us.insert(peer, event.end_us);
        }
        true
    }

    fn forget(&mut self) {
        let mut ends: Vec<u64> = self.counted_us.values().copied().collect();
        let (_, middle, _) = ends.select_nth_unstable(PEERS / 2);
        let middle = *middle;
        self.counted_us.retain(|_, end_us| *end_us > middle);
    }

    fn outcome(&self, event: &RecordEvent, prefix: Prefix, arm: ArmId, group: Group, off_cpu: &OffCpu) -> Outcome {
        let span = |us: u64| Span::from_micros(us);
        // The connection's only transfer, if it is complete and the application did not pace it.
        let transfer = event.last_transfer().filter(|transfer| {
            transfer.transfer == 0 && transfer.is(flag::COMPLETE) && !measures::is_paced_by_application(transfer)
        });
        let completion = transfer.map(|transfer| span(transfer.end_us.saturating_sub(transfer.start_us)));
        Outcome {
            prefix,
            arm,
            group,
            direction: if event.is(flag::OUTGOING) { Direction::Out } else { Direction::In },
            acked: Bytes(event.acked_bytes),
            completion: completion.filter(|span| span.0 > 0),
            busy: Span(if measures::is_measured(event.busy_jiffies) {
                u64::from(event.busy_jiffies) * self.jiffy_ns
            } else {
                0
            }),
            is_app_limited: 2 * event.app_limited_samples > event.rtt_samples,
            is_cpu_limited: measures::cpu_limited(event, off_cpu) == Some(true),
            segments: Packets(event.segments.into()),
            retransmits: Packets(event.retransmits.into()),
            rtt_min: measures::smallest_rtt_us(event).map(span),
            rtt_max: measures::known(event.rtt_max_us).map(span),
            delivery_rate: measures::delivery_rate_max_bps(event)
                .or_else(|| measures::delivery_rate_bps(event))
                .map(Rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::reason;
    use std::time::Duration;

    fn words(name: &str) -> [u64; 2] {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        [0, 8].map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap()))
    }

    fn outcomes() -> Outcomes {
        let choice = Choice {
            arms: Arms::named(&["cubic", "dctcp", "bbr"], "cubic").unwrap(),
            lengths_v4: vec![24],
            lengths_v6: vec![48],
            is_dry: false,
            takes_private: false,
            grace: Duration::from_secs(60),
            together: Duration::from_secs(30),
            loss_rule: None,
            least: Bytes(1_000),
        };
        Outcomes::of(&choice, 4_000_000)
    }

    /// Returns a connection for which the second slot was drawn. `dctcp` has the last slot, so the second is `bbr`.
    fn closed(start_us: u64, end_us: u64) -> RecordEvent {
        RecordEvent {
            kind: Kind::Close as u32,
            flags: reason::flags(Reason::Treated, Some(1)),
            start_us,
            end_us,
            family: 2,
            remote_address: [u64::from_ne_bytes([192, 0, 2, 7, 0, 0, 0, 0]), 0],
            netns: 5,
            cc_at_open: words("bbr"),
            cc: words("bbr"),
            sent_bytes: 60_000,
            acked_bytes: 50_000,
            segments: 40,
            retransmits: 4,
            busy_jiffies: 3,
            rtt_min_us: 20_000,
            rtt_max_us: 45_000,
            rtt_samples: 4,
            last_is_complete: 1,
            last_start_us: start_us + 10,
            last_end_us: end_us - 10,
            last_sent_bytes: 60_000,
            ..RecordEvent::default()
        }
    }

    fn group_of(outcomes: &mut Outcomes, event: &RecordEvent) -> Option<Group> {
        outcomes.take(event, &OffCpu::default()).map(|(_, outcome)| outcome.group)
    }

    #[test]
    fn a_closed_connection_yields_an_outcome() {
        let (netns, outcome) = outcomes().take(&closed(1_000, 31_000), &OffCpu::default()).unwrap();
        assert_eq!(netns, 5);
        let expected = Outcome {
            prefix: "192.0.2.0/24".parse().unwrap(),
            arm: ArmId(2),
            group: Group::Treated,
            direction: Direction::In,
            acked: Bytes(50_000),
            completion: Some(Span::from_micros(29_980)),
            busy: Span::from_millis(12),
            is_app_limited: false,
            is_cpu_limited: false,
            segments: Packets(40),
            retransmits: Packets(4),
            rtt_min: Some(Span::from_millis(20)),
            rtt_max: Some(Span::from_millis(45)),
            delivery_rate: None,
        };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn a_connection_with_several_transfers_has_no_completion_time() {
        let event = RecordEvent { transfer: 1, ..closed(1_000, 31_000) };
        assert_eq!(outcomes().take(&event, &OffCpu::default()).unwrap().1.completion, None);
        let event = RecordEvent { last_is_complete: 0, ..closed(1_000, 31_000) };
        assert_eq!(outcomes().take(&event, &OffCpu::default()).unwrap().1.completion, None);
    }

    #[test]
    fn unassigned_connections_and_those_that_changed_algorithm_yield_no_outcome() {
        let mut outcomes = outcomes();
        let changed = RecordEvent { cc: words("cubic"), ..closed(1_000, 31_000) };
        assert_eq!(group_of(&mut outcomes, &changed), Some(Group::Untouched));
        let untouched = RecordEvent { flags: reason::flags(Reason::Application, None), ..closed(1_000, 31_000) };
        assert_eq!(group_of(&mut outcomes, &untouched), Some(Group::Untouched));
        let held_out = RecordEvent { flags: reason::flags(Reason::HeldOut, None), ..closed(1_000, 31_000) };
        assert_eq!(group_of(&mut outcomes, &held_out), Some(Group::HeldOut));
        for none in [
            RecordEvent { flags: 0, ..closed(1_000, 31_000) },
            RecordEvent { flags: flag::JOINED, ..closed(1_000, 31_000) },
            RecordEvent { kind: Kind::Interim as u32, ..closed(1_000, 31_000) },
            RecordEvent { cc: words("vegas"), ..closed(1_000, 31_000) },
        ] {
            assert_eq!(group_of(&mut outcomes, &none), None, "{none:?}");
        }
    }

    #[test]
    fn one_of_several_overlapping_connections_of_a_peer_is_counted() {
        let mut outcomes = outcomes();
        let tiny = RecordEvent { acked_bytes: 500, ..closed(1_000, 20_000) };
        assert_eq!(group_of(&mut outcomes, &tiny), Some(Group::Treated), "it carried too few bytes to exclude others");
        assert_eq!(group_of(&mut outcomes, &closed(2_000, 30_000)), Some(Group::Treated));
        assert_eq!(group_of(&mut outcomes, &closed(3_000, 40_000)), Some(Group::Untouched));
        assert_eq!(group_of(&mut outcomes, &closed(30_000, 40_000)), Some(Group::Treated));
        let other = RecordEvent { netns: 6, ..closed(3_000, 41_000) };
        assert_eq!(group_of(&mut outcomes, &other), Some(Group::Treated), "another namespace, another peer");
    }

    #[test]
    fn stale_peers_are_evicted() {
        let mut outcomes = outcomes();
        for number in 0..2 * PEERS as u64 {
            let address = u64::from_ne_bytes([10, 9, (number >> 8) as u8, number as u8, 0, 0, 0, 0]);
            let event = RecordEvent {
                remote_address: [address, 0],
                netns: (number >> 16) as u32,
                ..closed(number + 1, number + 1_000)
            };
            outcomes.take(&event, &OffCpu::default());
            assert!(outcomes.counted_us.len() <= PEERS);
        }
        assert!(outcomes.counted_us.len() > PEERS / 4);
    }
}
