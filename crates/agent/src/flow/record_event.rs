//! Events of the programs in the kernel: the mirror of `bpf/include/record_event.h`.

use super::reason::{self, Reason};

/// Number of times after the opening (1, 3, 10 and 30 s) at which the acknowledged bytes are recorded.
pub const MARKS: usize = 4;

/// The lowest octave of the RTT histogram, as an exponent of two in microseconds.
pub const RTT_FIRST_OCTAVE: u32 = 5;

/// Number of octaves in the RTT histogram.
pub const RTT_OCTAVES: usize = 18;

/// The histogram is omitted below this number of samples.
pub const RTT_FEW: u32 = 20;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A closed connection.
    Close,
    /// An open connection, for an interim row.
    Interim,
    /// A sample of an open connection, from a scan that shows all of them, or because only scans observe it
    /// ([`flag::BLIND`]).
    Snapshot,
    /// A transfer on a connection that stays open.
    Transfer,
    /// A connection that no longer exists, and whose close was not reported.
    Gone,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Close, Kind::Interim, Kind::Snapshot, Kind::Transfer, Kind::Gone];
}

/// Bits of [`RecordEvent::flags`].
pub mod flag {
    /// This host opened the connection.
    pub const OUTGOING: u32 = 1;
    /// The opening was not observed.
    pub const JOINED: u32 = 2;
    /// The kernel does not call the programs for this connection: only scans sample it.
    pub const BLIND: u32 = 4;
    /// All bytes of the transfer were acknowledged.
    pub const COMPLETE: u32 = 8;
}

/// TCP states, as the kernel numbers them.
pub mod state {
    /// This host sent the first FIN, and it was acknowledged.
    pub const FIN_WAIT2: u32 = 5;
    /// The peer sent the first FIN; the FIN of this host is not yet acknowledged.
    pub const LAST_ACK: u32 = 9;
    /// Both hosts sent a FIN before they received the other's.
    pub const CLOSING: u32 = 11;
    /// Names of the states, as `ss` prints them.
    pub const NAMES: [(u32, &str); 7] = [
        (1, "ESTAB"),
        (4, "FIN-WAIT-1"),
        (FIN_WAIT2, "FIN-WAIT-2"),
        (7, "UNCONN"),
        (8, "CLOSE-WAIT"),
        (LAST_ACK, "LAST-ACK"),
        (CLOSING, "CLOSING"),
    ];
}

trait Member: Sized {
    fn read(bytes: &mut &[u8]) -> Self;

    /// Passes the numbers to `take`.
    fn visit(&self, take: &mut impl FnMut(u64));

    /// Builds the member from the next numbers.
    fn make(numbers: &mut impl Iterator<Item = u64>) -> Self;

    const COUNT: usize;

    #[cfg(test)]
    const WORD: &str;
}

macro_rules! member {
    ($number:ident) => {
        impl Member for $number {
            #[inline(always)]
            fn read(bytes: &mut &[u8]) -> $number {
                let Some((number, rest)) = bytes.split_first_chunk() else { return 0 };
                *bytes = rest;
                $number::from_ne_bytes(*number)
            }

            fn visit(&self, take: &mut impl FnMut(u64)) {
                take(u64::from(*self));
            }

            fn make(numbers: &mut impl Iterator<Item = u64>) -> $number {
                numbers.next().unwrap_or(0) as $number
            }

            const COUNT: usize = 1;

            #[cfg(test)]
            const WORD: &str = stringify!($number);
        }
    };
}

member!(u64);
member!(u32);

impl<M: Member, const N: usize> Member for [M; N] {
    #[inline(always)]
    fn read(bytes: &mut &[u8]) -> [M; N] {
        std::array::from_fn(|_| M::read(bytes))
    }

    fn visit(&self, take: &mut impl FnMut(u64)) {
        self.iter().for_each(|member| member.visit(take));
    }

    fn make(numbers: &mut impl Iterator<Item = u64>) -> [M; N] {
        std::array::from_fn(|_| M::make(numbers))
    }

    const COUNT: usize = N * M::COUNT;

    #[cfg(test)]
    const WORD: &str = M::WORD;
}

