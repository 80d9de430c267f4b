//! What the engine cannot do is said, with what to type instead.

use crate::common::ENGINE;
use crate::stage::experiment;
use crate::{bench, capabilities, is_available, kernel};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the engine says where this is the image, and these its modules.
fn why_not(image: &Path, modules: Option<&Path>) -> String {
    // What is made of such kernels is nobody's to keep.
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new(ENGINE);
    command.env("XDG_CACHE_HOME", cache.path());
    command.env("THALWEG_VM_KERNEL", image).env_remove("THALWEG_VM_MODULES");
    if let Some(modules) = modules {
        command.env("THALWEG_VM_MODULES", modules);
    }
    let vm = capabilities(&mut command);
    assert_eq!((&vm["available"], &vm["cc"]), (&json!(false), &json!([])));
    let kept = |folder: &str| fs::read_dir(cache.path().join("thalweg/vm").join(folder)).map_or(0, Iterator::count);
    assert_eq!((kept("initramfs"), kept("traits")), (0, 0), "nothing is left of a kernel that cannot be a guest");
    vm["why_not"].as_str().unwrap().to_owned()
}

#[test]
fn without_a_kernel_it_says_which_command_fetches_one() {
    if !is_available() {
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    let mut command = Command::new(ENGINE);
    command.env("XDG_CACHE_HOME", empty.path()).env_remove("THALWEG_VM_KERNEL");
    assert_eq!(capabilities(&mut command)["why_not"], "there is no kernel for guests: thalweg kernel fetch");
}

#[test]
fn what_is_no_kernel_is_not_booted() {
    if !is_available() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("bzImage");
    fs::write(&image, "no kernel").unwrap();
    let why = why_not(&image, None);
    assert!(why.contains("bzImage: it is no image") && why.contains("--kernel IMAGE"), "{why}");
    let why = why_not(&kernel().0, Some(folder.path()));
    assert!(why.contains("has no kernel modules") && why.contains("--modules DIR"), "{why}");
}

#[test]
fn a_kernel_without_virtio_is_told_with_what_it_lacks() {
    if !is_available() {
        return;
    }
    // A distribution's kernel has virtio in modules, and here it gets none.
    let why = why_not(&kernel().0, None);
    assert!(why.contains("CONFIG_VIRTIO_CONSOLE"), "{why}");
    assert!(why.contains("its last lines: ") && why.contains("no virtio-serial port"), "{why}");
}

#[test]
fn an_algorithm_that_the_guests_kernel_lacks_is_refused_before_a_guest_boots() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["flows"][0]["cc"] = json!("nosuchcc");
    let bench = bench([experiment]);
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let events = crate::common::events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    assert_eq!(failed["code"], "unknown-cc");
    assert!(failed["message"].as_str().unwrap().contains("the guests' kernel has no `nosuchcc`"), "{failed}");
    let log = fs::read_to_string(bench.path("run/commands.log")).unwrap_or_default();
    assert!(!log.contains("qemu"), "{log}");
}
