//! The ECN field of the IP header.

/// Codepoints of the two ECN bits (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable transport: congestion is signalled by drops.
    #[default]
    NotEct,
    /// ECN-capable transport, ECT(0): the classic codepoint.
    Ect0,
    /// ECN-capable transport, ECT(1): identifies L4S traffic (RFC 9331).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Returns the codepoint in the two low bits of an IPv4 TOS byte or an IPv6 traffic class.
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Whether the packet is ECN-capable.
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }
}