/// Declares the event and its conversions from one list of members.
macro_rules! event {
    ($($member:ident: $kind:ty,)*) => {
        /// An event of a connection.
        #[repr(C)]
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "described in record_event.h")]
        pub struct RecordEvent {
            $(pub $member: $kind,)*
        }

        impl RecordEvent {
            /// Name, number type and size in bytes of each member, in order.
            #[cfg(test)]
            const MEMBERS: &[(&str, &str, usize)] =
                &[$((stringify!($member), <$kind as Member>::WORD, size_of::<$kind>())),*];

            fn read(event: &[u8; RecordEvent::BYTES]) -> RecordEvent {
                let mut bytes = &event[..];
                // Rust evaluates the fields in the order in which they are written here.
                RecordEvent { $($member: Member::read(&mut bytes),)* }
            }

            /// Count of the numbers in an event.
            pub const NUMBERS: usize = 0 $(+ <$kind as Member>::COUNT)*;

            /// Passes the numbers to `take`, in order.
            pub fn visit(&self, take: &mut impl FnMut(u64)) {
                $(self.$member.visit(take);)*
            }

            /// Builds an event from its numbers.
            pub fn of(numbers: impl IntoIterator<Item = u64>) -> RecordEvent {
                let mut numbers = numbers.into_iter();
                RecordEvent { $($member: Member::make(&mut numbers),)* }
            }
        }
    };
}

event! {
    connection: u64,
    start_us: u64,
    end_us: u64,
    local_address: [u64; 2],
    remote_address: [u64; 2],
    cgroup: u64,
    cc_at_open: [u64; 2],
    cc: [u64; 2],
    sent_bytes: u64,
    acked_bytes: u64,
    retransmitted_bytes: u64,
    kind: u32,
    flags: u32,
    transfer: u32,
    state: u32,
    family: u32,
    local_port: u32,
    remote_port: u32,
    netns: u32,
    segments: u32,
    retransmits: u32,
    busy_jiffies: u32,
    rwnd_limited_jiffies: u32,
    sndbuf_limited_jiffies: u32,
    rtt_min_us: u32,
    rtt_max_us: u32,
    rtt_smoothed_us: u32,
    rtt_samples: u32,
    app_limited_samples: u32,
    received_bytes: u64,
    acked_after_bytes: [u64; MARKS],
    bbr_bw: u64,
    last_start_us: u64,
    last_end_us: u64,
    last_sent_bytes: u64,
    last_acked_bytes: u64,
    last_retransmitted_bytes: u64,
    error: u32,
    segments_out: u32,
    segments_in: u32,
    lost_packets: u32,
    reordering: u32,
    reorderings: u32,
    ecn_flags: u32,
    ce_packets: u32,
    mss_bytes: u32,
    cwnd_packets: u32,
    rtt_handshake_us: u32,
    rate_packets: u32,
    rate_interval_us: u32,
    rate_is_app_limited: u32,
    rate_max_packets: u32,
    rate_max_interval_us: u32,
    marks: u32,
    bbr_min_rtt_us: u32,
    bbr_samples: u32,
    bbr_short_samples: u32,
    last_is_complete: u32,
    last_segments: u32,
    last_retransmits: u32,
    last_busy_jiffies: u32,
    last_rwnd_limited_jiffies: u32,
    last_sndbuf_limited_jiffies: u32,
    last_rtt_min_us: u32,
    last_rtt_max_us: u32,
    last_rtt_samples: u32,
    last_app_limited_samples: u32,
    rtt_histogram: [u64; RTT_OCTAVES],
}

impl RecordEvent {
    /// Length of an event in bytes.
    pub const BYTES: usize = size_of::<RecordEvent>();

    /// Length of a transfer event in bytes: the remaining members are zero.
    pub const TRANSFER_BYTES: usize = std::mem::offset_of!(RecordEvent, received_bytes);

    /// Length of an event without RTT histogram, in bytes: the connection had few round trips, or histograms are off.
    pub const SHORT_BYTES: usize = std::mem::offset_of!(RecordEvent, rtt_histogram);

    /// Parses an event; `None` if its length is invalid.
    pub fn parse(bytes: &[u8]) -> Option<RecordEvent> {
        let is_event =
            matches!(bytes.len(), RecordEvent::BYTES | RecordEvent::SHORT_BYTES | RecordEvent::TRANSFER_BYTES);
        is_event.then(|| {
            // Copied to the maximum length, so that the offsets of members are known at compile time.
            let mut padded = [0; RecordEvent::BYTES];
            padded[..bytes.len()].copy_from_slice(bytes);
            RecordEvent::read(&padded)
        })
    }

