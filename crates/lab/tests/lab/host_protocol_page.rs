//! Checks that the commands and events in docs/reference/host-protocol.md are valid.

use serde_json::Value;
use std::collections::BTreeSet;
use thalweg_lab::protocol::{Command, HostEvent};

const PAGE: &str = include_str!("../../../../docs/reference/host-protocol.md");

fn examples() -> Vec<Value> {
    let blocks = PAGE.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| serde_json::from_str(block).unwrap_or_else(|error| panic!("{error}: {block}"))).collect()
}

#[test]
fn every_example_is_a_complete_command_or_event() {
    for example in examples() {
        let again = if example.get("command").is_some() {
            serde_json::from_value::<Command>(example.clone()).map(|command| serde_json::to_value(command).unwrap())
        } else {
            serde_json::from_value::<HostEvent>(example.clone()).map(|event| serde_json::to_value(event).unwrap())
        };
        let again = again.unwrap_or_else(|error| panic!("{error}: {example}"));
        assert_eq!(again, example, "what is written has other keys than what is shown");
    }
}

#[test]
fn every_command_and_event_has_an_example() {
    let examples = |kind: &str| -> BTreeSet<String> {
        examples().iter().filter_map(|example| Some(example.get(kind)?.as_str()?.to_owned())).collect()
    };
    let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(examples("command"), expected(&["configure", "clock", "start", "over", "stop"]));
    let events = [
        "configured",
        "clock",
        "over",
        "flow",
        "sample",
        "state",
        "queue",
        "program_run",
        "metered",
        "meter_sample",
        "stopped",
        "failed",
    ];
    assert_eq!(examples("event"), expected(&events));
}
