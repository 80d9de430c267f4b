//! Opens and loads a compiled BPF program with one congestion controller.

use crate::{libbpf_log, object};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::{MapType, Object, OpenObject};
use thalweg_store::Problem;

/// An algorithm that is opened but not yet loaded.
pub struct Algorithm {
    /// The name under which it will be registered.
    pub name: String,
    /// The opened BPF object.
    pub(super) open: OpenObject,
    /// Name of the object in error messages.
    pub(super) place: String,
    /// Whether it calls functions of the kernel's own BBR; false if unknown.
    pub(super) calls_bbr: bool,
}

impl Algorithm {
    /// Opens a program; `place` names it in errors.
    ///
    /// # Errors
    /// If it cannot be opened, or does not contain exactly one congestion controller.
    pub fn read(bytes: &[u8], place: &str) -> Result<Algorithm, Problem> {
        let open = object::open(bytes, place)?;
        let wrong = |found: String| {
            Problem::refused(
                "not-an-algorithm",
                place,
                found,
                "one struct_ops map of struct tcp_congestion_ops with a name",
                "in the source: SEC(\".struct_ops.link\") struct tcp_congestion_ops mine = { ..., .name = \"mine\" };",
            )
        };
        let mut maps = open.maps().filter(|map| map.map_type() == MapType::StructOps);
        let (map, others) = (maps.next(), maps.count());
        let name = match (map, others) {
            (None, _) => return Err(wrong("no struct_ops map".to_owned())),
            (Some(map), 0) => name_in(bytes, map.initial_value().unwrap_or_default()),
            (Some(_), others) => return Err(wrong(format!("{} struct_ops maps", others + 1))),
        };
        let name = name.ok_or_else(|| wrong("a struct_ops map of another type, or without a name".to_owned()))?;
        Ok(Algorithm { name, open, place: place.to_owned(), calls_bbr: false })
    }

    /// Loads the programs into the kernel. Without `with_link`, a registration stays until it is explicitly removed.
    ///
    /// # Errors
    /// If they cannot be loaded.
    pub fn load(mut self, with_link: bool) -> Result<Object, Problem> {
        for mut map in self.open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            let flags = if with_link { libbpf_sys_flags::BPF_F_LINK } else { 0 };
            map.set_map_flags(flags).expect("maps are not created yet");
        }
        object::load(self.open, &self.place).map_err(|problem| refused_by_kernel(self.calls_bbr, problem))
    }
}

mod libbpf_sys_flags {
    /// The struct_ops map is registered by a link.
    pub const BPF_F_LINK: u32 = 1 << 13;
}

/// Replaces the error if its cause is known.
fn refused_by_kernel(calls_bbr: bool, problem: Problem) -> Problem {
    let words = libbpf_log::last(usize::MAX).unwrap_or_default();
    if calls_bbr && words.contains("CO-RE relocation") {
        return Problem::missing(
            "other-bbr",
            "this kernel's BBR",
            "a state that lacks some members of BBR version 1 (it may be version 2 or 3)",
            "BBR version 1, as in all Linux releases",
            "boot the distribution's own kernel",
        );
    }
    problem
}

/// Returns the algorithm's name in the value of a struct_ops map.
fn name_in(object: &[u8], value: &[u8]) -> Option<String> {
    let btf = Btf::from_raw("object", object).ok()??;
    let operations: Struct<'_> = btf.type_by_name("tcp_congestion_ops")?;
    let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "name"))?;
    let MemberAttr::Normal { offset } = member.attr else { return None };
    text(value.get(offset as usize / 8..)?)
}

/// Returns the text up to the first NUL; `None` without a NUL, or if the text is empty or not UTF-8.
pub fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}
