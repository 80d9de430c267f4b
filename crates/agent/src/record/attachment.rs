//! Attaches the program to the recorded cgroup. Attaches it again if the cgroup is recreated, for example by a service
//! restart, or if another process has detached it.
//!
//! The parent folders of the cgroup are watched, so that the program is attached soon after the cgroup is recreated.

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

/// Interval of checks without a notification.
const CHECK: Duration = Duration::from_millis(200);

/// The program, and the cgroup to which it is attached.
pub struct Attachment<'a> {
    kernel: &'a LoadedPrograms,
    observed: &'a Observed,
    mount: PathBuf,
    paths: Paths,
    cgroup: Recorded,
    /// `None` while the program is not attached.
    link: Option<Link>,
    /// Notifications of new folders around the cgroup; `None` if the limit of inotify instances is reached.
    changes: Option<OwnedFd>,
    checked: Instant,
}

impl<'a> Attachment<'a> {
    /// Attaches the program to the connections of a cgroup below `mount`.
    ///
    /// # Errors
    /// If the kernel refuses, or the extension reports an error.
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

    /// Returns a descriptor that becomes readable when a folder is created in a folder above the cgroup.
    pub fn changes(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().map(AsFd::as_fd)
    }

    /// Attaches the program again if necessary, and returns whether it did.
    pub fn check(&mut self, extension: &mut dyn Extension) -> bool {
        if !self.has_changed() && self.checked.elapsed() < CHECK {
            return false;
        }
        self.checked = Instant::now();
        match self.cgroup.state(&self.mount) {
            CgroupState::Same if self.is_attached() => {
                if !extension.holds() {
                    log::warning("the watchdog process had exited; a new one was started");
                    if let Err(problem) = self.hand_over(extension) {
                        log::error(&problem.to_string());
                    }
                }
                false
            }
            CgroupState::Same => self.attach_again(None, "another process detached the program", extension),
            CgroupState::Replaced(other) => {
                self.attach_again(Some(other), "it was removed and created again", extension)
            }
            CgroupState::Removed(why) => {
                let place = self.cgroup.path.display();
                self.report(format!("cgroup {place} was removed ({why}); recording resumes when it is created again"));
                self.let_go(extension);
                self.watch();
                false
            }
        }
    }

    fn attach_again(&mut self, other: Option<Recorded>, what: &str, extension: &mut dyn Extension) -> bool {
        // Otherwise, `check_alone` would mistake the old link for another recorder.
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
            self.report(format!("cgroup {place}: {what}, and its connections cannot be recorded: {}", problem.found));
            return false;
        }
        self.kernel.scanner.set_cgroup(self.cgroup.number);
        self.observed.attached_again();
        log::warning(&format!(
            "cgroup {place}: {what}; its connections are recorded again, except those that opened and closed in between"
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

    /// Returns whether the program is attached; otherwise, the link has no cgroup.
    fn is_attached(&self) -> bool {
        let info = self.link.as_ref().and_then(|link| link.info().ok()).map(|info| info.info);
        match info {
            Some(LinkTypeInfo::Cgroup(info)) => info.cgroup_id == self.cgroup.number,
            // If the query fails or returns another type, the link counts as attached.
            Some(_) => true,
            None => self.link.is_some(),
        }
    }

    /// Logs the reason why the program is not attached, unless the reason is unchanged.
    fn report(&self, why: String) {
        if self.observed.detached(&why) {
            log::warning(&why);
        }
    }

    /// Watches the folders above the cgroup.
    fn watch(&self) {
        let Some(changes) = &self.changes else { return };
        let above = self.cgroup.path.ancestors().skip(1).take_while(|path| path.starts_with(&self.mount));
        for folder in above {
            // A missing folder is detected when it is created.
            let _ = inotify::add_watch(changes, folder, WatchFlags::CREATE | WatchFlags::ONLYDIR);
        }
    }

    fn has_changed(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let Some(changes) = &self.changes else { return false };
        let mut reader = inotify::Reader::new(changes, &mut buffer);
        let name = self.cgroup.path.strip_prefix(&self.mount).unwrap_or(Path::new(""));
        let mut has_changed = false;
        // Folders of other cgroups are created there, too.
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
