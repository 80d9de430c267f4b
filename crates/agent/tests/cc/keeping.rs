//! How long a registration lasts.

use crate::common::wait_until;
use crate::stage::Stage;
use rustix::process::Signal;

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
    assert_eq!((done.code, done.out.as_str()), (Some(0), "bbr_cpu: taken back\n"));
    assert_eq!((stage.registered("bbr_cpu"), stage.listed("bbr_cpu")), (None, None));
}

#[test]
fn what_an_earlier_loader_has_left_is_replaced() {
    let Some(stage) = Stage::new() else { return };
    assert_eq!(stage.agent(&["cc", "load", "bbr_cpu", "--keep"]).code, Some(0));
    let loader = stage.load("bbr_cpu");
    assert_eq!(loader.said, "bbr_cpu: took back what an earlier `cc load` had left registered\n");
    wait_until("the new one is registered", || {
        stage.registered("bbr_cpu").is_some_and(|registered| registered["held_by"][0] == loader.pid())
    });
    assert_eq!(loader.end(Signal::INT).0, Some(0));
    assert_eq!(stage.registered("bbr_cpu"), None);
}

#[test]
fn a_second_loader_is_refused_and_the_first_stays() {
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

#[test]
fn a_killed_loader_leaves_nothing_or_what_the_next_one_removes() {
    let Some(stage) = Stage::new() else { return };
    let loader = stage.load("bbr_cpu");
    let is_linked = stage.registered("bbr_cpu").unwrap()["state"] == "linked";
    let (_, said) = loader.end(Signal::KILL);
    if is_linked {
        wait_until("the kernel has taken it back", || stage.registered("bbr_cpu").is_none());
    } else {
        // Before Linux 6.4 it stays, as the loader has said, until the next one.
        assert!(said.contains("stays registered if the process is killed"), "{said}");
        assert_eq!(stage.registered("bbr_cpu").expect("it stays")["held_by"], serde_json::json!([]));
        let (code, said) = stage.load("bbr_cpu").end(Signal::TERM);
        assert!(said.contains("took back what an earlier"), "{said}");
        assert_eq!(code, Some(0));
    }
    assert_eq!(stage.listed("bbr_cpu"), None);
}

#[test]
fn a_users_own_algorithm_is_loaded_from_its_file() {
    let Some(stage) = Stage::new() else { return };
    let done = stage.agent(&["cc", "load", &stage.object("fixed_window"), "--keep"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    // It does not say that anyone may use it, as bbr_cpu does.
    assert!(done.out.contains("tcp_allowed_congestion_control=\""), "{}", done.out);
    let registered = stage.registered("fixed_window").expect("it is there");
    assert!(registered["counters"].is_null() && registered["rule"].is_null(), "{registered}");
    assert_eq!(stage.listed("fixed_window").expect("it is there")["is_allowed"], false);
    assert_eq!(stage.agent(&["cc", "unload", "fixed_window"]).code, Some(0));
    assert_eq!(stage.listed("fixed_window"), None);
}
