//! The kernel that guests run: an image, and the folder of its modules.
//!
//! `THALWEG_VM_KERNEL` names an image, and `THALWEG_VM_MODULES` the folder with its modules. By default, the kernel
//! that `thalweg kernel fetch` or `thalweg kernel use` selected last is used.

use super::identity::Identity;
use super::modules::Modules;
use crate::cache;
use crate::error::Error;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

const IMAGE: &str = "THALWEG_VM_KERNEL";

/// Environment variable with the folder of the image's modules. Without it, what guests need must be built in.
const MODULES: &str = "THALWEG_VM_MODULES";

const FETCH: &str = "thalweg kernel fetch";

/// Number of hexadecimal digits of a checksum that identify a kernel.
const SHORT: usize = 12;

/// A kernel that a guest can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmKernel {
    /// Path of the image.
    pub image: PathBuf,
    /// Release in the image, such as `6.1.0-56-cloud-amd64`.
    pub release: String,
    pub(super) modules: Modules,
    /// Checksum over the image and the modules that affect results.
    pub(super) sha256: String,
}

/// Members of `kernel.json` in the folder of a fetched kernel.
#[derive(Debug, Deserialize)]
struct Description {
    format: u64,
    image: PathBuf,
    modules: PathBuf,
}

/// Supported format of `kernel.json`.
const FORMAT: u64 = 1;

impl VmKernel {
    /// Finds the kernel of this user.
    ///
    /// # Errors
    /// `no-kernel`: no kernel is selected. `bad-kernel`: see [`VmKernel::open`].
    pub fn find() -> Result<VmKernel, Error> {
        let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(image) = named(IMAGE) {
            return VmKernel::known(&image, named(MODULES).as_deref());
        }
        let folder = cache::folder().map(|cache| cache.join("vm/current"));
        match folder.filter(|folder| folder.join("kernel.json").exists()) {
            Some(folder) => VmKernel::fetched(&folder),
            None => Err(Error::new("no-kernel", "no kernel for guests is installed", FETCH)),
        }
    }

    fn fetched(folder: &Path) -> Result<VmKernel, Error> {
        let file = folder.join("kernel.json");
        let bad = |found: String| Error::new("bad-kernel", found, format!("fetch it again: {FETCH} --force"));
        let named = |error: &dyn std::fmt::Display| bad(format!("{}: {error}", file.display()));
        // Resolved, so that a later fetch does not change the kernel during an experiment.
        let folder = folder.canonicalize().map_err(|error| named(&error))?;
        let text = fs::read(&file).map_err(|error| named(&error))?;
        let Description { format, image, modules } = serde_json::from_slice(&text).map_err(|error| named(&error))?;
        if format != FORMAT {
            return Err(bad(format!("{} has the format {format}, expected {FORMAT}", file.display())));
        }
        VmKernel::known(&folder.join(image), Some(&folder.join(modules)))
    }

    /// Like [`VmKernel::open`], but uses cached results about these files.
    fn known(image: &Path, modules: Option<&Path>) -> Result<VmKernel, Error> {
        let kept = cache::folder().map(|cache| cache.join("vm/identities"));
        VmKernel::open_with(image, modules, kept.as_deref())
    }

    /// Opens an image, and the folder with its modules.
    ///
    /// # Errors
    /// `bad-kernel`: the file is not a kernel image, or the modules cannot be read.
    pub fn open(image: &Path, modules: Option<&Path>) -> Result<VmKernel, Error> {
        VmKernel::open_with(image, modules, None)
    }

    fn open_with(image: &Path, modules: Option<&Path>, kept: Option<&Path>) -> Result<VmKernel, Error> {
        let hint = "use an image for x86-64, such as arch/x86/boot/bzImage or /boot/vmlinuz: --kernel IMAGE";
        let bad = |found: String| Error::new("bad-kernel", format!("{}: {found}", image.display()), hint);
        let modules = modules.map_or_else(|| Ok(Modules::default()), Modules::find)?;
        let identity = Identity::of(image, &modules, kept).map_err(|error| bad(error.to_string()))?;
        let Identity { release, sha256 } = identity;
        let image = std::path::absolute(image).unwrap_or_else(|_| image.to_owned());
        Ok(VmKernel { image, release, modules, sha256 })
    }

    /// Returns an identifier of the kernel: its release, and the first digits of its checksum.
    pub fn version(&self) -> String {
        format!("{} {}", self.release, &self.sha256[..SHORT])
    }
}

#[cfg(test)]
mod tests {
    use super::super::identity::tests::image;
    use super::*;

    #[test]
    fn the_release_is_read_from_the_image_and_modules_are_part_of_the_version() {
        let folder = tempfile::tempdir().unwrap();
        let (file, modules) = (folder.path().join("bzImage"), folder.path().join("modules"));
        fs::write(&file, image("6.1.0-mine (me@here) #1")).unwrap();
        fs::create_dir(&modules).unwrap();
        fs::write(modules.join("tcp_bbr.ko"), "one").unwrap();
        let one = VmKernel::open(&file, Some(&modules)).unwrap();
        assert_eq!(one.release, "6.1.0-mine");
        assert!(one.version().starts_with("6.1.0-mine ") && one.version().len() == "6.1.0-mine ".len() + SHORT);
        fs::write(modules.join("tcp_bbr.ko"), "two").unwrap();
        assert_ne!(VmKernel::open(&file, Some(&modules)).unwrap().version(), one.version());
        fs::write(modules.join("snd_hda.ko"), "noise").unwrap();
        fs::write(modules.join("tcp_bbr.ko"), "one").unwrap();
        assert_eq!(VmKernel::open(&file, Some(&modules)).unwrap().version(), one.version());
    }

    #[test]
    fn a_file_that_is_not_a_kernel_image_is_rejected_with_the_expected_format() {
        let error = VmKernel::open(Path::new("/etc/passwd"), None).unwrap_err();
        assert_eq!(error.code, "bad-kernel");
        assert!(
            error.message.contains("/etc/passwd: it is not a Linux kernel image") && error.hint.contains("bzImage"),
            "{error}"
        );
        let error = VmKernel::open(Path::new("/no/such/image"), None).unwrap_err();
        assert!(error.message.contains("/no/such/image: No such file"), "{error}");
    }
}
