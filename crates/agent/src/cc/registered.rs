//! The eBPF congestion controllers that the kernel holds.

use super::holders::{self, Held, Holder};
use super::kernel::StructOpsKernel;
use super::object::text;
use libbpf_rs::btf::types::{FuncProto, MemberAttr, Ptr, Struct};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, ReferencesType};
use thalweg_store::Problem;

/// Registration state of an algorithm in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Registered until its link is closed.
    Linked {
        /// Id of the link.
        link: u32,
    },
    /// Registered without a link, until a process unregisters it.
    Kept,
    /// Unregistered; connections that use it keep it until they close.
    Leaving,
}

/// An eBPF congestion controller in the kernel.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Name.
    pub name: String,
    /// Registration state.
    pub state: State,
    /// Id of its struct_ops map.
    map: u32,
    /// Ids of the maps that its programs use.
    used: Vec<u32>,
}

/// Kernel values for the state of a registration (`enum bpf_struct_ops_state`). A registration with a link stays
/// `READY` after the link is closed.
const IN_USE: u32 = 1;
const TO_BE_FREED: u32 = 2;
const READY: u32 = 3;

impl Registered {
    /// Returns all eBPF algorithms, sorted by name; among those with the same name, the registered one comes first.
    pub fn all(kernel: &StructOpsKernel) -> Vec<Registered> {
        let Some(layout) = Layout::of(kernel) else { return Vec::new() };
        let programs: Vec<(u32, Vec<u32>)> =
            ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true))
                .map(|program| (program.id, program.map_ids))
                .collect();
        let links: Vec<(u32, u32)> = LinkInfoIter::default()
            .filter_map(|link| match link.info {
                LinkTypeInfo::StructOps(operations) => Some((operations.map_id, link.id)),
                _ => None,
            })
            .collect();
        let mut all: Vec<Registered> = MapInfoIter::default()
            .filter(|map| map.ty == MapType::StructOps && map.btf_vmlinux_value_type_id == layout.type_id)
            .filter_map(|map| {
                let value = MapHandle::from_map_id(map.id).ok()?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
                let link = links.iter().find(|(of, _)| *of == map.id).map(|(_, link)| *link);
                let state = match (layout.state(&value), link) {
                    (IN_USE, _) => State::Kept,
                    (READY, Some(link)) => State::Linked { link },
                    (READY | TO_BE_FREED, _) => State::Leaving,
                    _ => return None, // not registered yet
                };
                let used = layout.programs(&value);
                let used = programs.iter().filter(|(id, _)| used.contains(id)).flat_map(|(_, maps)| maps).copied();
                let mut used: Vec<u32> = used.collect();
                used.sort_unstable();
                used.dedup();
                Some(Registered { name: layout.name(&value)?, state, map: map.id, used })
            })
            .collect();
        all.sort_by_key(|algorithm| (algorithm.name.clone(), algorithm.state == State::Leaving, algorithm.map));
        all
    }

    /// Returns the registered algorithm of this name.
    pub fn find(kernel: &StructOpsKernel, name: &str) -> Option<Registered> {
        Registered::all(kernel).into_iter().find(|algorithm| algorithm.name == name && algorithm.is_registered())
    }

    /// Returns whether connections can select it by its name.
    pub fn is_registered(&self) -> bool {
        self.state != State::Leaving
    }

    /// Returns the processes that have its link open; without a link, those that have its map open.
    pub fn holders(&self) -> Vec<Holder> {
        match self.state {
            State::Linked { link } => holders::holders(Held::Link(link)),
            State::Kept => holders::holders(Held::Map(self.map)),
            State::Leaving => Vec::new(),
        }
    }

    /// Returns whether the registration is still in the same state.
    pub fn is_still_registered(&self, kernel: &StructOpsKernel) -> bool {
        Registered::find(kernel, &self.name).is_some_and(|now| now.map == self.map && now.state == self.state)
    }

    /// Returns the map with this name and value size among those that its programs use.
    pub fn used_map(&self, name: &str, value_size: u32) -> Option<MapHandle> {
        self.used
            .iter()
            .filter_map(|id| MapHandle::from_map_id(*id).ok())
            .find(|map| map.name() == name && map.value_size() == value_size)
    }

    /// Removes a registration that has no link. The kernel keeps the algorithm for connections that use it.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn unregister(&self) -> Result<(), Problem> {
        MapHandle::from_map_id(self.map).and_then(|map| map.delete(&0u32.to_ne_bytes())).map_err(|error| {
            Problem::failed("kernel-refuses", &self.name, error, "the kernel to unregister it", "try again as root")
        })
    }
}

/// Layout of the value of a tcp_congestion_ops map in this kernel, as offsets in bytes.
struct Layout {
    type_id: u32,
    operations: usize,
    name: usize,
    functions: Vec<usize>,
}

impl Layout {
    fn of(kernel: &StructOpsKernel) -> Option<Layout> {
        let value: Struct<'_> = kernel.btf.type_by_name("bpf_struct_ops_tcp_congestion_ops")?;
        let operations: Struct<'_> = kernel.btf.type_by_name("tcp_congestion_ops")?;
        let offset = |attributes| match attributes {
            MemberAttr::Normal { offset } => offset as usize / 8,
            MemberAttr::BitField { .. } => usize::MAX,
        };
        let at = |structure: &Struct<'_>, wanted: &str| {
            let member = structure.iter().find(|member| member.name.is_some_and(|name| name == wanted))?;
            Some(offset(member.attr))
        };
        let is_function = |id| {
            let pointer = kernel.btf.type_by_id::<Ptr<'_>>(id);
            pointer.is_some_and(|pointer| FuncProto::try_from(pointer.referenced_type()).is_ok())
        };
        let functions = operations.iter().filter(|member| is_function(member.ty)).map(|member| offset(member.attr));
        Some(Layout {
            type_id: value.type_id().into(),
            operations: at(&value, "data")?,
            name: at(&operations, "name")?,
            functions: functions.collect(),
        })
    }

    /// Returns the registration state. The value begins with a reference count and this state.
    fn state(&self, value: &[u8]) -> u32 {
        number(value, 4)
    }

    fn name(&self, value: &[u8]) -> Option<String> {
        text(value.get(self.operations + self.name..)?)
    }

    /// Returns the ids of the programs. User space reads them in place of the function pointers.
    fn programs(&self, value: &[u8]) -> Vec<u32> {
        self.functions.iter().map(|function| number(value, self.operations + function)).filter(|id| *id != 0).collect()
    }
}

/// Reads a 32-bit number; 0 outside of the value.
fn number(value: &[u8], at: usize) -> u32 {
    let bytes = value.get(at..at.saturating_add(4)).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_ne_bytes)
}
