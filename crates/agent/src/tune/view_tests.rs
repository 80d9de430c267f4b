use super::*;
use crate::tune::brain::tests::{at, brain, learn, outcome, prefix};
use crate::tune::kernel::Told;
use serde_json::Value;
use thalweg_policy::Group;

/// An agent that has learned of two destinations, the second one of another namespace.
fn learned(config: &str) -> Brain {
    let (mut brain, mut told) = (brain(&[], config), Told::default());
    brain.begin(at(0.0), &mut told).unwrap();
    learn(&mut brain, &mut told, "192.0.2.0/24", 60, [400.0, 100.0]);
    brain.observe(8, &outcome("198.51.100.0/24", ArmId(1), Group::Untouched, 90.0), at(100.0));
    brain
}

#[test]
fn the_status_tells_what_is_chosen_for_whom_and_what_that_brings() {
    let brain = learned("[[override]]\nprefix = \"10.0.0.0/8\"\nkeep = true\n");
    let status = brain.status(20, at(200.0));
    assert_eq!(status.destinations[0].prefix, "198.51.100.0/24", "the latest stands first");
    let destination = &status.destinations[1];
    let bbr = destination.arms.iter().find(|arm| arm.cc == "bbr").unwrap();
    assert!(bbr.weight_in > 0.9 && bbr.connections == 40 && bbr.retransmits == 80, "{bbr:?}");
    assert!(bbr.gain.unwrap().low > 0.0 && destination.difference.unwrap().low > 0.0);
    let closed = status.closed.iter().map(|one| (one.treated, one.held_out, one.untouched));
    assert_eq!(closed.collect::<Vec<_>>(), [(0, 20, 0), (40, 0, 1)]);
    let text = status.text();
    for part in [
        "tuning\n  policy        bayes, 5.0 % held out\n",
        "  closed        bbr: 40 chosen, 0 held out, 1 left alone\n",
        "  override      10.0.0.0/8: keep\n",
        "  netns         8 of another network namespace: default bbr, destinations: 1\n",
        "192.0.2.0/24@7",
        "  20ms  ",
        "192.0.2.0/24: prefers bbr: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(brain.status(1, at(200.0)).destinations.len(), 1);
    assert_eq!(brain.status(1, at(200.0)).destinations_known, 2);
}

#[test]
fn explain_says_why_for_an_address_of_a_destination_and_for_one_that_nobody_knows() {
    let brain = learned("");
    let explained = brain.explain(prefix("192.0.2.7/32"), at(200.0));
    assert_eq!(explained.explained.len(), 1);
    let text = explained.text();
    assert!(text.starts_with("192.0.2.0/24: bbr gets ") && text.contains("times as good as cubic"), "{text}");
    let stranger = brain.explain(prefix("192.0.77.1/32"), at(200.0)).text();
    assert!(stranger.contains("no connection to 192.0.77.0/24 has closed yet"), "{stranger}");
    let network = brain.explain(prefix("192.0.0.0/16"), at(200.0)).text();
    assert!(network.contains("in ") && network.contains("pairs"), "{network}");
    let elsewhere = brain.explain(prefix("198.51.100.0/24"), at(200.0));
    assert_eq!(elsewhere.explained.iter().map(|one| one.netns).collect::<Vec<_>>(), [7, 8]);
}

#[test]
fn the_operators_word_goes_before_the_policys_reason() {
    let config = "dry_run = true\n[[override]]\nprefix = \"192.0.2.0/24\"\ncc = \"bbr\"\n";
    let brain = learned(config);
    let sentence = |to: &str| brain.explain(prefix(to), at(200.0)).explained[0].sentence.clone();
    assert_eq!(sentence("192.0.2.0/24"), "bbr because the operator has said so.");
    assert!(sentence("203.0.113.0/24").starts_with("In a dry run nothing is set. "));
    assert!(brain.status(1, at(200.0)).text().starts_with("tuning, but in a dry run: nothing is set\n"));
}

#[test]
fn an_answer_survives_the_socket_and_another_versions_is_understood() {
    let status = learned("").status(20, at(200.0));
    let value = serde_json::to_value(&status).unwrap();
    assert_eq!(serde_json::from_value::<Status>(value).unwrap(), status);
    let other: Status = serde_json::from_str(r#"{"policy":"oracle","colour":"blue"}"#).unwrap();
    assert_eq!((other.policy.as_str(), other.arms.len()), ("oracle", 0));
}

#[test]
fn the_reference_page_names_every_field() {
    let reference = include_str!("../../../../docs/reference/agent.md");
    let (_, section) = reference.split_once("\n### Looking at it\n").expect("a section on looking");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let brain = learned("[[override]]\nprefix = \"10.0.0.0/8\"\nkeep = true\n");
    let mut unchecked = vec![serde_json::to_value(brain.status(20, at(200.0))).unwrap()];
    while let Some(value) = unchecked.pop() {
        for name in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
            // Those of one kind of change are its own words.
            assert!(
                ["from", "to", "until"].contains(&name.as_str()) || section.contains(&format!("`{name}`")),
                "{name}"
            );
        }
        match value {
            Value::Object(fields) => unchecked.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Array(values) => unchecked.extend(values),
            _ => {}
        }
    }
}
