//! Busy processes that share one processor.

use super::sys;
use super::threads::{running_ns, tie};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Co-tenants of a guest's processor. They exit when this is dropped or this process exits.
#[derive(Debug)]
pub(super) struct CoTenants {
    children: Vec<i32>,
    /// Write end of a pipe, whose closing makes the co-tenants exit.
    _here: OwnedFd,
}

impl CoTenants {
    pub(super) fn start(count: u32, processor: usize) -> io::Result<CoTenants> {
        let (theirs, here) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let mut tenants = CoTenants { children: Vec::new(), _here: here };
        for _ in 0..count {
            let child = sys::compute_in_child(theirs.as_fd())?;
            tenants.children.push(child);
            tie(child as u32, processor)?;
        }
        Ok(tenants)
    }

    /// Returns the total run time of the co-tenants in nanoseconds.
    pub(super) fn running_ns(&self) -> Option<u64> {
        running_ns(&self.children.iter().map(|child| *child as u32).collect::<Vec<_>>())
    }

    #[cfg(test)]
    pub(super) fn children(&self) -> &[i32] {
        &self.children
    }
}

impl Drop for CoTenants {
    fn drop(&mut self) {
        self.children.iter().for_each(|child| sys::end_child(*child));
    }
}