    /// Returns the kind of the event; `None` if it is unknown.
    pub fn kind(&self) -> Option<Kind> {
        Kind::ALL.get(usize::try_from(self.kind).ok()?).copied()
    }

    /// Returns the last transfer of a closed connection as a separate event; `None` for events of another kind, or if
    /// that transfer sent no data.
    pub fn last_transfer(&self) -> Option<RecordEvent> {
        if self.kind() != Some(Kind::Close) || self.last_sent_bytes == 0 {
            return None;
        }
        let complete = if self.last_is_complete == 0 { 0 } else { flag::COMPLETE };
        Some(RecordEvent {
            kind: Kind::Transfer as u32,
            flags: self.flags & (flag::OUTGOING | flag::JOINED | reason::MASK) | complete,
            start_us: self.last_start_us,
            end_us: self.last_end_us,
            sent_bytes: self.last_sent_bytes,
            acked_bytes: self.last_acked_bytes,
            retransmitted_bytes: self.last_retransmitted_bytes,
            segments: self.last_segments,
            retransmits: self.last_retransmits,
            busy_jiffies: self.last_busy_jiffies,
            rwnd_limited_jiffies: self.last_rwnd_limited_jiffies,
            sndbuf_limited_jiffies: self.last_sndbuf_limited_jiffies,
            rtt_min_us: self.last_rtt_min_us,
            rtt_max_us: self.last_rtt_max_us,
            rtt_samples: self.last_rtt_samples,
            app_limited_samples: self.last_app_limited_samples,
            connection: self.connection,
            transfer: self.transfer,
            family: self.family,
            local_address: self.local_address,
            local_port: self.local_port,
            remote_address: self.remote_address,
            remote_port: self.remote_port,
            netns: self.netns,
            cgroup: self.cgroup,
            cc_at_open: self.cc_at_open,
            cc: self.cc,
            rtt_smoothed_us: self.rtt_smoothed_us,
            ..RecordEvent::default()
        })
    }

    /// Returns the reason for the algorithm.
    pub fn reason(&self) -> Reason {
        Reason::of(self.flags)
    }

    /// Returns the number of the chosen algorithm; `None` if none was chosen.
    pub fn slot(&self) -> Option<usize> {
        let slot = self.flags >> reason::ARM_SHIFT & reason::NO_ARM;
        (self.reason() != Reason::Undecided && slot != reason::NO_ARM).then_some(slot as usize)
    }

    /// Returns whether a flag is set.
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// Constants that are set before the programs are loaded: `struct record_settings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Length of a jiffy.
    pub jiffy_us: u64,
    /// Minimum idle time that ends a transfer.
    pub idle_gap_us: u64,
    /// Sampling ratio: one in N connections is recorded.
    pub sample_one_in: u64,
    /// Interval of the interim rows of a connection.
    pub interim_us: u64,
    /// Depth of the recorded cgroup below the root.
    pub cgroup_level: u64,
    /// Number of sets of connections, minus 1.
    pub set_mask: u64,
    /// 1 if events have RTT histograms.
    pub has_histograms: u64,
}

impl Settings {
    #[cfg(test)]
    const MEMBERS: [&str; 7] =
        ["jiffy_us", "idle_gap_us", "sample_one_in", "interim_us", "cgroup_level", "set_mask", "has_histograms"];

    /// Encodes the settings in the layout that the programs read.
    pub fn bytes(&self) -> Vec<u8> {
        let Settings { jiffy_us, idle_gap_us, sample_one_in, interim_us, cgroup_level, set_mask, has_histograms } =
            *self;
        let words = [jiffy_us, idle_gap_us, sample_one_in, interim_us, cgroup_level, set_mask, has_histograms];
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }
}

/// Counters of the programs: `struct record_counters`, summed over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Opened connections that are recorded.
    pub opened: u64,
    /// Recorded connections whose opening was not observed.
    pub joined: u64,
    /// Closes among `lost_events`.
    pub lost_closes: u64,
    /// Connections that were not sampled.
    pub unsampled: u64,
    /// Events that were dropped, usually because the queue was full.
    pub lost_events: u64,
    /// Failed attempts to record a connection, because the table was full. Each scan tries again.
    pub lost_connections: u64,
}

