//! Identifies a kernel: the release in its image, and a checksum over the image and the modules that affect results.
//!
//! Reading these files takes long. Therefore, the result is cached, keyed by the metadata of the files.

use super::modules::Modules;
use crate::cache;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

const FORMAT: &str = "1";

/// A file that changed more recently than this may change again without a new timestamp, because file system timestamps
/// have the resolution of a tick.
const SETTLED: Duration = Duration::from_secs(2);

/// Offset and value of the magic number in a kernel image for PCs.
const MAGIC_AT: usize = 0x202;
const MAGIC: &[u8] = b"HdrS";

/// Offset of the field with the release's offset relative to [`SETUP_AT`].
const RELEASE_AT: usize = 0x20e;
const SETUP_AT: usize = 0x200;

/// Release and checksum of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub release: String,
    pub sha256: String,
}

impl Identity {
    /// Identifies an image with these modules. Results are cached in `folder`, if given.
    ///
    /// # Errors
    /// If `image` is not a kernel image, or a file cannot be read.
    pub fn of(image: &Path, modules: &Modules, folder: Option<&Path>) -> io::Result<Identity> {
        let key = folder.map_or(Ok(None), |_| key(image, modules))?;
        let place = folder.zip(key).map(|(folder, key)| folder.join(format!("{key}.json")));
        let kept = place.as_ref().and_then(|place| serde_json::from_slice(&fs::read(place).ok()?).ok());
        if let Some(identity) = kept {
            return Ok(identity);
        }
        let bytes = fs::read(image)?;
        let release =
            release(&bytes).ok_or_else(|| io::Error::other("it is not a Linux kernel image for x86 (bzImage)"))?;
        let sha256 = checksum(&bytes, modules).map_err(|error| io::Error::other(format!("its modules: {error}")))?;
        let identity = Identity { release, sha256 };
        if let (Some(folder), Some(place)) = (folder, place) {
            let _ = serde_json::to_vec(&identity).map_err(io::Error::from).and_then(|it| cache::keep(&place, &it));
            cache::forget(folder);
        }
        Ok(identity)
    }
}

/// Returns the metadata of the files as a cache key; `None` if one of them has changed less than [`SETTLED`] ago.
fn key(image: &Path, modules: &Modules) -> io::Result<Option<String>> {
    let mut hasher = Sha256::new();
    hasher.update(FORMAT);
    for file in std::iter::once(image).chain(modules.decisive().map(|(_, file)| file)) {
        let about = fs::metadata(file)?;
        let changed = SystemTime::UNIX_EPOCH
            + Duration::new(about.ctime().try_into().unwrap_or(0), about.ctime_nsec().try_into().unwrap_or(0));
        if !changed.elapsed().is_ok_and(|ago| ago >= SETTLED) {
            return Ok(None);
        }
        let (size, device, inode) = (about.len(), about.dev(), about.ino());
        let (time, part) = (about.ctime(), about.ctime_nsec());
        hasher.update(format!("{} {size} {device} {inode} {time} {part}\n", file.display()));
    }
    Ok(Some(cache::hexadecimal(hasher)[..32].to_owned()))
}

fn checksum(image: &[u8], modules: &Modules) -> io::Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(image);
    for (name, file) in modules.decisive() {
        hasher.update(name);
        hasher.update(fs::read(file)?);
    }
    Ok(cache::hexadecimal(hasher))
}

/// Returns the release in a kernel image for PCs.
pub(super) fn release(image: &[u8]) -> Option<String> {
    if image.get(MAGIC_AT..MAGIC_AT + MAGIC.len())? != MAGIC {
        return None;
    }
    let at = SETUP_AT + usize::from(u16::from_le_bytes(*image.get(RELEASE_AT..)?.first_chunk()?));
    // The release is followed by the builder's name and the time.
    let text = image.get(at..)?.split(|byte| matches!(byte, 0 | b' ')).next()?;
    Some(String::from_utf8_lossy(text).into_owned()).filter(|release| !release.is_empty())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs::FileTimes;

    pub(crate) fn image(release: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x300];
        bytes[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(MAGIC);
        bytes[RELEASE_AT..RELEASE_AT + 2].copy_from_slice(&0x80u16.to_le_bytes());
        bytes[0x280..0x280 + release.len()].copy_from_slice(release.as_bytes());
        bytes
    }

    #[test]
    fn a_recently_modified_file_is_hashed_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let (file, kept) = (folder.path().join("bzImage"), folder.path().join("kept"));
        let read = || Identity::of(&file, &Modules::default(), Some(&kept)).unwrap();
        fs::write(&file, image("6.1.0")).unwrap();
        assert_eq!(read().release, "6.1.0");
        // The size stays the same, and the timestamp may stay the same within a tick.
        fs::write(&file, image("6.1.1")).unwrap();
        let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        fs::File::options().write(true).open(&file).unwrap().set_times(old).unwrap();
        assert_eq!(read().release, "6.1.1");
        assert!(!kept.exists(), "nothing is kept of it yet");
    }

    #[test]
    fn a_cached_identity_is_used_only_for_the_same_files() {
        let folder = tempfile::tempdir().unwrap();
        let image = Path::new("/proc/self/exe");
        let key = key(image, &Modules::default()).unwrap();
        let Some(key) = key else { return };
        let identity = Identity { release: "kept".to_owned(), sha256: "0".repeat(64) };
        fs::write(folder.path().join(format!("{key}.json")), serde_json::to_vec(&identity).unwrap()).unwrap();
        let answer = |image: &Path| Identity::of(image, &Modules::default(), Some(folder.path()));
        assert_eq!(answer(image).unwrap(), identity);
        assert!(answer(Path::new("/bin/sh")).is_err(), "that is not an image");
    }
}
