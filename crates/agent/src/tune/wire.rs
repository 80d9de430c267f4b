//! Layout of the maps of the programs that choose: the mirror of `bpf/include/tune_choice.h`.

use super::arms::NEED_ECN;
use super::decisions::Decisions;
use super::kernel::{Choice, Override, Row, RowKey};
use crate::flow::reason::{self, Reason};
use std::collections::BTreeMap;
use std::net::IpAddr;
use thalweg_policy::{ArmId, Arms, Family, MAX_ARMS, Prefix, Weights};

/// Maximum number of prefix lengths that are looked up.
pub const LENGTHS: usize = 3;

/// Maximum number of rows of destinations and networks.
pub const ROWS: u32 = 1 << 15;

/// Number of decision counters, indexed by a reason and an algorithm of 4 bits each.
const DECISIONS: usize = 256;

/// Maximum number of clients; a power of two. The flags of a flow have 14 bits for the client.
pub const CLIENTS: u32 = 1 << 14;

/// Numbers of the arms in the BPF program; arms that need ECN come last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    arms: Vec<ArmId>,
    plain: usize,
}

impl Slots {
    /// Assigns slots to the arms.
    pub fn of(arms: &Arms) -> Slots {
        let needs_ecn = |name: &str| NEED_ECN.contains(&name);
        let mut plain: Vec<ArmId> =
            arms.iter().filter(|(_, arm)| !needs_ecn(&arm.name)).map(|(number, _)| number).collect();
        let count = plain.len();
        plain.extend(arms.iter().filter(|(_, arm)| needs_ecn(&arm.name)).map(|(number, _)| number));
        Slots { arms: plain, plain: count }
    }

    /// Returns the arm of a slot.
    pub fn arm(&self, slot: usize) -> Option<ArmId> {
        self.arms.get(slot).copied()
    }

    fn slot(&self, arm: ArmId) -> u32 {
        self.arms.iter().position(|slot| *slot == arm).unwrap_or(0) as u32
    }

    /// Iterates over the arms in slot order.
    pub fn iter(&self) -> impl Iterator<Item = ArmId> {
        self.arms.iter().copied()
    }
}

#[derive(Debug, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u64s(mut self, numbers: &[u64]) -> Bytes {
        numbers.iter().for_each(|number| self.0.extend(number.to_ne_bytes()));
        self
    }

    fn u32s(mut self, numbers: &[u32]) -> Bytes {
        numbers.iter().for_each(|number| self.0.extend(number.to_ne_bytes()));
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend(bytes);
        self
    }
}

/// Encodes `struct tune_settings`; with `None`, no algorithm is chosen.
pub fn settings(choice: Option<(&Choice, &Slots)>) -> Vec<u8> {
    let Some((choice, slots)) = choice else { return vec![0; 8 * (2 * MAX_ARMS + 1) + 4 * (8 + 2 * LENGTHS)] };
    let mut names = [0u8; 16 * MAX_ARMS];
    for (slot, arm) in slots.iter().enumerate() {
        let name = choice.arms.arm(arm).name.as_bytes();
        // The kernel limits names to 15 characters.
        let length = name.len().min(15);
        names[16 * slot..][..length].copy_from_slice(&name[..length]);
    }
    let lengths =
        |lengths: &[u8]| -> [u32; LENGTHS] { std::array::from_fn(|at| lengths.get(at).copied().map_or(0, u32::from)) };
    let (shift, arm) = choice.loss_rule.map_or((0, 0), |rule| (u32::from(rule.shift), slots.slot(rule.arm)));
    Bytes::default()
        .bytes(&names)
        .u64s(&[u64::try_from(choice.together.as_micros()).unwrap_or(u64::MAX)])
        .u32s(&[1, u32::from(!choice.is_dry), u32::from(choice.takes_private)])
        .u32s(&[slots.arms.len() as u32, slots.plain as u32, shift, arm, CLIENTS - 1])
        .u32s(&lengths(&choice.lengths_v4))
        .u32s(&lengths(&choice.lengths_v6))
        .0
}

