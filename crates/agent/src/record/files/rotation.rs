//! Selects the files that are due to be merged.

use super::folder::{Listed, Name};
use std::collections::BTreeSet;
use std::time::Duration;

/// Conditions under which flushed files are merged.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Time span of a merged file.
    pub rotate: Duration,
    /// Size at which a group is merged regardless of time.
    pub rotate_bytes: u64,
}

impl Rule {
    /// Groups of files, each of which is to be merged into one file. `files` are sorted by number; `aside` are those
    /// that cannot be merged.
    ///
    /// A group is files of single flushes, one after the other without anything else in between: numbers of the merged
    /// file must not span a file that is not in it. It begins with the first file that is in none, ends with the last
    /// one less than `rotate` after that, or when it has `rotate_bytes`, and is due when no flush to come can be in it.
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

    /// Whether `rotate` lies between two moments. A clock that was set back counts as one that advanced: otherwise
    /// nothing would be merged until it reached its earlier value.
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

    /// The group is complete: it is due, unless it is a single file, which needs no merge.
    fn end(&mut self, due: &mut Vec<Vec<Name>>) {
        let Group { names, .. } = std::mem::take(self);
        if names.len() > 1 {
            due.push(names);
        }
    }
}
