//! The rules of `bbr_cpu` and `bbr3` in C match the vectors with which crates/cc is also tested.

use serde_json::{Map, Value};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the rules, in the order of `enum rule`.
const RULES: [&str; 2] = ["paper", "schedule"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles the rule as an ordinary program.
fn driver(folder: &Path) -> PathBuf {
    let program = folder.join("rule_driver");
    let source = root().join("bpf/cc/cpu_rules/test/rule_driver.c");
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover", "-o"])
        .args([&program, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "rule.h does not compile as ordinary C");
    program
}

fn lines(object: &Map<String, Value>) -> String {
    object.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

#[test]
fn the_c_rule_matches_the_vectors() {
    let vectors: Value =
        serde_json::from_slice(&std::fs::read(root().join("tests/vectors/bbr_cpu.json")).unwrap()).unwrap();
    let mut input = String::new();
    let mut expected = Vec::new();
    for case in vectors["cases"].as_array().unwrap() {
        let rule = RULES.iter().position(|rule| case["rule"] == **rule).expect("a rule");
        let version = case.get("version").map_or(1, |version| version.as_u64().unwrap());
        input += &format!("rule {rule} {version}\n{}", lines(vectors["base"].as_object().unwrap()));
        for (number, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let place = format!("{}, step {}", case["name"], number + 1);
            if let Some(sample) = step.get("sample") {
                input += &format!("sample {} {}\n", sample["delivered"], sample["interval_us"]);
                expected.push((place, Map::from_iter([("interval_us".to_owned(), sample["expected_us"].clone())])));
                continue;
            }
            input += &format!("{}ack\n", lines(step["set"].as_object().unwrap()));
            expected.push((place, step["out"].as_object().unwrap().clone()));
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let input_file = folder.path().join("input");
    std::fs::write(&input_file, input).unwrap();
    let output = Command::new(driver(folder.path())).stdin(File::open(input_file).unwrap()).output().unwrap();
    assert!(output.status.success(), "the rule has failed");

    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), expected.len());
    for (line, (place, expected)) in output.lines().zip(expected) {
        let words: Vec<&str> = line.split(' ').collect();
        for pair in words.chunks(2) {
            let wanted = expected.get(pair[0]).map_or(0, |value| value.as_u64().unwrap());
            assert_eq!(pair[1], wanted.to_string(), "{place}: {}", pair[0]);
        }
        assert!(expected.keys().all(|name| words.contains(&name.as_str())), "{place}: unknown output");
    }
}
