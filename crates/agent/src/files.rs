//! Opens files that the agent reads as root: regular files of bounded size, not behind a symbolic link of another user.

use rustix::fs::{Mode, OFlags, open};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Size limit of most files, in bytes.
pub const SMALL: u64 = 16 << 20;

/// Size limit of files that can be large, such as network tables, in bytes.
pub const LARGE: u64 = 1 << 30;

/// Flag of open(2) for files that the agent writes, because another user may have created a symbolic link.
pub const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits() as i32;

/// Opens a regular file of at most `limit` bytes for reading.
///
/// # Errors
/// If the file cannot be opened, is not a regular file, is larger, or is behind another user's symbolic link.
pub fn open_regular(path: &Path, limit: u64) -> io::Result<File> {
    let is_link = check_links(path)?;
    // Without NONBLOCK, opening a FIFO blocks. A link created after the check is not followed.
    let follow = if is_link { OFlags::empty() } else { OFlags::NOFOLLOW };
    let file = File::from(open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | follow, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.len() > limit {
        return Err(io::Error::other(format!("{} bytes; the limit is {limit}", metadata.len())));
    }
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// If [`open_regular`] fails, or the file cannot be read.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path, limit)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("more than {limit} bytes")));
    }
    Ok(bytes)
}

/// Reads a UTF-8 text file of at most `limit` bytes.
///
/// # Errors
/// If [`read`] fails, or the file is not UTF-8 ([`io::ErrorKind::InvalidData`]).
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let wrong = |error: std::string::FromUtf8Error| {
        let found = format!("invalid UTF-8 at byte offset {}", error.utf8_error().valid_up_to());
        io::Error::new(io::ErrorKind::InvalidData, found)
    };
    String::from_utf8(read(path, limit)?).map_err(wrong)
}

/// Returns whether a path itself is a symbolic link. Links in the target of a link are not checked.
///
/// # Errors
/// If a link in the path belongs to a user other than root and this one, or the path cannot be read.
pub fn check_links(path: &Path) -> io::Result<bool> {
    let own = rustix::process::geteuid().as_raw();
    let mut is_link = false;
    let mut reached = PathBuf::new();
    for part in path.components() {
        reached.push(part);
        let metadata = fs::symlink_metadata(&reached)?;
        is_link = metadata.is_symlink();
        if is_link && ![0, own].contains(&metadata.uid()) {
            let link = reached.display();
            return Err(io::Error::other(format!("{link} is a symbolic link owned by user {}", metadata.uid())));
        }
    }
    Ok(is_link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "12345").unwrap();
        assert_eq!(read(&path("file"), 5).unwrap(), b"12345");
        assert!(read(&path("file"), 4).unwrap_err().to_string().contains("5 bytes; the limit is 4"));
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), Mode::RUSR).unwrap();
        for other in [path("fifo"), folder.path().to_owned(), "/dev/zero".into()] {
            assert_eq!(read(&other, SMALL).unwrap_err().to_string(), "not a regular file", "{other:?}");
        }
        // The reported size of this file is 0, but its content exceeds the limit.
        assert!(read(Path::new("/proc/self/status"), 10).unwrap_err().to_string().contains("more than 10 bytes"));
        fs::write(path("bytes"), b"ab\xff").unwrap();
        assert_eq!(read_text(&path("bytes"), SMALL).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(&path("none"), SMALL).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn symlinks_of_other_users_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("real")).unwrap();
        fs::write(path("real/file"), "1").unwrap();
        symlink(path("real/file"), path("link")).unwrap();
        symlink(path("real"), path("folder")).unwrap();
        assert_eq!(read(&path("link"), SMALL).unwrap(), b"1");
        if !rustix::process::geteuid().is_root() {
            return;
        }
        for link in ["link", "folder"] {
            lchown(path(link), Some(65534), None).unwrap();
        }
        for behind in ["link", "folder/file"] {
            assert!(read(&path(behind), SMALL).unwrap_err().to_string().contains("user 65534"), "{behind}");
        }
    }
}
