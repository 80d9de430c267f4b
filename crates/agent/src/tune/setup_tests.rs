use super::*;
use crate::tune::decision_engine::tests::{at, prefix, setup};
use std::fs;
use thalweg_policy::Class;

fn refusal(arguments: &[&str], config: &str) -> Problem {
    setup(arguments, config).unwrap_err()
}

#[test]
fn command_line_options_take_precedence_over_the_file() {
    let both =
        setup(&["--holdout", "10%", "--grace", "1min"], "holdout = 0.2\ngrace = \"2min\"\nprivate = true\n").unwrap();
    assert_eq!((both.guard.holdout, both.grace, both.has_private), (0.1, Duration::from_secs(60), true));
    let file = setup(&[], "holdout = 0.2\n").unwrap();
    assert_eq!((file.guard.holdout, file.grace), (0.2, GRACE));
}

#[test]
fn invalid_settings_are_rejected_with_the_valid_values() {
    for (config, place) in [
        ("holdout = 5\n", "holdout"),
        ("destinations = 100000\n", "destinations"),
        ("[tree]\nv4 = 33\n", "tree.v4"),
        ("[guard]\nalpha = 0\n", "guard.alpha"),
        ("[objective]\nmedium_from = \"9MB\"\n", "objective"),
        ("policy = \"ab\"\n[ab]\npilot_until = \"tomorrow\"\n", "ab.pilot_until"),
        ("policy = \"ucb\"\n[ucb]\nmemory = 0\n", "ucb.memory"),
    ] {
        let error = refusal(&[], config);
        assert_eq!(error.code, "bad-setting", "{error}");
        assert!(error.place.ends_with(place), "{error}");
    }
    let unknown = refusal(&["--policy", "oracle"], "");
    assert_eq!(unknown.code, "unknown-policy");
    assert!(unknown.expected.contains("bayes, ucb"), "{unknown}");
    assert_eq!(refusal(&["--policy", "static"], "").code, "no-weights");
    assert_eq!(refusal(&["--policy", "static"], "[static]\nvegas = 1\n").code, "unknown-arm");
    assert_eq!(refusal(&["--policy", "ab", "--arms", "cubic,bbr,reno"], "").code, "no-treatment");
    assert_eq!(refusal(&["--arms", "cubic,vegas"], "").code, "unknown-arm");
    assert!(refusal(&[], "arms = [\"cubic\", \"vegas\"]\n").place.ends_with(".toml, arms"));
    // A comparison of the default with itself.
    let itself = refusal(&["--policy", "ab"], "[ab]\ntreatment = \"cubic\"\n");
    assert_eq!(itself.code, "no-treatment");
    assert!(itself.hint.ends_with("sysctl -w net.ipv4.tcp_congestion_control=bbr"), "{itself}");
}

#[test]
fn every_named_policy_can_be_selected() {
    let configs = [("static", "[static]\nbbr = 1\n"), ("bpftune", "[bpftune]\nkey = \"destination\"\n")];
    for name in POLICIES {
        let config = configs.iter().find(|(of, _)| *of == name).map_or("", |(_, config)| config);
        let guard = setup(&["--policy", name], config).unwrap().guard("cubic").unwrap();
        assert_eq!(guard.weights(prefix("192.0.2.0/24"), Class::default(), at(0.0)).holdout(), 0.05, "{name}");
    }
    assert_eq!(setup(&["--policy", "bpftune"], "").unwrap().drop_shift, Some(6));
    assert_eq!(setup(&[], "").unwrap().drop_shift, None);
}

#[test]
fn a_pilot_ends_at_the_time_in_its_file() {
    let config = "[ab]\nshare = 0.1\npilot_until = \"2023-11-14T22:13:30Z\"\n";
    let guard = setup(&["--policy", "ab"], config).unwrap().guard("cubic").unwrap();
    let share = |second: f64| {
        guard.weights(prefix("192.0.2.0/24"), Class::default(), at(second)).probability(thalweg_policy::ArmId(1))
    };
    assert!((share(9.0) - 0.1).abs() < 1e-9);
    assert_eq!(share(10.0), 1.0);
}

#[test]
fn an_ab_test_of_two_algorithms_treats_with_the_one_that_is_not_the_default() {
    let setup = setup(&["--policy", "ab", "--arms", "cubic,bbr"], "").unwrap();
    for (default, other) in [("cubic", 1), ("bbr", 0)] {
        let guard = setup.guard(default).unwrap();
        let weights = guard.weights(prefix("192.0.2.0/24"), Class::default(), at(0.0));
        assert_eq!(weights.probability(thalweg_policy::ArmId(other)), 0.5, "{default}");
    }
}