/// Encodes `struct tune_heartbeat`.
pub fn heartbeat(beat_us: u64, grace_us: u64, overrides: u64) -> Vec<u8> {
    Bytes::default().u64s(&[beat_us, grace_us, overrides]).0
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&address.octets());
            octets
        }
        IpAddr::V6(address) => address.octets(),
    }
}

fn family(prefix: Prefix) -> u8 {
    match prefix.family() {
        Family::V4 => 4,
        Family::V6 => 6,
    }
}

/// Encodes `struct tune_key`.
pub fn key(key: RowKey) -> Vec<u8> {
    let scope = u64::from(key.netns) | u64::from(family(key.prefix)) << 32 | u64::from(key.prefix.length()) << 48;
    Bytes::default().bytes(&octets(key.prefix.address())).u64s(&[scope]).0
}

const ALL: u64 = 1 << 32;

/// Encodes the exclusive upper bound of a range of 32-bit random numbers. 2^32 becomes `u32::MAX`, with which the BPF
/// program includes the last number.
fn threshold(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn draw(weights: &Weights, slots: &Slots) -> Bytes {
    let probabilities: Vec<f64> = slots.iter().map(|arm| weights.probability(arm)).collect();
    let last = probabilities.iter().rposition(|probability| *probability > 0.0).unwrap_or(0);
    let holdout = (weights.holdout() * ALL as f64) as u64;
    // One random number decides about the hold-out and the arm: the arms share the range that is not held out.
    let beyond =
        |number: u64| threshold(holdout + (u128::from(ALL - holdout) * u128::from(number) / u128::from(ALL)) as u64);
    let mut below: Vec<u32> = Weights::of(&probabilities).thresholds().into_iter().map(beyond).collect();
    below.resize(MAX_ARMS, u32::MAX);
    Bytes::default().u32s(&[threshold(holdout), last as u32]).u32s(&below)
}

/// Encodes `struct tune_row`.
pub fn row(row: &Row, slots: &Slots) -> Vec<u8> {
    let (incoming, outgoing) = (draw(&row.incoming, slots), draw(&row.outgoing, slots));
    incoming.bytes(&outgoing.0).0
}

/// Encodes `struct tune_prefix`.
pub fn prefix(prefix: Prefix) -> Vec<u8> {
    let bits = 8 + u32::from(prefix.length());
    Bytes::default().u32s(&[bits]).bytes(&[family(prefix)]).bytes(&octets(prefix.address())).bytes(&[0; 3]).0
}

/// Encodes `enum tune_override`.
pub fn word(what: Override, slots: &Slots) -> Vec<u8> {
    let word = match what {
        Override::Keep => 0,
        Override::DataCenter => 1,
        Override::Arm(arm) => 2 + slots.slot(arm),
    };
    Bytes::default().u32s(&[word]).0
}

/// The times in `struct tune_heartbeat`, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    beat_us: u64,
    grace_us: u64,
}

impl Heartbeat {
    /// Parses a heartbeat; `None` if the bytes are too short.
    pub fn parse(bytes: &[u8]) -> Option<Heartbeat> {
        let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(Heartbeat { beat_us: word(0)?, grace_us: word(8)? })
    }

    /// Returns the time until which the kernel chooses, by CLOCK_MONOTONIC.
    pub fn end_us(self) -> u64 {
        self.beat_us.saturating_add(self.grace_us)
    }
}

/// Sums decisions over CPUs and algorithms, by reason.
pub fn reasons(cpus: &[Vec<u8>]) -> BTreeMap<Reason, u64> {
    let mut sums = BTreeMap::new();
    for (reason, _, count) in counted(cpus) {
        *sums.entry(reason).or_default() += count;
    }
    sums
}

