//! Offsets of the members of a controller's own state in `icsk_ca_priv`, from the running kernel's type information
//! (BTF). The recorder thus reads the members by name, independent of this kernel's compilation.

use crate::lockstep_event::PRIV_WORDS;
use libbpf_rs::btf::types::{Array, Int, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType, HasSize};

/// A member that is a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name. Members of structures and arrays have the names and numbers of their path, joined by `_`.
    pub name: String,
    bit: usize,
    bits: usize,
}

impl Member {
    /// Its value in the state.
    pub fn read(&self, state: &[u64; PRIV_WORDS]) -> u64 {
        let (word, shift) = (self.bit / 64, self.bit % 64);
        let value = state[word] >> shift;
        if self.bits == 64 { value } else { value & ((1 << self.bits) - 1) }
    }
}

/// The members of `struct NAME` that have a meaning, in the order in which they lie there.
///
/// # Errors
/// If the kernel has no type information, or not of this structure; in words for the user.
pub fn of(name: &str) -> Result<Vec<Member>, String> {
    let btf = Btf::from_vmlinux().map_err(|error| format!("this kernel has no type information (BTF): {error}"))?;
    let structure: Struct<'_> =
        btf.type_by_name(name).ok_or_else(|| format!("this kernel's type information has no struct {name}"))?;
    let mut members = Vec::new();
    add(&mut members, &btf, *structure, String::new(), 0)?;
    members.retain(|member| !member.name.starts_with("unused"));
    let does_not_fit =
        |member: &&Member| member.bit % 64 + member.bits > 64 || member.bit + member.bits > 64 * PRIV_WORDS;
    match members.iter().find(does_not_fit) {
        Some(member) => Err(format!("struct {name}: cannot read {} at bit {}", member.name, member.bit)),
        None => Ok(members),
    }
}

fn add(members: &mut Vec<Member>, btf: &Btf<'_>, ty: BtfType<'_>, name: String, bit: usize) -> Result<(), String> {
    let within = |inner: &str| if name.is_empty() { inner.to_owned() } else { format!("{name}_{inner}") };
    let ty = ty.skip_mods_and_typedefs();
    if let Ok(structure) = Struct::try_from(ty) {
        for member in structure.iter() {
            let name = within(&member.name.unwrap_or_default().to_string_lossy());
            match member.attr {
                MemberAttr::BitField { size, offset } => {
                    members.push(Member { name, bit: bit + offset as usize, bits: usize::from(size) });
                }
                MemberAttr::Normal { offset } => {
                    let ty = btf.type_by_id(member.ty).ok_or_else(|| format!("{name} has no type"))?;
                    add(members, btf, ty, name, bit + offset as usize)?;
                }
            }
        }
        return Ok(());
    }
    if let Ok(array) = Array::try_from(ty) {
        let element = array.contained_type().skip_mods_and_typedefs();
        let size = match (Struct::try_from(element), Int::try_from(element)) {
            (Ok(structure), _) => 8 * structure.size(),
            (_, Ok(int)) => usize::from(int.bits),
            _ => return Err(format!("{name} is an array of something that is not a number")),
        };
        return (0..array.capacity())
            .try_for_each(|index| add(members, btf, element, within(&index.to_string()), bit + index * size));
    }
    let int = Int::try_from(ty).map_err(|_| format!("{name} is not a number"))?;
    members.push(Member { name, bit, bits: usize::from(int.bits) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_decoded_from_its_bit_range() {
        let mut state = [0; PRIV_WORDS];
        state[1] = 0xFEDC_BA98_7654_3210;
        let read = |bit, bits| Member { name: String::new(), bit, bits }.read(&state);
        assert_eq!(read(64, 64), 0xFEDC_BA98_7654_3210);
        assert_eq!(read(96, 32), 0xFEDC_BA98);
        assert_eq!(read(68, 3), 1);
        assert_eq!(read(71, 1), 0);
    }
}