#[test]
fn a_policy_file_is_applied_with_the_configured_networks_and_host_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let policy = "format = 1\nsource = \"x\"\ndefault = \"cubic\"\n\n[[rules]]\nname = \"far\"\nalgorithm = \"bbr\"\n\
                  when = { as = [\"AS64496\"], pop = [\"lon\"] }\nreason = \"r\"\nsource = \"s\"\nevidence = [\n]\n";
    fs::write(path("policy.toml"), policy).unwrap();
    fs::write(path("table.csv"), "network,asn\n192.0.2.0/24,64496\n").unwrap();
    let arguments = ["--policy", &path("policy.toml"), "--prefixes", &path("table.csv")];
    let host = "[host]\npop = \"lon\"\n";
    let guard = setup(&arguments, host).unwrap().guard("cubic").unwrap();
    let probability =
        |to: &str| guard.weights(prefix(to), Class::default(), at(0.0)).probability(thalweg_policy::ArmId(1));
    assert_eq!((probability("192.0.2.0/24"), probability("198.51.100.0/24")), (1.0, 0.0));

    let warned =
        || setup(&arguments, host).unwrap().lines().iter().any(|line| line.starts_with("where no rule applies"));
    assert!(!warned(), "its default is the system's");
    fs::write(path("policy.toml"), policy.replace("default = \"cubic\"", "default = \"bbr\"")).unwrap();
    assert!(warned());
    fs::write(path("policy.toml"), policy).unwrap();

    let error = refusal(&arguments[..2], host);
    assert_eq!(error.code, "bad-policy");
    assert!(error.found.starts_with("rules.far.when.as: ") && error.hint.contains("--prefixes FILE"), "{error}");
    let error = refusal(&arguments, "");
    assert!(error.found.starts_with("rules.far.when.pop: ") && error.hint.contains("table.csv has no such"), "{error}");
    fs::write(path("policy.toml"), policy.replace("\"bbr\"", "\"vegas\"")).unwrap();
    let error = refusal(&arguments, host);
    assert!(error.found.starts_with("`vegas` in `rules.far.algorithm`"), "{error}");
    assert!(error.hint.starts_with("--arms ") && error.hint.ends_with(",vegas"), "{error}");
    fs::write(path("policy.toml"), "format = 1\ndefault = cubic\n").unwrap();
    let error = refusal(&arguments, host);
    assert!(error.place.ends_with("policy.toml, line 2"), "{error}");
}

#[test]
fn settings_that_need_a_restart_keep_their_value_and_are_named() {
    let before = setup(&["--arms", "cubic,bbr"], "").unwrap();
    let again = |arguments: &[&str], config: &str| {
        crate::tune::decision_engine::tests::with_options(arguments, config, |options, offer| {
            before.again(options, offer)
        })
        .unwrap()
    };
    let (same, stay) = again(&["--arms", "cubic,bbr"], "holdout = 0.2\n");
    assert_eq!((same.guard.holdout, stay.len()), (0.2, 0));
    let config = "grace = \"1min\"\nprivate = true\ndetail = \"low\"\n[tree]\nv4 = 20\n[objective]\nleast = \
                  \"1kB\"\nretransmit_price = 2.0\n";
    let (new, stay) = again(&["--arms", "cubic,bbr,reno", "--dry-run"], config);
    assert_eq!(stay, ["arms", "tree", "dry_run", "private", "grace", "detail", "objective.least"]);
    assert_eq!((new.arms.len(), new.grace, new.has_private, new.is_dry_run), (2, GRACE, false, false));
    assert_eq!((new.lengths(Family::V4)[0], new.objective.retransmit_price), (24, 2.0));
}

#[test]
fn a_changed_loss_rule_stays_in_effect_until_a_restart_and_is_named_at_each_reload() {
    let mut running = setup(&["--policy", "bpftune"], "").unwrap();
    let config = "[bpftune]\nhas_loss_rule = false\n";
    for _ in 0..2 {
        let (new, stay) =
            crate::tune::decision_engine::tests::with_options(&["--policy", "bpftune"], config, |options, offer| {
                running.again(options, offer)
            })
            .unwrap();
        assert_eq!((stay, new.drop_shift), (vec!["bpftune.has_loss_rule or bpftune.drop_shift"], Some(6)));
        running = new;
    }
}

#[test]
fn settings_that_are_valid_only_for_other_arms_require_a_restart() {
    let before = setup(&["--policy", "static", "--arms", "cubic,bbr"], "[static]\nbbr = 1.0\n").unwrap();
    let again = |config: &str| {
        let arguments = ["--policy", "static", "--arms", "cubic,reno"];
        crate::tune::decision_engine::tests::with_options(&arguments, config, |options, offer| {
            before.again(options, offer)
        })
        .unwrap_err()
    };
    let error = again("[static]\nreno = 1.0\n");
    assert_eq!((error.code, error.found.as_str()), ("needs-restart", "arms cubic, reno"), "{error}");
    assert!(error.hint.contains("restart the agent"), "{error}");
    assert_eq!(again("[static]\nvegas = 1.0\n").code, "unknown-arm");
}

#[test]
fn the_startup_log_names_the_policy_the_arms_and_excluded_algorithms() {
    let lines = setup(&[], "").unwrap().lines();
    assert_eq!(
        lines[..2],
        ["policy: bayes", "arms: cubic (the default), bbr; 5 % of the connections keep the default"]
    );
    assert!(lines[2].starts_with("left out: reno: only root may choose it"), "{lines:?}");
    assert!(lines[3].starts_with("left out: dctcp: it needs ECN"), "{lines:?}");
}