/// Returns the nonzero counters of `struct tune_decisions` of all CPUs: reason, slot, and number of connections.
fn counted(cpus: &[Vec<u8>]) -> impl Iterator<Item = (Reason, usize, u64)> {
    let words = cpus.iter().flat_map(|cpu| cpu.chunks_exact(8).take(DECISIONS).enumerate());
    let count = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
    words
        .map(move |(at, bytes)| (Reason::of((at as u32) << reason::SHIFT), at >> 4, count(bytes)))
        .filter(|(_, _, count)| *count > 0)
}

/// Sums `struct tune_decisions` over all CPUs.
pub fn decisions(cpus: &[Vec<u8>], slots: &Slots) -> Decisions {
    let mut sums = Decisions::new();
    for (reason, slot, count) in counted(cpus) {
        *sums.entry((reason, slots.arm(slot))).or_default() += count;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const HEADER: &str = include_str!("../../../../bpf/include/tune_choice.h");

    fn choice(names: &[&str]) -> Choice {
        Choice {
            arms: Arms::named(names, names[0]).unwrap(),
            lengths_v4: vec![24, 16],
            lengths_v6: vec![48],
            is_dry: false,
            takes_private: true,
            grace: Duration::from_secs(60),
            together: Duration::from_secs(30),
            loss_rule: None,
            least: thalweg_units::Bytes(1),
        }
    }

    /// Returns the size of a structure in the header, in bytes.
    fn size(structure: &str) -> usize {
        let (_, body) = HEADER.split_once(&format!("struct {structure} {{")).expect("the structure");
        let (body, _) = body.split_once("\n};").expect("its end");
        let bytes = |line: &str| {
            let (member, _) = line.trim().split_once(';')?;
            let (words, name) = member.rsplit_once(' ')?;
            let element_bytes = match words {
                "u64" => 8,
                "u32" => 4,
                "u16" => 2,
                "u8" => 1,
                "struct tune_draw" => size("tune_draw"),
                _ => panic!("{line}"),
            };
            let count = match name.split_once('[').map(|(_, count)| count.trim_end_matches(']')) {
                None => 1,
                Some("TUNE_ARMS") => MAX_ARMS,
                Some("TUNE_LENGTHS") => LENGTHS,
                Some(count) => count.parse().unwrap(),
            };
            Some(element_bytes * count)
        };
        // `u64 names[2 * TUNE_ARMS]` contains blanks within its brackets.
        let body = body.replace("2 * TUNE_ARMS", "16");
        body.lines().filter_map(bytes).sum()
    }

    #[test]
    fn written_structs_have_the_size_of_the_c_structs() {
        let choice = choice(&["cubic", "bbr"]);
        let slots = Slots::of(&choice.arms);
        let weights = Weights::of(&[1.0, 1.0]);
        let of_all = Row { incoming: weights.clone(), outgoing: weights };
        let destination = RowKey { netns: 1, prefix: "192.0.2.0/24".parse().unwrap() };
        for (structure, written) in [
            ("tune_settings", settings(Some((&choice, &slots)))),
            ("tune_settings", settings(None)),
            ("tune_heartbeat", heartbeat(1, 2, 3)),
            ("tune_key", key(destination)),
            ("tune_row", row(&of_all, &slots)),
            ("tune_prefix", prefix(destination.prefix)),
        ] {
            assert_eq!(written.len(), size(structure), "{structure}");
        }
        assert!(HEADER.contains(&format!("#define TUNE_DECISIONS {DECISIONS}\n")));
        assert!(HEADER.contains(&format!("#define TUNE_ARMS {MAX_ARMS}\n")));
        assert!(HEADER.contains(&format!("#define TUNE_LENGTHS {LENGTHS}\n")));
    }

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn per_cpu_decision_counts_are_summed_by_reason_and_arm() {
        let slots = Slots::of(&choice(&["cubic", "dctcp", "bbr"]).arms);
        let cpu = |counts: &[(Reason, usize, u64)]| {
            let mut words = [0u64; DECISIONS];
            counts.iter().for_each(|(reason, slot, count)| words[*reason as usize | slot << 4] = *count);
            words.into_iter().flat_map(u64::to_ne_bytes).collect::<Vec<u8>>()
        };
        let none = reason::NO_ARM as usize;
        let cpus = [
            cpu(&[(Reason::Treated, 1, 3), (Reason::Private, none, 5)]),
            cpu(&[(Reason::Treated, 1, 4), (Reason::Refused, 2, 1)]),
        ];
        let expected = [
            ((Reason::Treated, Some(ArmId(2))), 7),
            ((Reason::Private, None), 5),
            ((Reason::Refused, Some(ArmId(1))), 1),
        ];
        assert_eq!(decisions(&cpus, &slots), Decisions::from(expected));
    }

    #[test]
    fn the_expiry_of_the_heartbeat_is_parsed() {
        assert_eq!(Heartbeat::parse(&heartbeat(5, 7, 3)).map(Heartbeat::end_us), Some(12));
        assert_eq!(Heartbeat::parse(&[0; 8]), None);
    }

    #[test]
    fn a_client_number_fits_into_the_flow_flags() {
        let flow = include_str!("../../../../bpf/flow/flow.h");
        let shift = flow.split_once("#define FLOW_CLIENT_SHIFT ").expect("the shift").1;
        let shift: u32 = shift.lines().next().expect("a line").parse().expect("a number");
        assert_eq!(CLIENTS, 1 << (32 - shift));
    }

    #[test]
    fn arms_that_need_ecn_come_last_and_have_separate_probabilities() {
        let choice = choice(&["cubic", "dctcp", "bbr"]);
        let slots = Slots::of(&choice.arms);
        assert_eq!(slots.iter().collect::<Vec<ArmId>>(), [ArmId(0), ArmId(2), ArmId(1)]);
        let written = words(&settings(Some((&choice, &slots))));
        let names: Vec<u8> = written[..12].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(&names, b"cubic\0\0\0\0\0\0\0\0\0\0\0bbr\0\0\0\0\0\0\0\0\0\0\0\0\0dctcp\0\0\0\0\0\0\0\0\0\0\0");
        let weights = Weights::of(&[1.0, 2.0, 1.0]).holding_out(0.5);
        let equal = Row { incoming: weights.clone(), outgoing: weights };
        let drawn = words(&row(&equal, &slots));
        assert_eq!(drawn[..5], [1 << 31, 2, 5 << 29, 3 << 30, u32::MAX]);
    }

    #[test]
    fn probability_one_is_encoded_as_the_largest_integer() {
        let arms = Arms::named(&["cubic", "bbr"], "cubic").unwrap();
        let weights = Weights::only(&arms, ArmId(0)).holding_out(1.0);
        let equal = Row { incoming: weights.clone(), outgoing: weights };
        assert_eq!(words(&row(&equal, &Slots::of(&arms)))[..4], [u32::MAX, 0, u32::MAX, u32::MAX]);
    }

    #[test]
    fn prefixes_are_in_network_order() {
        let of_v4 = RowKey { netns: 7, prefix: "192.0.2.0/24".parse().unwrap() };
        let written = key(of_v4);
        assert_eq!(written[..4], [192, 0, 2, 0]);
        assert_eq!(words(&written[16..20]), [7]);
        assert_eq!(
            (written[20..22].to_vec(), written[22..].to_vec()),
            (4u16.to_ne_bytes().to_vec(), 24u16.to_ne_bytes().to_vec())
        );
        let of_v6 = prefix("2001:db8::/32".parse().unwrap());
        assert_eq!((words(&of_v6[..4]), &of_v6[4..9]), (vec![40], &[6, 0x20, 0x01, 0x0d, 0xb8][..]));
    }
}
