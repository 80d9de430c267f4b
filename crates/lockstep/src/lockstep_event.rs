//! One call of a controller by the kernel, as read from the ring buffer: the mirror of `bpf/include/lockstep_event.h`.

/// Number of 64-bit words in `icsk_ca_priv`, the controller's own state.
pub const PRIV_WORDS: usize = 13;

/// Kind of a call, in the order of `enum lockstep_call`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `init`
    Init,
    /// `in_ack_event`
    InAckEvent,
    /// `pkts_acked`
    PktsAcked,
    /// `cong_avoid`
    CongAvoid,
    /// `cong_control`
    CongControl,
    /// `ssthresh`
    Ssthresh,
    /// `set_state`
    SetState,
    /// `cwnd_event`
    CwndEvent,
    /// `undo_cwnd`
    UndoCwnd,
    /// `release`
    Release,
}

impl Call {
    const ALL: [Call; 10] = [
        Call::Init,
        Call::InAckEvent,
        Call::PktsAcked,
        Call::CongAvoid,
        Call::CongControl,
        Call::Ssthresh,
        Call::SetState,
        Call::CwndEvent,
        Call::UndoCwnd,
        Call::Release,
    ];

    /// Returns the kernel's name of the call, which recordings use.
    pub fn name(self) -> &'static str {
        match self {
            Call::Init => "init",
            Call::InAckEvent => "in_ack_event",
            Call::PktsAcked => "pkts_acked",
            Call::CongAvoid => "cong_avoid",
            Call::CongControl => "cong_control",
            Call::Ssthresh => "ssthresh",
            Call::SetState => "set_state",
            Call::CwndEvent => "cwnd_event",
            Call::UndoCwnd => "undo_cwnd",
            Call::Release => "release",
        }
    }
}

/// Declares the event from the list of its members, so that names and order are written once.
macro_rules! event {
    ($($member:ident,)*) => {
        /// An event; signed members are stored as their bits.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "described in lockstep_event.h")]
        pub struct LockstepEvent {
            $(pub $member: u64,)*
            pub priv_words: [u64; PRIV_WORDS],
        }

        impl LockstepEvent {
            /// Names of the members before `priv`, in order.
            #[cfg(test)]
            const MEMBERS: &[&str] = &[$(stringify!($member)),*];

            /// Length of an event in bytes.
            #[cfg(test)]
            pub const BYTES: usize = 8 * (LockstepEvent::MEMBERS.len() + PRIV_WORDS);

            /// Parses an event; `None` if the length is wrong.
            pub fn parse(bytes: &[u8]) -> Option<LockstepEvent> {
                let mut words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
                let event = LockstepEvent {
                    $($member: words.next()?,)*
                    priv_words: {
                        let mut state = [0; PRIV_WORDS];
                        for word in &mut state {
                            *word = words.next()?;
                        }
                        state
                    },
                };
                (words.next().is_none()).then_some(event)
            }
        }
    };
}

event! {
    call,
    flow,
    number,
    jiffies,
    jiffies_after,
    clock_ns,
    wstamp_ns,
    lsndtime,
    ca_state,
    mss,
    srtt_us_8,
    min_rtt_us,
    inflight,
    delivered,
    delivered_ce,
    delivered_mstamp_us,
    lost,
    snd_una,
    snd_nxt,
    is_cwnd_limited,
    app_limited,
    prior_cwnd,
    gso_max_size,
    pacing_shift,
    pacing_status,
    cwnd,
    ssthresh,
    pacing_rate,
    cwnd_cnt,
    arg,
    acked,
    rtt_us,
    losses,
    prior_inflight,
    rs_prior_delivered,
    rs_delivered,
    rs_interval_us,
    rs_is_app_limited,
    rs_is_ack_delayed,
    result,
    min_tso_segs,
    app_limited_after,
    cwnd_after,
    ssthresh_after,
    pacing_rate_after,
    cwnd_cnt_after,
}

impl LockstepEvent {
    /// Returns the kind of the call; `None` if it is unknown.
    pub fn call(&self) -> Option<Call> {
        Call::ALL.get(usize::try_from(self.call).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../../bpf/include/lockstep_event.h");

    #[test]
    fn struct_members_match_the_c_header_in_order() {
        let members: Vec<&str> = HEADER
            .lines()
            .filter_map(|line| line.trim().strip_prefix("u64 ")?.strip_suffix(';'))
            .filter(|member| !member.starts_with("priv["))
            .collect();
        assert_eq!(members, LockstepEvent::MEMBERS);
        assert!(HEADER.contains(&format!("#define LOCKSTEP_PRIV_WORDS {PRIV_WORDS}\n")));
        let calls = HEADER.lines().filter_map(|line| line.trim().strip_prefix("LOCKSTEP_")?.strip_suffix(','));
        let names: Vec<String> = calls.map(str::to_lowercase).collect();
        assert_eq!(names, Call::ALL.map(Call::name));
    }

    #[test]
    fn an_event_of_unexpected_length_is_rejected() {
        assert!(LockstepEvent::parse(&[0; LockstepEvent::BYTES]).is_some());
        assert_eq!(LockstepEvent::parse(&[0; LockstepEvent::BYTES - 8]), None);
        assert_eq!(LockstepEvent::parse(&[0; LockstepEvent::BYTES + 8]), None);
    }
}
