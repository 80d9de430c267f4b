//! Attaches the program to the recorded cgroup, and attaches it again when the cgroup is recreated, as by the restart
//! of a service, or when another process detached it.
//!
//! The parent folders of the cgroup are watched, so that a new cgroup is attached to before its first process starts.
//! Connections that opened and closed in between are not recorded; possible gaps are counted and logged.

use super::extension::Extension;
use crate::flow::cgroups::{CgroupState, Paths, Recorded};
use crate::flow::program::check_alone;
use crate::log;
use crate::show::observed::{LoadedPrograms, Observed};
use libbpf_rs::Link;
use libbpf_rs::query::LinkTypeInfo;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thalweg_store::Problem;

/// Interval of checks for changes without a notification.
const CHECK: Duration = Duration::from_millis(200);

/// The program, and where it is attached.
pub struct Attachment<'a> {
    kernel: &'a LoadedPrograms,
    observed: &'a Observed,
    mount: PathBuf,
    paths: Paths,
    cgroup: Recorded,
    /// `None` while nothing is recorded.
    link: Option<Link>,
    /// Notifications of new folders around the cgroup; `None` if the kernel's limit of watches is reached.
    changes: Option<OwnedFd>,
    checked: Instant,
}

impl<'a> Attachment<'a> {
    /// Attaches the program to the connections of a cgroup below `mount`.
    ///
    /// # Errors
    /// The kernel refuses it, or the extension reports an error.
    pub fn new(
        kernel: &'a LoadedPrograms,
        observed: &'a Observed,
        mount: PathBuf,
        paths: Paths,
        cgroup: Recorded,
        extension: &mut dyn Extension,
    ) -> Result<Attachment<'a>, Problem> {
        let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let link = Some(kernel.program.attach(&cgroup)?);
        let new = Attachment { kernel, observed, mount, paths, cgroup, link, changes, checked: Instant::now() };
        new.hand_over(extension)?;
        new.watch();
        Ok(new)
    }

    /// Becomes readable when a folder on the cgroup's path is made.
    pub fn changes(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().map(AsFd::as_fd)
    }

    /// Attaches the program again where that is needed and possible. Whether it was.
    pub fn check(&mut self, extension: &mut dyn Extension) -> bool {
        if !self.has_changed() && self.checked.elapsed() < CHECK {
            return false;
        }
        self.checked = Instant::now();
        match self.cgroup.state(&self.mount) {
            CgroupState::Same if self.is_attached() => {
                if !extension.holds() {
                    log::warning("the watchdog process had exited: a new one is started");
                    if let Err(problem) = self.hand_over(extension) {
                        log::error(&problem.to_string());
                    }
                }
                false
            }
            CgroupState::Same => self.attach_again(None, "was detached by another process", extension),
            CgroupState::Replaced(other) => self.attach_again(Some(other), "was removed and made again", extension),
            CgroupState::Removed(why) => {
                let place = self.cgroup.path.display();
                self.report(format!(
                    "cgroup {place} is removed ({why}); its connections are recorded once it is created again"
                ));
                self.let_go(extension);
                self.watch();
                false
            }
        }
    }

    fn attach_again(&mut self, other: Option<Recorded>, what: &str, extension: &mut dyn Extension) -> bool {
        // The holder of the old link would be taken for another recorder.
        self.let_go(extension);
        if let Some(other) = other {
            self.cgroup = other;
        }
        let place = self.cgroup.path.display().to_string();
        let attached = check_alone(&self.cgroup, |number| self.paths.of(number).map(|path| path.to_string()))
            .and_then(|()| self.kernel.program.attach(&self.cgroup))
            .and_then(|link| {
                self.link = Some(link);
                self.hand_over(extension)
            });
        self.watch();
        if let Err(problem) = attached {
            self.let_go(extension);
            self.report(format!("cgroup {place} {what}, and its connections cannot be recorded: {}", problem.found));
            return false;
        }
        self.kernel.scanner.set_cgroup(self.cgroup.number);
        self.observed.attached_again();
        log::warning(&format!(
            "cgroup {place} {what}; its connections are recorded again, except those that opened and closed in between"
        ));
        true
    }

    fn hand_over(&self, extension: &mut dyn Extension) -> Result<(), Problem> {
        self.link.as_ref().map_or(Ok(()), |link| extension.attached(link))
    }

    fn let_go(&mut self, extension: &mut dyn Extension) {
        extension.detached();
        self.link = None;
    }

    /// The kernel detaches a link from a cgroup that is removed, and others can: it then names no cgroup.
    fn is_attached(&self) -> bool {
        let info = self.link.as_ref().and_then(|link| link.info().ok()).map(|info| info.info);
        match info {
            Some(LinkTypeInfo::Cgroup(info)) => info.cgroup_id == self.cgroup.number,
            // A link that cannot be queried for want of a file descriptor counts as attached.
            Some(_) => true,
            None => self.link.is_some(),
        }
    }

    /// Reports once the reason why nothing is recorded.
    fn report(&self, why: String) {
        if self.observed.detached(&why) {
            log::warning(&why);
        }
    }

    /// Watches the folders above the cgroup: the next one will be made in one of them.
    fn watch(&self) {
        let Some(changes) = &self.changes else { return };
        let above = self.cgroup.path.ancestors().skip(1).take_while(|path| path.starts_with(&self.mount));
        for folder in above {
            // A missing folder is noticed when it is made.
            let _ = inotify::add_watch(changes, folder, WatchFlags::CREATE | WatchFlags::ONLYDIR);
        }
    }

    fn has_changed(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let Some(changes) = &self.changes else { return false };
        let mut reader = inotify::Reader::new(changes, &mut buffer);
        let name = self.cgroup.path.strip_prefix(&self.mount).unwrap_or(Path::new(""));
        let mut has_changed = false;
        // Folders of other services are made and removed in the same parent.
        while let Ok(event) = reader.next() {
            let new = event.file_name().map(|name| name.to_bytes()).unwrap_or_default();
            has_changed |= name.components().any(|part| part.as_os_str().as_encoded_bytes() == new);
        }
        if has_changed {
            self.watch();
        }
        has_changed
    }
}
