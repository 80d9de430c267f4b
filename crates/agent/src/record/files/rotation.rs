//! Selects the files that are due to be merged.

use super::folder::{Listed, Name};
use std::collections::BTreeSet;
use std::time::Duration;

/// Conditions under which flushed files are merged.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Time span of a merged file.
    pub rotate: Duration,
    /// Size at which a group is merged before `rotate` has passed.
    pub rotate_bytes: u64,
}

impl Rule {
    /// Returns the groups of files that are due to be merged. `files` are sorted by number; `aside` are files that
    /// cannot be merged.
    ///
    /// A group consists of consecutive files of single flushes, because the numbers of the merged file must not span a
    /// file that is not part of it. A group is due when no later flush can belong to it.
    pub fn due(&self, files: &[Listed], aside: &BTreeSet<Name>, now_s: u64) -> Vec<Vec<Name>> {
        let (mut due, mut group) = (Vec::new(), Group::default());
        for file in files {
            if file.name.is_merged() || aside.contains(&file.name) {
                group.end(&mut due);
                continue;
            }
            if group.begun_s().is_some_and(|begun_s| self.is_over(begun_s, file.name.at_s)) {
                group.end(&mut due);
            }
            group.names.push(file.name);
            group.bytes += file.bytes;
            if group.bytes >= self.rotate_bytes {
                group.end(&mut due);
            }
        }
        if group.begun_s().is_some_and(|begun_s| self.is_over(begun_s, now_s)) {
            group.end(&mut due);
        }
        due
    }

    /// Returns whether at least `rotate` lies between two times. A clock that was set back counts as one that advanced:
    /// otherwise nothing would be merged until the clock reached its earlier value.
    fn is_over(&self, from_s: u64, to_s: u64) -> bool {
        from_s.abs_diff(to_s) >= self.rotate.as_secs()
    }
}

#[derive(Debug, Default)]
struct Group {
    names: Vec<Name>,
    bytes: u64,
}

impl Group {
    fn begun_s(&self) -> Option<u64> {
        self.names.first().map(|name| name.at_s)
    }

    /// Completes the group; a single file needs no merge.
    fn end(&mut self, due: &mut Vec<Vec<Name>>) {
        let Group { names, .. } = std::mem::take(self);
        if names.len() > 1 {
            due.push(names);
        }
    }
}
