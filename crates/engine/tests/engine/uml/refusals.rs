//! Unusable kernels and unsupported experiments are rejected with the reason.

use super::{bench, is_available};
use crate::common::{ENGINE, events};
use crate::stage::{experiment, flow};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

fn why_not(folder: &std::path::Path) -> String {
    let mut command = Command::new(ENGINE);
    let output = command.args(["capabilities", "--json"]).env("THALWEG_UML_KERNEL", folder).output().unwrap();
    let capabilities: Value = serde_json::from_slice(&output.stdout).unwrap();
    let uml = &capabilities["engines"][2];
    assert_eq!((&uml["name"], &uml["available"], &uml["cc"]), (&json!("uml"), &json!(false), &json!([])));
    uml["why_not"].as_str().unwrap().to_owned()
}

#[test]
fn without_a_kernel_the_error_names_the_build_command() {
    let empty = tempfile::tempdir().unwrap();
    let bench = bench([experiment()]);
    let mut command = bench.run("run", &[]);
    command.env("THALWEG_UML_KERNEL", "").env("XDG_CACHE_HOME", empty.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = &events(&output)[0];
    assert_eq!(error["code"], "engine-unavailable");
    assert_eq!(error["found"], "no user-mode Linux kernel has been built: thalweg kernel build");
}

#[test]
fn a_modified_kernel_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("was-started");
    fs::write(folder.path().join("linux"), format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
    let description = json!({"format": 1, "release": "6.1.0", "linux_sha256": "0".repeat(64)});
    fs::write(folder.path().join("kernel.json"), description.to_string()).unwrap();
    let why = why_not(folder.path());
    assert!(why.contains("its SHA-256 is") && why.contains("thalweg kernel build"), "{why}");
    assert!(!marker.exists());
}

#[test]
fn a_kernel_that_does_not_boot_is_reported_with_its_last_output() {
    use sha2::Digest as _;
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let program = "#!/bin/sh\necho 'Kernel panic - not syncing: no root'\nexit 3\n";
    fs::write(folder.path().join("linux"), program).unwrap();
    fs::set_permissions(folder.path().join("linux"), fs::Permissions::from_mode(0o755)).unwrap();
    let sha256: String = sha2::Sha256::digest(program).iter().map(|byte| format!("{byte:02x}")).collect();
    let description = json!({"format": 1, "release": "6.1.0", "linux_sha256": sha256});
    fs::write(folder.path().join("kernel.json"), description.to_string()).unwrap();
    let why = why_not(folder.path());
    assert!(why.contains("exit status: 3") && why.contains("Kernel panic - not syncing: no root"), "{why}");
}

#[test]
fn the_relay_is_rejected_because_it_needs_a_real_time_clock() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["engine"]["link"] = json!("relay");
    let bench = bench([experiment]);
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let events = events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    assert_eq!(failed["code"], "not-in-virtual-time");
    assert!(failed["message"].as_str().unwrap().contains("--engine kernel"), "{failed}");
}

#[test]
fn a_qdisc_missing_in_the_kernel_is_rejected_with_how_to_enable_it() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["forward"]["queue"] = json!({
        "kind": "dualpi2", "target_ns": 15_000_000, "tupdate_ns": 16_000_000, "alpha": 0.16, "beta": 3.2,
        "step_thresh_ns": 1_000_000, "coupling_factor": 2, "classic_protection": 10,
    });
    let bench = bench([experiment]);
    let output = bench.run("run", &[]).output().unwrap();
    let events = events(&output);
    let Some(failed) = events.iter().find(|event| event["event"] == "failed") else {
        // The user's own kernel supports it from Linux 6.17 on.
        assert_eq!(output.status.code(), Some(0), "{events:?}");
        return;
    };
    assert_eq!(failed["code"], "no-qdisc");
    assert!(failed["message"].as_str().unwrap().contains("`dualpi2`"), "{failed}");
    assert!(failed["hint"].as_str().is_none_or(|hint| hint.contains("Linux 6.17")), "{failed}");
}

#[test]
fn flows_of_a_host_that_differ_in_ecn_are_rejected_with_the_key_of_the_host() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["flows"] = json!([flow("with", "cubic"), flow("without", "cubic")]);
    experiment["flows"][0]["ecn"] = json!(true);
    let bench = bench([experiment]);
    let output = bench.run("run", &[]).output().unwrap();
    let events = events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    assert_eq!(failed["code"], "not-honoured");
    assert!(failed["message"].as_str().unwrap().contains("host.sender"), "{failed}");
}
