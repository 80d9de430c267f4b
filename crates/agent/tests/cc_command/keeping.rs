//! Lifetime of a registration.

use crate::common::{Namespace, assert_refused, wait_until};
use crate::stage::Stage;
use rustix::process::Signal;
use serde_json::json;

#[test]
fn a_kept_registration_outlives_its_loader_until_it_is_unloaded() {
    let Some(stage) = Stage::new() else { return };
    let done = stage.agent(&["cc", "load", "bbr_cpu", "--rule", "paper", "--keep"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("until `thalweg-agent cc unload`"), "{}", done.out);
    let registered = stage.registered("bbr_cpu").expect("it stays");
    assert_eq!((&registered["state"], &registered["rule"]), (&"kept".into(), &"paper".into()));
    let listed = stage.listed("bbr_cpu").expect("connections can use it");
    assert_eq!((&listed["is_ebpf"], &listed["is_allowed"]), (&true.into(), &true.into()));

    let done = stage.agent(&["cc", "unload", "bbr_cpu"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "bbr_cpu: unregistered\n"));
    assert_eq!((stage.registered("bbr_cpu"), stage.listed("bbr_cpu")), (None, None));
}

#[test]
fn leftovers_of_an_earlier_loader_are_replaced() {
    let Some(stage) = Stage::new() else { return };
    assert_eq!(stage.agent(&["cc", "load", "bbr_cpu", "--keep"]).code, Some(0));
    let loader = stage.load("bbr_cpu");
    assert_eq!(loader.said, "bbr_cpu: removed the registration that an earlier `cc load` had left\n");
    wait_until("the new one is registered", || {
        stage.registered("bbr_cpu").is_some_and(|registered| registered["held_by"][0] == loader.pid())
    });
    assert_eq!(loader.end(Signal::INT).0, Some(0));
    assert_eq!(stage.registered("bbr_cpu"), None);
}

#[test]
fn a_second_loader_is_rejected_and_the_first_stays() {
    let Some(stage) = Stage::new() else { return };
    let loader = stage.load("bbr_cpu");
    for keep in [&["cc", "load", "bbr_cpu"][..], &["cc", "load", "bbr_cpu", "--keep"]] {
        let done = stage.agent(keep);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.error.contains("[already-loaded]"), "{}", done.error);
        assert!(done.error.contains(&format!("process {}", loader.pid())), "{}", done.error);
        assert!(done.error.contains("thalweg-agent cc unload bbr_cpu"), "{}", done.error);
    }
    assert_eq!(stage.registered("bbr_cpu").expect("the first stays")["held_by"][0], loader.pid());
}

/// Kills a loader of `bbr_cpu`. Returns whether the kernel unregisters its algorithm, as Linux 6.4 and later do.
fn kill_a_loader(stage: &Stage) -> bool {
    let loader = stage.load("bbr_cpu");
    let takes_back = stage.kernel() >= (6, 4);
    let expected = if takes_back {
        ("linked", "until this process exits")
    } else {
        ("kept", "Linux before 6.4 keeps the algorithm")
    };
    assert_eq!(stage.registered("bbr_cpu").expect("it is registered")["state"], expected.0);
    assert!(loader.said.contains(expected.1), "{}", loader.said);
    loader.end(Signal::KILL);
    if takes_back {
        wait_until("the kernel has taken it back", || stage.registered("bbr_cpu").is_none());
    } else {
        let kept = stage.registered("bbr_cpu").expect("it stays");
        assert_eq!((&kept["state"], &kept["held_by"]), (&json!("kept"), &json!([])));
    }
    takes_back
}

#[test]
fn leftovers_of_a_killed_loader_are_removed_by_the_next_loader() {
    let Some(stage) = Stage::new() else { return };
    let is_gone = kill_a_loader(&stage);
    let (code, output) = stage.load("bbr_cpu").end(Signal::TERM);
    assert_eq!(output.contains("removed the registration that an earlier `cc load` had left"), !is_gone, "{output}");
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(stage.listed("bbr_cpu"), None);
}

#[test]
fn leftovers_of_a_killed_loader_are_removed_by_unload() {
    let Some(stage) = Stage::new() else { return };
    let is_gone = kill_a_loader(&stage);
    let done = stage.agent(&["cc", "unload", "bbr_cpu"]);
    if is_gone {
        assert_refused(&done, 1, "not-loaded", "cc list");
    } else {
        assert_eq!((done.code, done.out.as_str()), (Some(0), "bbr_cpu: unregistered\n"));
    }
    assert_eq!(stage.listed("bbr_cpu"), None);
}

#[test]
fn a_default_that_names_an_unloaded_algorithm_is_reported_with_the_fix() {
    let Some(stage) = Stage::new() else { return };
    if stage.kernel() < (6, 4) {
        return; // A killed loader's algorithm stays registered.
    }
    let namespaces = Namespace::pair();
    let loader = stage.load_in(&namespaces.0, "bbr_cpu");
    namespaces.0.output(&["sysctl", "-qw", "net.ipv4.tcp_congestion_control=bbr_cpu"]);
    loader.end(Signal::KILL);
    wait_until("the kernel has taken it back", || stage.registered("bbr_cpu").is_none());
    let agent = stage.agent_path();
    let number = namespaces.0.number();
    for command in ["list", "status"] {
        let own = namespaces.0.output(&[&agent, "cc", command]);
        assert!(own.contains("still the default for new connections in this network namespace"), "{own}");
        assert!(own.contains("sysctl net.ipv4.tcp_congestion_control="), "{own}");
        let elsewhere = stage.agent(&["cc", command]).out;
        assert!(elsewhere.contains(&format!("in network namespace {number}; ")), "{elsewhere}");
        let json: serde_json::Value =
            serde_json::from_str(&namespaces.0.output(&[&agent, "cc", command, "--json"])).unwrap();
        assert!(json["stale_defaults"].as_array().unwrap().contains(&json!({"name": "bbr_cpu", "netns": null})));
    }
    namespaces.0.output(&["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"]);
    assert!(!namespaces.0.output(&[&agent, "cc", "list"]).contains("still the default"));
}

#[test]
fn sighup_does_not_stop_a_loader() {
    let Some(stage) = Stage::new() else { return };
    let loader = stage.load("bbr_cpu");
    let pid = rustix::process::Pid::from_raw(loader.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::HUP).unwrap();
    let (code, output) = loader.end(Signal::TERM);
    assert_eq!(code, Some(0));
    assert!(output.contains("bbr_cpu: SIGHUP") && output.contains("bbr_cpu: unregistered"), "{output}");
}

#[test]
fn a_user_supplied_algorithm_is_loaded_from_its_file() {
    let Some(stage) = Stage::new() else { return };
    let done = stage.agent(&["cc", "load", &stage.object("fixed_window"), "--keep"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    // Unlike bbr_cpu, it does not allow unprivileged users to select it.
    assert!(done.out.contains("tcp_allowed_congestion_control=\""), "{}", done.out);
    let registered = stage.registered("fixed_window").expect("it is there");
    assert!(registered["counters"].is_null() && registered["rule"].is_null(), "{registered}");
    assert_eq!(stage.listed("fixed_window").expect("it is there")["is_allowed"], false);
    assert_eq!(stage.agent(&["cc", "unload", "fixed_window"]).code, Some(0));
    assert_eq!(stage.listed("fixed_window"), None);
}