impl Counters {
    #[cfg(test)]
    const MEMBERS: [&str; 6] = ["opened", "joined", "lost_closes", "unsampled", "lost_events", "lost_connections"];

    /// Sums the values of all CPUs.
    pub fn sum(cpus: &[Vec<u8>]) -> Counters {
        let mut sums = [0u64; 6];
        for cpu in cpus {
            for (sum, bytes) in sums.iter_mut().zip(cpu.chunks_exact(8)) {
                *sum += u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
            }
        }
        let [opened, joined, lost_closes, unsampled, lost_events, lost_connections] = sums;
        Counters { opened, joined, lost_closes, unsampled, lost_events, lost_connections }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../../../bpf/include/record_event.h");

    /// Returns the name, number type and size in bytes of each member of a structure in the header.
    fn members(structure: &str) -> Vec<(String, String, usize)> {
        let (_, body) = HEADER.split_once(&format!("struct {structure} {{")).expect("the structure");
        let (body, _) = body.split_once("};").expect("its end");
        let member = |line: &str| {
            let (word, member) = line.trim().split_once(' ')?;
            let bytes = match word {
                "u64" => 8,
                "u32" => 4,
                _ => return None,
            };
            let (member, _) = member.split_once(';')?;
            let (name, count) = match member.split_once('[') {
                None => (member, 1),
                Some((name, count)) => match count.trim_end_matches(']') {
                    "RECORD_MARKS" => (name, MARKS),
                    "RECORD_RTT_OCTAVES" => (name, RTT_OCTAVES),
                    number => (name, number.parse().expect("a number")),
                },
            };
            Some((name.to_owned(), word.to_owned(), count * bytes))
        };
        body.lines().filter_map(member).collect()
    }

    fn names(structure: &str) -> Vec<String> {
        members(structure).into_iter().map(|(name, ..)| name).collect()
    }

    #[test]
    fn struct_members_match_the_c_header_in_order() {
        let mirrored: Vec<(String, String, usize)> = RecordEvent::MEMBERS
            .iter()
            .map(|(name, word, bytes)| ((*name).to_owned(), (*word).to_owned(), *bytes))
            .collect();
        assert_eq!(members("record_event"), mirrored);
        assert_eq!(names("record_settings"), Settings::MEMBERS);
        assert_eq!(names("record_counters"), Counters::MEMBERS);
        for (name, value) in [
            ("MARKS", MARKS),
            ("RTT_FIRST_OCTAVE", RTT_FIRST_OCTAVE as usize),
            ("RTT_OCTAVES", RTT_OCTAVES),
            ("RTT_FEW", RTT_FEW as usize),
        ] {
            assert!(HEADER.contains(&format!("#define RECORD_{name} {value}\n")), "{name}");
        }
        for member in ["received_bytes", "rtt_histogram"] {
            assert!(HEADER.contains(&format!("__builtin_offsetof(struct record_event, {member})")), "{member}");
        }
    }

    #[test]
    fn there_is_no_padding_between_members() {
        assert_eq!(RecordEvent::MEMBERS.iter().map(|(.., bytes)| bytes).sum::<usize>(), RecordEvent::BYTES);
        assert!(
            [RecordEvent::BYTES, RecordEvent::SHORT_BYTES, RecordEvent::TRANSFER_BYTES]
                .iter()
                .all(|bytes| bytes % 8 == 0)
        );
    }

    #[test]
    fn a_member_is_read_at_its_offset() {
        let mut bytes = vec![0; RecordEvent::BYTES];
        bytes[8..16].copy_from_slice(&7u64.to_ne_bytes());
        let at = std::mem::offset_of!(RecordEvent, last_app_limited_samples);
        bytes[at..at + 4].copy_from_slice(&9u32.to_ne_bytes());
        let last = RecordEvent::BYTES - 8;
        bytes[last..].copy_from_slice(&11u64.to_ne_bytes());
        let mut expected = RecordEvent { start_us: 7, last_app_limited_samples: 9, ..RecordEvent::default() };
        expected.rtt_histogram[RTT_OCTAVES - 1] = 11;
        assert_eq!(RecordEvent::parse(&bytes), Some(expected.clone()));
        expected.rtt_histogram = [0; RTT_OCTAVES];
        assert_eq!(RecordEvent::parse(&bytes[..RecordEvent::SHORT_BYTES]), Some(expected));
    }

    #[test]
    fn kinds_and_flags_match_the_c_header() {
        let (_, kinds) = HEADER.split_once("enum record_kind {").unwrap();
        let kinds: Vec<&str> = kinds.lines().skip(1).map_while(|line| line.trim().strip_prefix("RECORD_")).collect();
        let kinds: Vec<String> = kinds.iter().map(|line| line.split(',').next().unwrap().to_lowercase()).collect();
        assert_eq!(kinds, Kind::ALL.map(|kind| format!("{kind:?}").to_lowercase()));
        let flags = [
            ("OUTGOING", flag::OUTGOING),
            ("JOINED", flag::JOINED),
            ("BLIND", flag::BLIND),
            ("COMPLETE", flag::COMPLETE),
        ];
        for (name, value) in flags {
            assert!(HEADER.contains(&format!("RECORD_{name} = {value},")), "{name}");
        }
    }

    #[test]
    fn the_assigned_algorithm_is_decoded_from_the_flags() {
        let event = |flags| RecordEvent { flags, ..RecordEvent::default() };
        let chosen = event(flag::OUTGOING | reason::flags(Reason::Treated, Some(3)) | reason::SHARED);
        assert_eq!((chosen.reason(), chosen.slot(), chosen.is(reason::SHARED)), (Reason::Treated, Some(3), true));
        let held_out = event(reason::flags(Reason::HeldOut, None));
        assert_eq!((held_out.reason(), held_out.slot()), (Reason::HeldOut, None));
        assert_eq!((event(flag::JOINED).reason(), event(flag::JOINED).slot()), (Reason::Undecided, None));
    }

    #[test]
    fn an_event_of_unexpected_length_is_rejected() {
        assert!(RecordEvent::parse(&[0; RecordEvent::BYTES]).is_some());
        assert!(RecordEvent::parse(&[0; RecordEvent::SHORT_BYTES]).is_some());
        assert!(RecordEvent::parse(&[0; RecordEvent::TRANSFER_BYTES]).is_some());
        assert_eq!(RecordEvent::parse(&[0; RecordEvent::BYTES - 8]), None);
        assert_eq!(RecordEvent::parse(&[0; RecordEvent::BYTES + 8]), None);
    }

    #[test]
    fn the_last_transfer_of_a_connection_is_a_separate_event() {
        let close = RecordEvent {
            flags: flag::OUTGOING,
            connection: 7,
            transfer: 2,
            local_port: 443,
            sent_bytes: 9_000,
            received_bytes: 50,
            last_is_complete: 1,
            last_start_us: 10,
            last_end_us: 30,
            last_sent_bytes: 4_000,
            last_acked_bytes: 3_900,
            ..RecordEvent::default()
        };
        let transfer = close.last_transfer().expect("there was one");
        assert_eq!((transfer.kind(), transfer.flags), (Some(Kind::Transfer), flag::OUTGOING | flag::COMPLETE));
        assert_eq!((transfer.connection, transfer.transfer, transfer.local_port), (7, 2, 443));
        assert_eq!((transfer.start_us, transfer.end_us), (10, 30));
        assert_eq!((transfer.sent_bytes, transfer.acked_bytes, transfer.received_bytes), (4_000, 3_900, 0));
        assert_eq!(RecordEvent { last_sent_bytes: 0, ..close.clone() }.last_transfer(), None);
        assert_eq!(RecordEvent { kind: Kind::Interim as u32, ..close }.last_transfer(), None);
    }

    #[test]
    fn settings_have_the_size_of_the_c_struct() {
        let settings = Settings {
            jiffy_us: 1,
            idle_gap_us: 2,
            sample_one_in: 3,
            interim_us: 4,
            cgroup_level: 5,
            set_mask: 6,
            has_histograms: 7,
        };
        let words: Vec<u64> =
            settings.bytes().chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn per_cpu_counters_are_summed() {
        let cpu = |first: u64| [first, 1, 2, 3, 4, 5].into_iter().flat_map(u64::to_ne_bytes).collect::<Vec<u8>>();
        let counters = Counters::sum(&[cpu(10), cpu(20)]);
        assert_eq!((counters.opened, counters.joined, counters.lost_connections), (30, 2, 10));
    }
}
