//! Flows of external programs: their measurements and their cleanup.

use crate::common::events;
use crate::stage::{Outcome, acked_bytes, bench, experiment, has, is_available, not_tested, number, programs, text};
use parquet::record::Field;
use serde_json::{Value, json};
use std::fs;

fn with(flows: Vec<Value>) -> Value {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(20_000_000_000_u64);
    experiment["flows"] = json!(flows);
    experiment
}

fn runs(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(text))
}

#[test]
fn a_download_over_http_is_measured_from_its_packets() {
    if !is_available() {
        return;
    }
    if !has("python3") || !has("curl") {
        not_tested("a download by programs", "python3 or curl is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), vec![0; 1_000_000]).unwrap();
    let place = folder.path().to_str().unwrap();
    let server = ["python3", "-u", "-m", "http.server", "{port}", "--directory", place];
    let mut web = programs("web", 4433, &server, &["curl", "-sS", "-o", "/dev/null", "http://{server}:{port}/file"]);
    web["repeat"] = json!({"kind": "gap", "gap_ns": 100_000_000, "until": null, "count": 2});
    let outcome = Outcome::of(with(vec![web]));
    let rows = outcome.flow("web");
    assert_eq!(rows.len(), 2, "two runs of the client");
    for row in &rows {
        assert_eq!((&row["completed"], &row["size_bytes"]), (&Field::Bool(true), &Field::Null), "{row:?}");
        let bytes = number(&row["acked_bytes"]);
        assert!((1e6..1.001e6).contains(&bytes), "the file and the header: {bytes}");
        // 1 MB takes 0.8 s at 10 Mbit/s, and slow start takes several round trips of 20 ms.
        let fct_s = number(&row["fct_us"]) / 1e6;
        assert!((0.8..3.0).contains(&fct_s), "{fct_s} s");
        assert!((number(&row["goodput_bps"]) * fct_s / 8.0 - bytes).abs() < 1.0, "{row:?}");
        let delays = ["delay_min_us", "delay_mean_us", "delay_p95_us"].map(|name| number(&row[name]) / 1e3);
        // A busy machine may delay some packets by more, but not all of them.
        assert!(delays.is_sorted() && delays[0] >= 10.0 && delays[1] < 60.0, "of 10 ms and a queue of 30: {delays:?}");
        assert!(number(&row["lost_packets"]) >= number(&row["retransmits"]) / 2.0, "{row:?}");
        assert_eq!(row["rtt_mean_us"], Field::Null, "packets do not show it");
    }
    let samples = outcome.rows("samples");
    assert!(samples.len() > 50 && samples.iter().all(|row| row["cwnd_packets"] == Field::Null));
    // If a busy machine delays packets, the next sample contains more of them.
    let mut rates: Vec<f64> = samples.iter().map(|row| number(&row["delivery_rate_bps"])).collect();
    rates.retain(|rate| *rate > 0.0);
    rates.sort_by(f64::total_cmp);
    let median = rates[rates.len() / 2];
    assert!((7e6..12e6).contains(&median), "the path's rate: {median}");
    let ids = fs::read_dir(outcome.bench.path("run").join("programs")).unwrap().flatten();
    let logs = ids.map(|id| fs::read_to_string(id.path().join("web/server-0.stderr")).unwrap());
    assert!(logs.collect::<String>().contains("GET /file"), "the server's output is kept");
}

#[test]
fn iperf3_copies_upload_with_the_congestion_control_of_the_flow() {
    if !is_available() {
        return;
    }
    if !has("iperf3") {
        not_tested("iperf3 as a program", "it is not installed");
        return;
    }
    let client = ["iperf3", "-c", "{server}", "-p", "{port}", "-n", "{size}", "-C", "{cc}"];
    let mut bulk = programs("bulk", 4433, &["iperf3", "-s", "-p", "{port}"], &client);
    bulk["cc"] = json!("reno");
    bulk["count"] = json!(2);
    bulk["load"] = json!({"kind": "sizes", "sizes_bytes": [500_000]});
    bulk["program"]["client_sends"] = json!(true);
    let outcome = Outcome::of(with(vec![bulk]));
    let rows = outcome.flow("bulk");
    assert_eq!(rows.iter().map(|row| number(&row["copy"])).collect::<Vec<_>>(), [0.0, 1.0]);
    for row in &rows {
        assert_eq!((&row["completed"], &row["cc"]), (&Field::Bool(true), &text("reno")), "{row:?}");
        // About 500 kB; iperf3 may end before all data has arrived. Its control connection is not counted.
        let bytes = number(&row["acked_bytes"]);
        assert!((100_000.0..650_000.0).contains(&bytes), "{bytes}");
    }
    assert!(acked_bytes(&rows) < 1.4e6);
}

#[test]
fn a_failed_program_is_reported_and_leaves_nothing_behind() {
    if !is_available() {
        return;
    }
    let ready = |mut flow: Value| {
        flow["program"]["ready"] = json!({"kind": "after", "after_ns": 100_000_000});
        flow
    };
    let mark = format!("987{}", std::process::id());
    let stubborn = format!("trap '' TERM; while :; do sleep {mark}; done");
    let daemon = format!("setsid sleep {mark} & sleep 1000");
    let mut half = ready(programs("half", 4436, &["sleep", "1000"], &["test", "{port}", "!=", "4436"]));
    half["count"] = json!(2);
    half["repeat"] = json!({"kind": "gap", "gap_ns": 20_000_000, "until": null, "count": 8});
    let flows = vec![
        half,
        ready(programs("stubborn", 4433, &["sh", "-c", &stubborn], &["true"])),
        ready(programs("crash", 4434, &["sh", "-c", &daemon], &["sh", "-c", "echo broken >&2; exit 3"])),
        ready(programs("flood", 4435, &["sleep", "1000"], &["head", "-c", "300000000", "/dev/zero"])),
    ];
    let outcome = Outcome::of(with(flows));
    let reasons: Vec<&str> = outcome.events("untrustworthy").iter().map(|it| it["reason"].as_str().unwrap()).collect();
    let has_reason = |words: &[&str]| reasons.iter().any(|reason| words.iter().all(|word| reason.contains(word)));
    assert!(has_reason(&["server of the flow `stubborn`", "ignored SIGTERM", "killed"]), "{reasons:?}");
    assert!(has_reason(&["client of the flow `crash`", "exited with status 3", "broken"]), "{reasons:?}");
    assert!(has_reason(&["client of the flow `flood`", "more than 256 MiB"]), "{reasons:?}");
    assert!(has_reason(&["client of the flow `half`", "failed 5 times in a row"]), "{reasons:?}");
    let clients_of = |copy: f64| outcome.flow("half").iter().filter(|row| number(&row["copy"]) == copy).count();
    assert_eq!([clients_of(0.0), clients_of(1.0)], [5, 8], "the other copy continues");
    assert_eq!(outcome.flow("crash")[0]["completed"], Field::Bool(false));
    assert_eq!(outcome.flow("stubborn")[0]["completed"], Field::Bool(true), "its client was fine");
    assert!(!runs(&format!("sleep {mark}")), "neither the daemon nor the stubborn server's child");
}

fn failure(server: &[&str]) -> (String, String) {
    let bench = bench([with(vec![programs("one", 4433, server, &["true"])])]);
    let output = bench.run("run", &[]).output().unwrap();
    let events = events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").expect("it fails");
    let part = |key: &str| failed[key].as_str().unwrap().to_owned();
    (part("code"), part("message"))
}

#[test]
fn a_server_that_fails_to_start_fails_the_experiment_with_the_reason() {
    if !is_available() {
        return;
    }
    let (code, message) = failure(&["sh", "-c", "echo no certificate >&2; exit 4"]);
    assert_eq!(code, "program-exited");
    assert!(message.contains("exited with status 4") && message.contains("no certificate"), "{message}");
    let mark = format!("986{}", std::process::id());
    let (code, message) = failure(&["sh", "-c", &format!("sleep {mark} &")]);
    assert_eq!(code, "program-in-background");
    assert!(message.contains("left 1 processes in the background"), "{message}");
    assert!(!runs(&format!("sleep {mark}")));
    let (code, message) = failure(&["/no/such/program"]);
    assert_eq!(code, "no-program");
    assert!(message.contains("/no/such/program"), "{message}");
}

/// Takes ten seconds, the timeout of the server, in which the machine is idle.
#[test]
fn a_server_that_never_listens_fails_the_experiment() {
    if is_available() {
        let (code, message) = failure(&["sh", "-c", "echo waiting; sleep 1000"]);
        assert_eq!(code, "program-not-ready");
        assert!(message.contains("no socket is bound to its port 4433") && message.contains("waiting"), "{message}");
    }
}
