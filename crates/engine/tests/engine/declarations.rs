//! The capabilities reported by the binary match the declarations.

use crate::common::ENGINE;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;

fn ask(arguments: &[&str]) -> Value {
    serde_json::from_slice(&Command::new(ENGINE).args(arguments).output().unwrap().stdout).unwrap()
}

/// Returns every key that the scenario's schema declares, and `key=value` for every value that it enumerates. Names
/// that users choose are replaced by `*`, and list indices are omitted.
fn declared() -> BTreeSet<String> {
    let schema = ask(&["schema", "scenario"]);
    let mut choices = BTreeSet::new();
    walk(&schema, &schema, "", &mut choices);
    choices
}

fn walk(root: &Value, schema: &Value, key: &str, choices: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        return walk(root, root.pointer(reference.trim_start_matches('#')).unwrap(), key, choices);
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        schema[choice].as_array().into_iter().flatten().for_each(|part| walk(root, part, key, choices));
    }
    for value in schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")) {
        if let Some(value) = value.as_str() {
            choices.insert(format!("{key}={value}"));
        }
    }
    if schema["items"].is_object() {
        walk(root, &schema["items"], key, choices);
    }
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
        choices.insert(key.clone());
        walk(root, part, &key, choices);
    }
    // A table with names that the user chooses: its entries have keys, unless they are plain values.
    let named = &schema["additionalProperties"];
    if named.is_object() {
        walk(root, named, &format!("{key}.*"), choices);
    }
}

/// Capability values that the schema does not enumerate: algorithms are those listed in `cc`, and traces have one of
/// these formats.
const FREE: [&str; 5] =
    ["flow.cc=name", "path.trace=csv", "path.trace=mahimahi", "path.reverse.trace=csv", "path.reverse.trace=mahimahi"];

#[test]
fn every_key_that_an_engine_supports_is_declared_and_listed_once() {
    let declared = declared();
    assert!(declared.contains("host.*.cpu_share") && declared.contains("path.queue=fq_codel"), "{declared:?}");
    assert!(declared.contains("flow.cc.bpf") && declared.contains("path.steps.at"), "{declared:?}");
    let capabilities = ask(&["capabilities", "--json"]);
    let engines = capabilities["engines"].as_array().unwrap();
    assert!(!engines.is_empty());
    for engine in engines {
        let mut keys = BTreeSet::new();
        for key in engine["honours"].as_array().unwrap() {
            let key = key.as_str().unwrap();
            assert!(
                declared.contains(key) || FREE.contains(&key),
                "{} honours `{key}`, which is not a key",
                engine["name"]
            );
            assert!(keys.insert(key), "{} lists `{key}` twice", engine["name"]);
        }
    }
}

#[test]
fn an_engine_that_supports_a_value_supports_its_key() {
    for engine in ask(&["capabilities", "--json"])["engines"].as_array().unwrap() {
        let keys: BTreeSet<&str> =
            engine["honours"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
        for key in keys.iter().filter_map(|key| key.split_once('=')) {
            assert!(keys.contains(key.0), "`{}={}` without `{}`", key.0, key.1, key.0);
        }
    }
}

#[test]
fn capabilities_describe_the_simulator() {
    let capabilities = ask(&["capabilities", "--json"]);
    assert_eq!(capabilities["format"], 1);
    assert_eq!(capabilities["version"], env!("CARGO_PKG_VERSION"));
    let sim = &capabilities["engines"][0];
    assert_eq!((&sim["name"], &sim["available"], &sim["why_not"]), (&"sim".into(), &true.into(), &Value::Null));
    let names: Vec<&str> = sim["cc"].as_array().unwrap().iter().map(|cc| cc["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["bbr", "bbr3", "bbr_auto", "bbr_cpu", "bic", "cubic", "dctcp", "htcp", "illinois", "prague", "reno", "vegas"]
    );
    assert!(sim["cc"].as_array().unwrap().iter().all(|cc| cc["params"].is_object()));
    let bbr = &sim["cc"][0];
    assert_eq!(bbr["ranges"]["probe_gain"], json!({"min": 1.0, "max": 1.9, "whole": false}));
    let keys = |table: &Value| table.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&bbr["ranges"]), keys(&bbr["params"]));
}

#[test]
fn capabilities_of_a_named_engine_match_the_full_report() {
    let all = ask(&["capabilities", "--json"]);
    let named = ask(&["capabilities", "--json", "--engine", "sim"]);
    assert_eq!(named["engines"], Value::Array(vec![all["engines"][0].clone()]));
    let unknown = ask(&["capabilities", "--json", "--engine", "unknown"]);
    assert_eq!(unknown["engines"], Value::Array(Vec::new()));
}

#[test]
fn the_committed_schema_matches_the_one_printed_by_the_binary() {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/thalweg/scenario/scenario.schema.json");
    let printed = Command::new(ENGINE).args(["schema", "scenario"]).output().unwrap().stdout;
    let committed = std::fs::read(committed).expect("scenario.schema.json is generated and committed");
    assert!(
        committed == printed,
        "the scenario has changed: python tools/generate.py brings what is made from it up to date"
    );
}

#[test]
fn schemas_name_their_draft_and_contain_no_rust_names() {
    for subject in ["scenario", "plan"] {
        let schema = ask(&["schema", subject]);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(schema.get("title").is_none() && schema.get("$id").is_none());
        assert_eq!(schema["additionalProperties"], false);
    }
}

#[test]
fn columns_are_those_of_the_tables() {
    let columns = ask(&["schema", "columns"]);
    let names: Vec<&str> =
        columns["tables"].as_array().unwrap().iter().map(|table| table["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["flows", "samples", "state", "queue", "packets"]);
    let flows = columns["tables"][0]["columns"].as_array().unwrap();
    let fct = flows.iter().find(|column| column["name"] == "fct_us").unwrap();
    assert_eq!((&fct["kind"], &fct["optional"], &fct["key"]), (&"u64".into(), &true.into(), &false.into()));
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let pipe =
        format!("\"{ENGINE}\" schema scenario 2>&1 >/dev/full; echo $?; \"{ENGINE}\" schema scenario | head -c 1");
    let output = Command::new("bash").args(["-c", &format!("set -o pipefail; {pipe}; echo $?")]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("cannot write to standard output: No space left on device"), "{text}");
    assert_eq!(lines[1..], ["3", "{0"], "{text}");
}
