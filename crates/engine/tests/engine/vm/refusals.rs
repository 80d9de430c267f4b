//! Unusable kernels and unsupported experiments are rejected with the reason.

use super::{bench, capabilities, is_available, kernel};
use crate::common::ENGINE;
use crate::stage::{experiment, flow, not_tested};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

fn why_not(image: &Path, modules: Option<&Path>) -> String {
    // A temporary cache, to check that nothing stays in it.
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
fn without_a_kernel_the_error_names_the_download_command() {
    if !is_available() {
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    let mut command = Command::new(ENGINE);
    command.env("XDG_CACHE_HOME", empty.path()).env_remove("THALWEG_VM_KERNEL");
    assert_eq!(capabilities(&mut command)["why_not"], "no kernel for guests is installed: thalweg kernel fetch");
}

#[test]
fn a_file_that_is_not_a_kernel_is_not_booted() {
    if !is_available() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("bzImage");
    fs::write(&image, "no kernel").unwrap();
    let why = why_not(&image, None);
    assert!(why.contains("bzImage: it is not a Linux kernel image") && why.contains("--kernel IMAGE"), "{why}");
    let why = why_not(&kernel().0, Some(folder.path()));
    assert!(why.contains("has no kernel modules") && why.contains("--modules DIR"), "{why}");
}

#[test]
fn a_kernel_without_virtio_is_reported_with_the_missing_drivers() {
    if !is_available() {
        return;
    }
    // The kernel's virtio drivers are modules, which are missing here.
    let why = why_not(&kernel().0, None);
    assert!(why.contains("CONFIG_VIRTIO_CONSOLE"), "{why}");
    assert!(why.contains("its last lines: ") && why.contains("no virtio-serial port"), "{why}");
}

#[test]
fn an_algorithm_missing_in_the_guest_kernel_is_rejected_before_a_guest_boots() {
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
    assert!(failed["message"].as_str().unwrap().contains("the guests' kernel does not have `nosuchcc`"), "{failed}");
    let log = fs::read_to_string(bench.path("run/commands.log")).unwrap_or_default();
    assert!(!log.contains("qemu"), "{log}");
}

#[test]
fn a_qdisc_missing_in_the_guest_kernel_is_reported_with_the_available_ones() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["hosts"]["sender"]["qdisc"] = json!("nosuch");
    let bench = bench([experiment]);
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let events = crate::common::events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    assert_eq!(failed["code"], "no-qdisc");
    let message = failed["message"].as_str().unwrap();
    for word in ["host.sender.qdisc", "`nosuch`", "unknown", "cake", "--kernel IMAGE --modules DIR"] {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    assert!(fs::read_dir(bench.path("run/flows")).unwrap().next().is_none(), "nothing is left of it");
}

/// Creates links in the folder `to` to all modules below `from`, except those whose names start with `beginning`.
fn link_all_but(beginning: &str, from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            link_all_but(beginning, &entry.path(), to);
        } else if name.contains(".ko") && !name.starts_with(beginning) {
            symlink(entry.path(), to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_kernel_without_bbr_cannot_load_bbr_cpu_and_the_error_says_why() {
    if !is_available() {
        return;
    }
    let vm = capabilities(&mut Command::new(ENGINE));
    if !vm["cc"].as_array().unwrap().iter().any(|cc| cc["name"] == "bbr_cpu") {
        not_tested("bbr_cpu in guests", "thalweg-agent is not beside thalweg-engine, nor on the PATH");
        return;
    }
    let (modules, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    link_all_but("tcp_bbr", &kernel().1.canonicalize().unwrap(), modules.path());
    let mut experiment = experiment();
    experiment["flows"] = json!([flow("large", "bbr_cpu")]);
    let bench = bench([experiment]);
    let mut command = bench.run("run", &[]);
    command.env("THALWEG_VM_KERNEL", kernel().0.canonicalize().unwrap()).env("THALWEG_VM_MODULES", modules.path());
    let output = command.env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let events = crate::common::events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    assert_eq!(failed["code"], "unknown-cc");
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.contains("guests cannot have `bbr_cpu`") && message.contains("the module tcp_bbr cannot be loaded"),
        "{message}"
    );
    assert!(message.contains("CONFIG_TCP_CONG_BBR") && message.contains("thalweg kernel fetch"), "{message}");
}
