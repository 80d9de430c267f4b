//! Decisions of `tune` about a connection's algorithm: the mirror of `enum record_reason` in
//! `bpf/include/record_event.h`.

/// Bit offset of the reason in an event's flags.
pub const SHIFT: u32 = 8;
/// Bit offset of the algorithm's number, or of [`NO_ARM`], in an event's flags.
pub const ARM_SHIFT: u32 = 12;
/// Value of the algorithm's bits if none was chosen.
pub const NO_ARM: u32 = 15;
/// The decision was made for another connection of the same peer.
pub const SHARED: u32 = 1 << 16;
/// Mask of all bits of a decision.
pub const MASK: u32 = 15 << SHIFT | NO_ARM << ARM_SHIFT | SHARED;

/// The reason for a connection's algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No decision, for example because `tune` is not running.
    #[default]
    Undecided,
    /// Randomly assigned to the treated group.
    Treated,
    /// Held out: it keeps the default, for comparison with the others.
    HeldOut,
    /// Left alone: there are no probabilities for its network namespace.
    NoChances,
    /// Left alone: TCP_CONGESTION was set, by the application or another program.
    Application,
    /// Left alone: a route has set the algorithm.
    Route,
    /// Left alone: the peer's address is a loopback address, or in 0.0.0.0/8.
    Loopback,
    /// Left alone: the peer's address is private or shared.
    Private,
    /// Left alone: the peer's address is link-local.
    LinkLocal,
    /// Left alone because of an override.
    Keep,
    /// An override selected the algorithm.
    Override,
    /// The kernel did not set the algorithm that was drawn, or selected by an override.
    Refused,
}

impl Reason {
    /// All reasons, in the order of the header.
    pub const ALL: [Reason; 12] = [
        Reason::Undecided,
        Reason::Treated,
        Reason::HeldOut,
        Reason::NoChances,
        Reason::Application,
        Reason::Route,
        Reason::Loopback,
        Reason::Private,
        Reason::LinkLocal,
        Reason::Keep,
        Reason::Override,
        Reason::Refused,
    ];

    /// Decodes the reason from an event's flags.
    pub fn of(flags: u32) -> Reason {
        Reason::ALL.get((flags >> SHIFT & 15) as usize).copied().unwrap_or_default()
    }

    /// Returns the name in metrics, JSON and records.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Undecided => "undecided",
            Reason::Treated => "treated",
            Reason::HeldOut => "held_out",
            Reason::NoChances => "no_chances",
            Reason::Application => "application",
            Reason::Route => "route",
            Reason::Loopback => "loopback",
            Reason::Private => "private",
            Reason::LinkLocal => "link_local",
            Reason::Keep => "keep",
            Reason::Override => "override",
            Reason::Refused => "refused",
        }
    }

    /// Returns the connection's role in the comparison, for the column `assignment` of records; `None` without a
    /// decision.
    pub fn assignment(self) -> Option<&'static str> {
        match self {
            Reason::Undecided => None,
            Reason::Treated | Reason::HeldOut => Some(self.name()),
            _ => Some("untouched"),
        }
    }

    /// Returns whether the connection kept its algorithm for a reason other than the comparison.
    pub fn is_left_alone(self) -> bool {
        self.assignment() == Some("untouched") && self != Reason::Override
    }
}

/// Encodes a decision as flags.
#[cfg(test)]
pub fn flags(reason: Reason, slot: Option<u32>) -> u32 {
    (reason as u32) << SHIFT | slot.unwrap_or(NO_ARM) << ARM_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../../../bpf/include/record_event.h");

    #[test]
    fn reasons_and_bits_match_the_c_header() {
        let (_, reasons) = HEADER.split_once("enum record_reason {").unwrap();
        let reasons = reasons.lines().skip(1).map_while(|line| line.trim().strip_prefix("RECORD_")?.split(',').next());
        let mirrored = Reason::ALL.map(|reason| reason.name().to_uppercase());
        assert_eq!(reasons.collect::<Vec<_>>(), mirrored);
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!((reason as usize, Reason::of(flags(reason, None) | SHARED)), (at, reason));
        }
        for (name, value) in [("REASON_SHIFT", SHIFT), ("ARM_SHIFT", ARM_SHIFT)] {
            assert!(HEADER.contains(&format!("#define RECORD_{name} {value}\n")), "{name}");
        }
        assert!(HEADER.contains("#define RECORD_SHARED (1 << 16)") && SHARED == 1 << 16);
    }

    #[test]
    fn an_override_is_recorded_as_untouched_and_only_a_refusal_as_left_alone() {
        assert_eq!(Reason::Override.assignment(), Some("untouched"));
        assert!(
            Reason::Refused.is_left_alone() && !Reason::Override.is_left_alone() && !Reason::HeldOut.is_left_alone()
        );
    }
}
