//! The key of hashed addresses, in a file that only its owner may access.

use crate::files;
use hmac::{Hmac, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::Sha256;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use thalweg_store::Problem;

/// Default path of the key: outside of the records folder, so that copying the records does not copy the key.
pub const DEFAULT_KEY: &str = "/var/lib/thalweg/address.key";

/// Length of a generated key in bytes: the length of the hash (RFC 2104, section 3).
const MADE_BYTES: usize = 32;

/// Minimum length of a key in bytes, against brute force.
const MIN_BYTES: usize = 16;

const MAX_FILE_BYTES: u64 = 4096;

/// A key for hashing addresses.
#[derive(Clone)]
pub struct Key {
    /// HMAC state after the key was absorbed.
    begun: Hmac<Sha256>,
}

impl Key {
    /// Reads the key from a file. If the file does not exist, it is created with a new key.
    ///
    /// # Errors
    /// If the file cannot be read or created, contains no key, or is not protected from other users.
    pub fn open(path: &Path) -> Result<Key, Problem> {
        let failed = |error: io::Error| {
            let hint = "choose another file with --key, or use --addresses truncated, which needs no key";
            Problem::failed("key", &path.display().to_string(), error, "a key file that can be read or created", hint)
        };
        let open = || files::open_regular(path, MAX_FILE_BYTES);
        let file = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make(path).map_err(failed)?;
                open().map_err(failed)?
            }
            opened => opened.map_err(failed)?,
        };
        let metadata = file.metadata().map_err(failed)?;
        if ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid()) {
            let found = format!("a file that belongs to user {}", metadata.uid());
            let hint =
                format!("to have a new key created: rm '{}'; addresses then hash to different numbers", path.display());
            return Err(Problem::refused(
                "key",
                &path.display().to_string(),
                found,
                "a file owned by root or by this user",
                &hint,
            ));
        }
        let mode = metadata.permissions().mode();
        if mode & 0o077 != 0 {
            let found = format!("permissions for users other than the owner (mode {:04o})", mode & 0o7777);
            let place = path.display();
            let hint =
                format!("chmod 600 '{place}'; if others may have read the key, have a new one created: rm '{place}'");
            return Err(Problem::refused("key", &path.display().to_string(), found, "mode 0600", &hint));
        }
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(failed)?;
        let text = String::from_utf8_lossy(&text);
        let bytes = bytes(text.trim()).filter(|bytes| bytes.len() >= MIN_BYTES).ok_or_else(|| {
            let expected = format!("at least {} hexadecimal digits", 2 * MIN_BYTES);
            let hint =
                format!("to have a new key created: rm '{}'; addresses then hash to different numbers", path.display());
            Problem::refused("key", &path.display().to_string(), "no key", &expected, &hint)
        })?;
        Ok(Key::of(&bytes))
    }

    /// Returns the key that consists of these bytes.
    pub fn of(bytes: &[u8]) -> Key {
        Key { begun: Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length") }
    }

    /// Returns the first 64 bits of the hash of `message`.
    pub fn hash(&self, message: &[u8]) -> u64 {
        let hash = self.begun.clone().chain_update(message).finalize().into_bytes();
        hash[..8].iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
    }
}

/// Keys are equal if they hash a fixed message alike.
impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.hash(b"thalweg") == other.hash(b"thalweg")
    }
}

/// Keeps the key out of logs.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(..)")
    }
}

/// Creates a key file atomically; if another process has created it first, that file stays.
fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(super::settings::FOLDER_MODE).create(folder)?;
    let mut key = [0; MADE_BYTES];
    getrandom(&mut key, GetRandomFlags::empty())?;
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let unfinished = folder.join(format!(".key-{}", std::process::id()));
    let _ = fs::remove_file(&unfinished);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    let written = writeln!(file, "{digits}").and_then(|()| file.sync_all()).and_then(|()| {
        match fs::hard_link(&unfinished, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    });
    let removed = fs::remove_file(&unfinished);
    written.and(removed).and_then(|()| File::open(folder)?.sync_all())
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let is_whole = digits.len() % 2 == 0 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let pairs = (0..digits.len()).step_by(2);
    is_whole.then(|| pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits")).collect())
}
