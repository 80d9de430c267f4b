//! Offsets of the members of a controller's state in `icsk_ca_priv`, from the running kernel's type information (BTF).
//! The recorder can thus read the members by name, independent of the kernel build.
//!
//! A module has separate type information, which continues the kernel's: its types and strings are numbered after the
//! kernel's last ones (<https://docs.kernel.org/bpf/btf.html>).

use crate::lockstep_event::PRIV_WORDS;
use libbpf_rs::btf::types::{Array, Int, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType, HasSize};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;

/// Length of `struct btf_header`: magic number, version and flags; then the header length, and the offset and length of
/// the types and of the strings, with 4 bytes each.
const HEADER_BYTES: usize = 24;

/// A numeric member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name of the member. Members of nested structures and arrays have the names and indices of their path, joined by
    /// `_`.
    pub name: String,
    bit: usize,
    bits: usize,
}

impl Member {
    /// Reads the member from the state.
    pub fn read(&self, state: &[u64; PRIV_WORDS]) -> u64 {
        let (word, shift) = (self.bit / 64, self.bit % 64);
        let value = state[word] >> shift;
        if self.bits == 64 { value } else { value & ((1 << self.bits) - 1) }
    }
}

/// Returns the members of `struct NAME` in memory order, except those whose name begins with `unused`. The structure
/// belongs to `module`, which may be built in.
///
/// # Errors
/// If the kernel has no type information, or none about this structure, or a member cannot be read as a number; as text
/// for the user.
pub fn of(name: &str, module: &str) -> Result<Vec<Member>, String> {
    let btf = type_information(module)?;
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

/// Returns the type information of the kernel, with that of the module if it is not built in.
fn type_information(module: &str) -> Result<Btf<'static>, String> {
    let folder = Path::new("/sys/kernel/btf");
    let own = folder.join(module);
    if !own.exists() {
        return Btf::from_vmlinux().map_err(|error| format!("this kernel has no type information (BTF): {error}"));
    }
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let joined = join(&read(&folder.join("vmlinux"))?, &read(&own)?);
    let joined = joined.ok_or_else(|| format!("{}: malformed type information", own.display()))?;
    parse(&joined).map_err(|error| format!("{}: {error}", own.display()))
}

/// Parses type information through a file, because libbpf-rs reads raw type information only from files.
fn parse(btf: &[u8]) -> Result<Btf<'static>, Box<dyn Error>> {
    let mut file = NamedTempFile::new()?;
    file.write_all(btf)?;
    Ok(Btf::from_path(file.path())?)
}

/// Joins the kernel's type information with a module's; `None` if either is malformed.
fn join(kernel: &[u8], module: &[u8]) -> Option<Vec<u8>> {
    let [kernel_types, kernel_strings] = sections(kernel)?;
    let [module_types, module_strings] = sections(module)?;
    let types = [kernel_types, module_types].concat();
    let strings = [kernel_strings, module_strings].concat();
    let mut joined = kernel.get(..HEADER_BYTES)?.to_vec();
    let lengths = [HEADER_BYTES, 0, types.len(), types.len(), strings.len()];
    for (field, length) in joined[HEADER_BYTES - 4 * lengths.len()..].chunks_exact_mut(4).zip(lengths) {
        field.copy_from_slice(&u32::try_from(length).ok()?.to_ne_bytes());
    }
    Some([joined, types, strings].concat())
}

/// Returns the sections of types and of strings.
fn sections(btf: &[u8]) -> Option<[&[u8]; 2]> {
    let field = |at: usize| Some(u32::from_ne_bytes(btf.get(at..at + 4)?.try_into().ok()?) as usize);
    let header_bytes = field(4)?;
    let section = |at: usize| btf.get(header_bytes + field(at)?..)?.get(..field(at + 4)?);
    Some([section(8)?, section(16)?])
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

    /// Encodes type information with these types, in 32-bit words, and strings.
    fn btf(types: &[u32], strings: &str) -> Vec<u8> {
        let types_bytes = 4 * types.len() as u32;
        let header = [0x0001_EB9F, HEADER_BYTES as u32, 0, types_bytes, types_bytes, strings.len() as u32];
        let words = header.iter().chain(types).flat_map(|word| word.to_ne_bytes());
        words.chain(strings.bytes()).collect()
    }

    #[test]
    fn the_types_of_a_module_continue_those_of_the_kernel() {
        // Type 1 is a 32-bit number; type 2, in the module, is a structure of two of them.
        let kernel = btf(&[1, 1 << 24, 4, 32], "\0u32\0");
        let module = btf(&[5, 4 << 24 | 2, 8, 11, 1, 0, 17, 1, 32], "dctcp\0alpha\0end\0");
        let joined = parse(&join(&kernel, &module).unwrap()).unwrap();
        let structure: Struct<'_> = joined.type_by_name("dctcp").unwrap();
        let mut members = Vec::new();
        add(&mut members, &joined, *structure, String::new(), 0).unwrap();
        let at = |name: &str, bit| Member { name: name.to_owned(), bit, bits: 32 };
        assert_eq!(members, [at("alpha", 0), at("end", 32)]);
        assert_eq!(join(&kernel, &module[..40]), None);
    }
}
