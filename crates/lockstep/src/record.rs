//! Registers a recorded controller, runs a scene with it on the engine, and collects its events.

use crate::algorithm::Algorithm;
use crate::lockstep_event::LockstepEvent;
use crate::scene::Scene;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::{Link, MapCore, MapFlags, MapType, Object, ObjectBuilder, RingBufferBuilder};
use std::cell::RefCell;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum time to wait for events before the engine is checked.
const POLL: Duration = Duration::from_millis(50);

/// Index of the number of lost events in the program's counters.
const COUNTER_LOST: u32 = 1;

/// A registered controller. The kernel removes it when this is dropped, or when the process ends for any reason: the
/// registration is a link that lives as long as its file descriptor and the connections that use it. Kernels without
/// such links keep it if the process is killed.
pub struct Registered {
    object: Object,
    _link: Link,
}

impl Registered {
    /// Registers the recorded variant of `algorithm`.
    ///
    /// # Errors
    /// If the kernel rejects it, as text for the user.
    pub fn new(algorithm: Algorithm) -> Result<Registered, String> {
        let name = algorithm.recorded_name();
        let refused = |what: &str, error: libbpf_rs::Error| {
            format!(
                "the kernel refused to {what} {name}: {error}; it needs Linux {} or newer with {}",
                algorithm.kernel(),
                algorithm.name()
            )
        };
        let mut object =
            ObjectBuilder::default().open_memory(algorithm.object()).map_err(|error| refused("open", error))?;
        if !has_links() {
            let maps = object.maps_mut().filter(|map| map.map_type() == MapType::StructOps);
            maps.for_each(|mut map| map.set_map_flags(0).expect("maps are not created yet"));
        }
        let mut object = object.load().map_err(|error| refused("load", error))?;
        let link = object
            .maps_mut()
            .find(|map| map.map_type() == MapType::StructOps)
            .ok_or_else(|| format!("{name}: the program registers no congestion control"))?
            .attach_struct_ops()
            .map_err(|error| refused("register", error))?;
        Ok(Registered { object, _link: link })
    }

    /// Runs `scene` on `engine`, and returns the inputs and decisions of the controller.
    ///
    /// # Errors
    /// If the engine fails, events were lost, or `is_stopped` was set, as text for the user.
    pub fn record(
        &self,
        engine: &Path,
        scene: &Scene,
        algorithm: Algorithm,
        is_stopped: &AtomicBool,
    ) -> Result<Vec<LockstepEvent>, String> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("a temporary directory cannot be created: {error}"))?;
        let plan = folder.path().join("plan.json");
        let json = serde_json::to_vec(&scene.plan(algorithm)).expect("a plan is JSON");
        std::fs::write(&plan, json).map_err(|error| format!("{}: {error}", plan.display()))?;
        let lost_before = self.lost()?;
        let events = RefCell::new(Vec::new());
        let mut ring = RingBufferBuilder::new();
        let map = self.object.maps().find(|map| map.name() == "events").ok_or("the program has no ring buffer")?;
        ring.add(&map, |bytes| {
            events.borrow_mut().push(LockstepEvent::parse(bytes));
            0
        })
        .map_err(|error| format!("the ring buffer cannot be read: {error}"))?;
        let ring = ring.build().map_err(|error| format!("the ring buffer cannot be read: {error}"))?;
        // Discards events of an earlier attempt.
        ring.consume().map_err(|error| format!("the ring buffer cannot be read: {error}"))?;
        events.borrow_mut().clear();

        let mut engine = Engine::start(engine, &plan, &folder.path().join("run"))?;
        let result = loop {
            ring.poll(POLL).map_err(|error| format!("the ring buffer cannot be read: {error}"))?;
            if is_stopped.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            if let Some(result) = engine.result()? {
                break result;
            }
        };
        ring.consume().map_err(|error| format!("the ring buffer cannot be read: {error}"))?;
        drop(ring);
        result?;
        let lost = self.lost()? - lost_before;
        if lost > 0 {
            return Err(format!("{lost} events were lost: the recording has gaps"));
        }
        let events = events.into_inner().into_iter().collect::<Option<Vec<LockstepEvent>>>();
        events.ok_or_else(|| {
            "an event has an unexpected length: the program and its reader have different versions".to_owned()
        })
    }

    fn lost(&self) -> Result<u64, String> {
        let map = self.object.maps().find(|map| map.name() == "counters").ok_or("the program has no counters")?;
        let value = map.lookup(&COUNTER_LOST.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(|error| format!("the counters cannot be read: {error}"))?.unwrap_or_default();
        Ok(u64::from_ne_bytes(value.try_into().map_err(|_| "a counter has an unexpected length")?))
    }
}

/// Returns whether the kernel registers controllers by links (from Linux 6.4).
fn has_links() -> bool {
    Btf::from_vmlinux().is_ok_and(|btf| btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some())
}

/// The running engine; dropping this kills it.
struct Engine(Child);

impl Engine {
    fn start(engine: &Path, plan: &Path, out: &Path) -> Result<Engine, String> {
        let child = Command::new(engine)
            .arg("run")
            .arg("--plan")
            .arg(plan)
            .arg("--out")
            .arg(out)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", engine.display()))?;
        Ok(Engine(child))
    }

    /// Returns the result of the engine; `None` while it runs.
    fn result(&mut self) -> Result<Option<Result<(), String>>, String> {
        let status = self.0.try_wait().map_err(|error| format!("waiting for the engine failed: {error}"))?;
        Ok(status.map(|status| {
            if status.success() { Ok(()) } else { Err(format!("the engine failed ({status}); see its error above")) }
        }))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The call fails if the engine has exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
