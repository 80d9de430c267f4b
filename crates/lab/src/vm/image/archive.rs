//! Archives in the format that a kernel unpacks as its initial file system: cpio, "newc".
//!
//! ```text
//!  header (110 bytes: "070701" and 13 numbers of 8 hexadecimal digits) │ name │ pad to 4 │ content │ pad to 4
//!  … the last one is named TRAILER!!!
//! ```
//!
//! Archives may be concatenated. Files belong to root and have no modification time.
//!
//! Source: Linux Documentation/driver-api/early-userspace/buffer-format.rst; cpio(5).

use std::collections::BTreeSet;

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    /// Adds a file. `path` has no leading slash; parent folders are added as needed.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.put(path, FILE, content);
    }

    /// Adds an executable file.
    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.put(path, PROGRAM, content);
    }

    /// Adds a folder.
    pub fn folder(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        if self.folders.insert(path.to_owned()) {
            self.entry(path, FOLDER, (0, 0), &[]);
        }
    }

    /// Adds a character device with these major and minor numbers.
    pub fn device(&mut self, path: &str, numbers: (u32, u32)) {
        self.folder_of(path);
        self.entry(path, CHARACTER_DEVICE, numbers, &[]);
    }

    /// Completes the archive and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn put(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.folder_of(path);
        self.entry(path, mode, (0, 0), content);
    }

    fn folder_of(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("less than 4 GiB");
        let name_size = name.len() as u32 + 1;
        // Fields: inode, mode, owner, group, links, time, size, device of the archive, device number, name size,
        // checksum.
        let numbers = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for number in numbers {
            self.bytes.extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        while !bytes.is_empty() {
            assert_eq!(&bytes[..6], b"070701");
            let number = |place: usize| {
                let digits = std::str::from_utf8(&bytes[6 + 8 * place..14 + 8 * place]).unwrap();
                u32::from_str_radix(digits, 16).unwrap() as usize
            };
            let (mode, size, name_size) = (number(1), number(6), number(11));
            let content_at = (110 + name_size).next_multiple_of(4);
            let name = String::from_utf8(bytes[110..110 + name_size - 1].to_vec()).unwrap();
            entries.push((name, mode as u32, bytes[content_at..content_at + size].to_vec()));
            bytes = &bytes[(content_at + size).next_multiple_of(4)..];
        }
        entries
    }

    #[test]
    fn directories_precede_their_contents_and_appear_once() {
        let mut archive = Archive::default();
        archive.program("bin/deep/ip", b"12345");
        archive.file("bin/deep/x", b"");
        archive.device("dev/console", (5, 1));
        let entries = entries(&archive.finish());
        let names: Vec<&str> = entries.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["bin", "bin/deep", "bin/deep/ip", "bin/deep/x", "dev", "dev/console", "TRAILER!!!"]);
        assert_eq!((entries[2].1, entries[2].2.as_slice()), (0o100_755, b"12345".as_slice()));
        assert_eq!((entries[0].1, entries[5].1), (0o040_755, 0o020_600));
    }
}
