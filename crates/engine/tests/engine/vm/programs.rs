//! Flows of programs that run in guests.

use super::{bench, is_available, kernel};
use crate::common::events;
use crate::stage::{Outcome, experiment, has, not_tested, number, programs};
use parquet::record::Field;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn has_9p(kernel: &Path) -> bool {
    fs::read_dir(kernel.join("modules/fs/9p")).is_ok()
}

fn kernel_with_9p() -> Option<PathBuf> {
    let current = kernel().0.canonicalize().ok()?.parent()?.to_owned();
    let others = fs::read_dir(current.parent()?).into_iter().flatten().flatten().map(|entry| entry.path());
    [current.clone()].into_iter().chain(others).find(|kernel| has_9p(kernel))
}

fn of_flows(flows: Vec<Value>) -> Value {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(300_000_000_000_u64);
    experiment["flows"] = json!(flows);
    experiment
}

/// A guest with programs takes longer than others, so one guest covers all assertions.
#[test]
fn programs_run_in_the_guest_and_are_measured_and_reported() {
    if !is_available() {
        return;
    }
    let Some(kernel) = kernel_with_9p().filter(|_| has("python3") && has("curl")) else {
        not_tested("programs in guests", "no python3, no curl, or no kernel: thalweg kernel fetch linux-image-amd64");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), vec![0; 300_000]).unwrap();
    let place = folder.path().to_str().unwrap();
    let server = ["python3", "-u", "-m", "http.server", "{port}", "--directory", place];
    let web = programs("web", 4433, &server, &["curl", "-sS", "-o", "/dev/null", "http://{server}:{port}/file"]);
    // The client of such a flow is in the guest.
    let in_guest = |name: &str, port: u16, client: &[&str]| {
        let mut flow = programs(name, port, &["sleep", "1000"], client);
        flow["program"]["client_sends"] = json!(true);
        flow["program"]["ready"] = json!({"kind": "after", "after_ns": 0});
        flow["program"]["folder"] = json!(place);
        flow
    };
    let look = ["sh", "-c", "cat /proc/cmdline && echo own > {out}/own.txt && touch only-in-the-guest"];
    let crash = ["sh", "-c", "echo broken >&2; exit 3"];
    let flows = vec![
        web,
        in_guest("look", 4434, &look),
        in_guest("crash", 4435, &crash),
        in_guest("missing", 4436, &["/no/such/program"]),
    ];
    let bench = bench([of_flows(flows)]);
    let mut command = bench.run("run", &[]);
    command.env("THALWEG_VM_KERNEL", kernel.join("vmlinuz")).env("THALWEG_VM_MODULES", kernel.join("modules"));
    let output = command.output().unwrap();
    let outcome = Outcome::new(bench, &output);

    let row = &outcome.flow("web")[0];
    assert_eq!(row["completed"], Field::Bool(true), "{row:?}");
    let bytes = number(&row["acked_bytes"]);
    assert!((300_000.0..301_000.0).contains(&bytes), "the file and the header: {bytes}");
    // 300 kB takes 0.24 s at 10 Mbit/s, and slow start takes several round trips of 20 ms.
    let fct_s = number(&row["fct_us"]) / 1e6;
    assert!((0.24..300.0).contains(&fct_s), "{fct_s} s");
    let delays = ["delay_min_us", "delay_mean_us", "delay_p95_us"].map(|name| number(&row[name]) / 1e3);
    assert!(delays.is_sorted() && delays[0] >= 10.0 && delays[2] < 60.0, "of 10 ms and a queue of 30: {delays:?}");
    let id = fs::read_dir(outcome.bench.path("run/programs")).unwrap().next().unwrap().unwrap().path();
    let written = |name: &str| fs::read_to_string(id.join(name)).unwrap();
    assert!(written("web/server-0.stderr").contains("GET /file"), "the server's output is kept");
    assert!(written("look/client-0-0.stdout").contains("guest boot"), "it ran on the kernel of a guest");
    assert_eq!(written("look/client-0-0/own.txt"), "own\n");
    assert!(!folder.path().join("only-in-the-guest").exists(), "the machine's files are as they were");

    let reasons: Vec<&str> = outcome.events("untrustworthy").iter().map(|it| it["reason"].as_str().unwrap()).collect();
    let has_reason = |words: &[&str]| reasons.iter().any(|reason| words.iter().all(|word| reason.contains(word)));
    assert!(has_reason(&["client of the flow `crash`", "exited with status 3", "broken"]), "{reasons:?}");
    assert!(has_reason(&["client of the flow `missing`", "/no/such/program"]), "{reasons:?}");
    assert!(!reasons.iter().any(|reason| reason.contains("`look`") || reason.contains("`web`")), "{reasons:?}");
    let log = fs::read_to_string(outcome.bench.path("run/commands.log")).unwrap();
    assert!(log.contains("# in the guest of sender: mount -t 9p -o ro,"), "{log}");
}

#[test]
fn a_guest_kernel_without_9p_is_reported_with_the_command_that_fetches_one() {
    if !is_available() {
        return;
    }
    if kernel().0.canonicalize().unwrap().parent().is_some_and(has_9p) {
        not_tested("a kernel without 9p", "the kernel of guests has it: thalweg kernel fetch");
        return;
    }
    let bench = bench([of_flows(vec![programs("one", 4433, &["sleep", "1000"], &["true"])])]);
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let events = events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    let message = failed["message"].as_str().unwrap();
    for word in ["mounting tree (9p)", "CONFIG_NET_9P_VIRTIO", "thalweg kernel fetch linux-image-amd64"] {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}
