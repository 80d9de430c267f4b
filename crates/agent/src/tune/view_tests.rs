use super::*;
use crate::tune::decision_engine::tests::{OWN, at, engine, learn, outcome, prefix};
use crate::tune::fake_kernel::FakeKernel;
use serde_json::Value;
use thalweg_policy::Group;

/// Returns an engine with data about destinations in two namespaces.
fn learned(config: &str) -> DecisionEngine {
    let (mut engine, mut kernel) = (engine(&[], config), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    kernel.decisions = [
        ((Reason::Treated, Some(ArmId(1))), 41),
        ((Reason::HeldOut, None), 20),
        ((Reason::Override, Some(ArmId(1))), 2),
        ((Reason::Private, None), 3),
        ((Reason::Route, None), 1),
    ]
    .into();
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 60, [400.0, 100.0]);
    let mut count = |netns, peer: &str, reason, cc: &str, times| {
        (0..times).for_each(|_| engine.count(netns, peer.parse().ok(), reason, &cc.into(), at(60.0)));
    };
    count(OWN, "192.0.2.1", Reason::Treated, "bbr", 40);
    count(OWN, "192.0.2.1", Reason::HeldOut, "cubic", 20);
    count(OWN, "203.0.113.5", Reason::Override, "bbr", 4);
    count(OWN, "10.9.9.9", Reason::Private, "reno", 2);
    count(8, "198.51.100.1", Reason::Application, "bbr", 1);
    engine.observe(8, &outcome("198.51.100.0/24", ArmId(1), Group::Untouched, 90.0), at(100.0));
    engine
}

#[test]
fn the_status_shows_the_selection_per_destination_and_its_effect() {
    let engine = learned("[[override]]\nprefix = \"10.0.0.0/8\"\nkeep = true\n");
    let status = engine.status(20, at(200.0));
    assert_eq!(status.destinations[0].prefix, "198.51.100.0/24", "the latest stands first");
    let destination = &status.destinations[1];
    let bbr = destination.arms.iter().find(|arm| arm.cc == "bbr").unwrap();
    assert!(bbr.weight_in.unwrap() > 0.9 && bbr.connections == 40 && bbr.retransmits == 80, "{bbr:?}");
    assert!(bbr.gain.unwrap().low > 0.0 && destination.difference.unwrap().low > 0.0);
    let closed = status
        .closed
        .iter()
        .map(|algorithm| (algorithm.cc.as_str(), algorithm.treated, algorithm.held_out, algorithm.untouched));
    assert_eq!(closed.collect::<Vec<_>>(), [("bbr", 40, 0, 5), ("cubic", 0, 20, 0), ("reno", 0, 0, 2)]);
    let text = status.text();
    for part in [
        "tuning\n  policy        bayes, 5.0 % held out\n",
        "  opened        41 chosen, 20 held out, 2 set by an override, 4 left alone (route 1, private 3)\n",
        "  closed        bbr: 40 chosen, 0 held out, 4 set by an override, 1 left alone (application 1)\n",
        "  closed        reno: 0 chosen, 0 held out, 2 left alone (private 2)\n",
        "  override      10.0.0.0/8: keep\n",
        "  netns         8 (not the agent's own): default bbr, destinations: 1\n                closed bbr: 0 \
         chosen, 0 held out, 1 left alone (application 1)\n",
        "192.0.2.0/24@7",
        "  20ms  ",
        "192.0.2.0/24: prefers bbr: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(engine.status(1, at(200.0)).destinations.len(), 1);
    assert_eq!(engine.status(1, at(200.0)).destinations_known, 2);
}

#[test]
fn explain_covers_known_and_unseen_destinations() {
    let engine = learned("");
    let explained = engine.explain(prefix("192.0.2.7/32"), at(200.0));
    assert_eq!(explained.explained.len(), 1);
    let text = explained.text();
    assert!(text.starts_with("192.0.2.0/24: bbr gets ") && text.contains("times as good as cubic"), "{text}");
    let unseen = engine.explain(prefix("192.0.77.1/32"), at(200.0)).text();
    assert!(unseen.contains("no connection to 192.0.77.0/24 has closed yet"), "{unseen}");
    let network = engine.explain(prefix("192.0.0.0/16"), at(200.0)).text();
    assert!(network.contains("in ") && network.contains("pairs"), "{network}");
    let elsewhere = engine.explain(prefix("198.51.100.0/24"), at(200.0));
    assert_eq!(elsewhere.explained.iter().map(|destination| destination.netns).collect::<Vec<_>>(), [8, 7]);
}

#[test]
fn explain_reports_what_the_kernel_does_until_a_destination_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let rule = "format = 1\nsource = \"x\"\ndefault = \"cubic\"\n[[rules]]\nname = \"edge\"\nalgorithm = \"bbr\"\n\
                reason = \"r\"\nsource = \"s\"\nwhen = { prefix = [\"192.0.2.0/24\", \"203.0.113.0/24\"] }\n";
    std::fs::write(&file, rule).unwrap();
    let (mut engine, mut kernel) =
        (engine(&["--policy", file.to_str().unwrap()], "holdout = 0.0\n"), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    let explained = |engine: &DecisionEngine, to: &str| {
        let destination = engine.explain(prefix(to), at(100.0)).explained.remove(0);
        let bbr = destination.arms.iter().find(|arm| arm.cc == "bbr").unwrap().weight_in.unwrap();
        (destination.sentence, bbr)
    };
    // The row of the network namespace applies, then that of 192.0.0.0/16, which no rule names, then its own.
    let (sentence, bbr) = explained(&engine, "192.0.2.7/32");
    assert!(
        sentence.starts_with("Until a connection to it has closed, cubic gets 100 % of new connections"),
        "{sentence}"
    );
    assert!(sentence.contains("Then: bbr by the rule `edge`") && bbr < 1e-9, "{sentence}");
    learn(&mut engine, &mut kernel, "192.0.77.0/24", 3, [400.0, 100.0]);
    assert!(explained(&engine, "192.0.2.7/32").0.starts_with("Until a connection to it has closed, cubic"));
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 3, [400.0, 100.0]);
    let (sentence, bbr) = explained(&engine, "192.0.2.7/32");
    assert!(!sentence.contains("Until") && bbr > 1.0 - 1e-9, "{sentence}");
    assert!(!explained(&engine, "198.51.100.9/32").0.contains("Until"), "no rule applies to it before or after");
}

