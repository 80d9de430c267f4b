//! Damaged input for everything that the agent reads: nothing of it may panic or hang. Each test runs for about a second, or for
//! `THALWEG_FUZZ_SECONDS`.

use crate::record::fuzzed as record;
use crate::show::fuzzed as show;
use crate::tune::fuzzed as tune;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Cases between two looks at the clock.
const CASES: u32 = 64;

/// Calls with damaged forms of some texts, over and over.
fn fuzz(texts: &'static [&'static str], work: impl Fn(&[u8])) {
    let seconds = std::env::var("THALWEG_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let damaged = (proptest::sample::select(texts), vec((any::<u16>(), edit()), 0..6)).prop_map(|(text, edits)| {
        let mut bytes = text.as_bytes().to_vec();
        edits.iter().for_each(|(at, edit)| edit.apply(&mut bytes, usize::from(*at)));
        bytes
    });
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    while Instant::now() < deadline {
        let result = runner.run(&damaged, |bytes| {
            work(&bytes);
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// One change.
#[derive(Clone, Debug)]
enum Edit {
    Set(u8),
    Insert(Vec<u8>),
    Remove(usize),
    Repeat(usize),
    End,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        any::<u8>().prop_map(Edit::Set),
        vec(any::<u8>(), 1..9).prop_map(Edit::Insert),
        proptest::sample::select(&["\n", "\0", "\"", "[", "{", "99999999999999999999", "-1", "1e999", "é", "/"][..])
            .prop_map(|text| Edit::Insert(text.as_bytes().to_vec())),
        (1usize..20).prop_map(Edit::Remove),
        (1usize..200).prop_map(Edit::Repeat),
        Just(Edit::End),
    ]
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>, at: usize) {
        let at = at % (bytes.len() + 1);
        match self {
            Edit::Set(byte) => bytes.iter_mut().skip(at).take(1).for_each(|one| *one = *byte),
            Edit::Insert(new) => drop(bytes.splice(at..at, new.iter().copied())),
            Edit::Remove(count) => drop(bytes.drain(at..(at + count).min(bytes.len()))),
            Edit::Repeat(count) => {
                let tail = bytes[at..].to_vec();
                let rest = (0..*count).flat_map(|_| tail.iter().copied()).take(1 << 14);
                bytes.extend(rest.collect::<Vec<u8>>());
            }
            Edit::End => bytes.truncate(at),
        }
    }
}

/// The same with the damaged text in a file that only its owner may read.
fn fuzz_file(texts: &'static [&'static str], name: &str, work: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fuzz(texts, |bytes| {
        fs::write(&file, bytes).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        work(&file);
    });
}

const REQUESTS: &[&str] = &[
    "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9477\r\nAccept: text/plain;q=0.5,*/*;q=0.1\r\n\r\n",
    "POST /metrics?x=1 HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
];

const QUESTIONS: &[&str] = &[
    "{\"get\":\"open\",\"sort\":\"min-rtt\",\"limit\":3}\n",
    "{\"get\":\"explain\",\"prefix\":\"2001:db8::/48\"}\n",
    "{\"get\":\"status\"}\n",
];

const SETTINGS: &[&str] = &[
    "policy = \"bayes\"\nholdout = 0.05\ngrace = \"5min\"\ndestinations = 20000\n[objective]\nlong_from = \"3MB\"\n\
     [guard]\nalpha = 0.05\nwithdraw_for = \"24h\"\n[tree]\nv4 = 24\n[[override]]\nprefix = \"10.0.0.0/8\"\ncc = \"bbr\"\n",
    "policy = \"ab\"\n[ab]\nshare = 0.1\npilot_until = \"2026-01-31T12:00:00Z\"\n",
    "policy = \"bpftune\"\n[bpftune]\nlearning_rate = 4\nmin_instances = 4\ndrop_shift = 6\n",
];

const POLICIES: &[&str] =
    &["format = 1\nsource = \"x\"\ndefault = \"cubic\"\n\n[[rules]]\nname = \"far\"\nalgorithm = \"bbr\"\n\
     when = { pop = [\"lon\"] }\nreason = \"r\"\nsource = \"s\"\nevidence = [\n]\n"];

const TABLES: &[&str] = &[
    "network,asn,country\n192.0.2.0/24,64496,DE\n2001:db8::/32,AS64497,\"N,L\"\n",
    "198.51.100.0\t24\t64500_64501\n203.0.113.0\t25\t{64502,64503}\n",
    "network,geoname_id\n192.0.2.0/24,77\n",
];

const KEYS: &[&str] = &["000102030405060708090a0b0c0d0e0f\n"];

const STATES: &[&str] = &[
    "{\"format\":1,\"agent\":\"0.1.0\",\"boot\":\"b\",\"namespaces\":[{\"netns\":null,\"learned\":{\"format\":1}}]}\n",
];

const NAMES: &[&str] = &["20260131T120000Z-1769860800-1769864390.parquet"];

#[test]
fn fuzz_requests_for_metrics() {
    fuzz(REQUESTS, show::request);
}

#[test]
fn fuzz_questions_on_the_socket() {
    fuzz(QUESTIONS, show::question);
}

#[test]
fn fuzz_names_of_files_of_records() {
    fuzz(NAMES, record::name);
}

#[test]
fn fuzz_keys() {
    fuzz_file(KEYS, "key", record::key);
}

#[test]
fn fuzz_settings() {
    fuzz_file(SETTINGS, "tune.toml", tune::settings);
}

#[test]
fn fuzz_policies() {
    fuzz_file(POLICIES, "policy.toml", tune::policy);
}

#[test]
fn fuzz_tables_of_networks() {
    fuzz_file(TABLES, "table.csv", tune::table);
}

#[test]
fn fuzz_learned_state() {
    fuzz_file(STATES, "tune.json", tune::state);
}