#[test]
fn an_override_takes_precedence_over_the_policy_reason() {
    let config = "dry_run = true\n[[override]]\nprefix = \"192.0.2.0/24\"\ncc = \"bbr\"\n";
    let engine = learned(config);
    let sentence = |to: &str| engine.explain(prefix(to), at(200.0)).explained[0].sentence.clone();
    assert!(sentence("192.0.2.0/24").contains("would get bbr because of the override for 192.0.2.0/24"));
    assert!(sentence("203.0.113.0/24").starts_with("Dry run: nothing is set. "));
    assert!(engine.status(1, at(200.0)).text().starts_with("tuning (dry run: nothing is set)\n"));
}

/// Returns the decision about an address or a prefix, and its explanation.
fn explained(config: &str, to: &str) -> (String, String) {
    let (mut engine, mut kernel) = (engine(&["--policy", "static"], config), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    let prefix = crate::tune::chooser::prefix_of(to).unwrap();
    let mut all = engine.explain(prefix, at(1.0)).explained;
    let destination = all.remove(0);
    let probabilities: Vec<String> =
        destination.arms.iter().map(|arm| arm.weight_in.map_or("-".to_owned(), percent)).collect();
    (destination.decision, format!("{}: {} {}", destination.prefix, destination.sentence, probabilities.join(" ")))
}

const STATIC: &str = "[static]\nbbr = 1\n";

#[test]
fn explain_reports_addresses_excluded_in_the_kernel_whether_seen_or_not() {
    for (to, decision, part) in [
        (
            "10.9.9.9",
            "private",
            "10.9.9.9/32: Its connections are left alone and keep their default, because 10.0.0.0/8 (",
        ),
        ("100.64.7.1", "private", "RFC 6598"),
        ("127.0.0.1", "loopback", "unless --private is set"),
        ("::1", "loopback", "::/127"),
        ("169.254.3.3", "link_local", "169.254.0.0/16"),
        ("fe80::1", "link_local", "fe80::/10"),
        ("fd12::1", "private", "RFC 4193"),
        ("::ffff:192.168.7.7", "private", "192.168.7.7/32: "),
        ("10.0.0.0/8", "private", "left alone"),
    ] {
        let (reported, text) = explained(STATIC, to);
        assert_eq!(reported, decision, "{to}: {text}");
        assert!(text.contains(part) && text.ends_with(" - -"), "{to}: {text}");
    }
    for (config, to) in [("private = true\n", "10.9.9.9"), ("", "8.8.8.8"), ("", "100.128.0.1"), ("", "2001:db8::1")] {
        let (decision, text) = explained(&format!("{config}{STATIC}"), to);
        assert_eq!(decision, "treated", "{to}");
        assert!(text.contains("bbr gets 100 % of new connections") && text.ends_with(" 0 % 100 %"), "{to}: {text}");
    }
}

#[test]
fn overrides_are_explained_per_address_and_listed_as_exceptions_of_a_prefix() {
    let config = "holdout = 0.0\n[static]\nbbr = 1\n\
                  [[override]]\nprefix = \"10.0.0.0/8\"\ncc = \"cubic\"\n\
                  [[override]]\nprefix = \"192.0.2.7/32\"\ncc = \"cubic\"\n\
                  [[override]]\nprefix = \"192.0.2.8/32\"\nkeep = true\n";
    let (decision, text) = explained(config, "10.9.9.9");
    assert_eq!(decision, "override", "an override of a private address counts: {text}");
    assert!(
        text.contains("get cubic because of the override for 10.0.0.0/8") && text.ends_with(" 100 % 0 %"),
        "{text}"
    );
    assert_eq!(explained(config, "192.0.2.7").0, "override");
    let (decision, text) = explained(config, "192.0.2.8");
    assert!(decision == "keep" && text.contains("override for 192.0.2.8/32: keep = true"), "{text}");
    let (decision, text) = explained(config, "192.0.2.9");
    assert!(decision == "treated" && text.contains("bbr gets 100 %"), "{text}");
    let text = explained(config, "192.0.2.0/24").1;
    assert!(text.contains("Exceptions within it: 192.0.2.7/32 (cubic), 192.0.2.8/32 (keep)"), "{text}");
    let text = explained(config, "100.0.0.0/8").1;
    assert!(text.contains("Exceptions within it: 100.64.0.0/10 (left alone"), "{text}");
}

#[test]
fn the_substitute_of_an_excluded_algorithm_is_named() {
    let (mut engine, mut kernel) = (engine(&["--policy", "static"], STATIC), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    kernel.decisions = [((Reason::Refused, Some(ArmId(1))), 3)].into();
    engine.observe(OWN, &outcome("192.0.2.0/24", ArmId(1), Group::Treated, 100.0), at(1.0));
    engine.tick(at(2.0), None, &mut kernel);
    let sentence = engine.explain(prefix("192.0.2.0/24"), at(3.0)).explained[0].sentence.clone();
    let expected = "cubic gets 100 % of new connections: bbr is left out, because the kernel has refused to set it";
    assert!(sentence.starts_with(expected), "{sentence}");
    let preferred = engine.log.last(9).into_iter().find(|logged| logged.event.prefix == Some(prefix("192.0.2.0/24")));
    assert!(preferred.is_none_or(|logged| logged.event.reason.starts_with(expected)));
}

#[test]
fn explain_covers_inactive_namespaces_and_closed_connections() {
    let mut engine = learned("");
    engine.count(9, "192.0.2.9".parse().ok(), Reason::NoChances, &"reno".into(), at(90.0));
    let text = engine.explain(prefix("192.0.2.9/32"), at(100.0)).text();
    for part in [
        "network namespace 7\n192.0.2.0/24: bbr gets ",
        "  closed: 40 with bbr, drawn\n  closed: 20 with cubic, held out\n",
        "network namespace 9\n192.0.2.9/32: Its connections are left alone, because reno, the default of its network \
         namespace, is not",
        "  closed: 1 with reno, left alone, because their network namespace had no probabilities\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let unseen = engine.explain(prefix("203.0.77.1/32"), at(100.0)).text();
    assert!(unseen.contains("  closed: none since the agent started\n"), "{unseen}");
}

#[test]
fn a_response_survives_the_socket_and_other_versions_are_parsed() {
    let status = learned("").status(20, at(200.0));
    let value = serde_json::to_value(&status).unwrap();
    assert_eq!(serde_json::from_value::<Status>(value).unwrap(), status);
    let other: Status = serde_json::from_str(r#"{"policy":"oracle","colour":"blue"}"#).unwrap();
    assert_eq!((other.policy.as_str(), other.arms.len()), ("oracle", 0));
}

#[test]
fn the_reference_page_names_every_field() {
    let reference = include_str!("../../../../docs/reference/agent-tune.md");
    let (_, section) = reference.split_once("\n## Inspect decisions\n").expect("a section on looking");
    let section = section.split("\n## ").next().expect("a section");
    let engine = learned("[[override]]\nprefix = \"10.0.0.0/8\"\nkeep = true\n");
    let mut unchecked = vec![serde_json::to_value(engine.status(20, at(200.0))).unwrap()];
    while let Some(value) = unchecked.pop() {
        for name in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
            // Reasons are in another section, and the fields of single kinds of changes are not documented.
            let is_reason = Reason::ALL.iter().any(|reason| reason.name() == name);
            let text = if is_reason { reference } else { section };
            assert!(["from", "to", "until"].contains(&name.as_str()) || text.contains(&format!("`{name}`")), "{name}");
        }
        match value {
            Value::Object(fields) => unchecked.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Array(values) => unchecked.extend(values),
            _ => {}
        }
    }
}
