//! Fuzz tests of the files and requests that the agent reads: damaged input must not cause a panic or a hang.

use crate::record::fuzzed as record;
use crate::show::fuzzed as show;
use crate::tune::fuzzed as tune;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use thalweg_fuzz::damage;

/// Calls `work` with damaged variants of the texts.
fn fuzz(texts: &[&str], work: impl Fn(&[u8])) {
    damage(texts.iter().map(|text| text.as_bytes().to_vec()).collect(), work);
}

/// Like [`fuzz`], with the damaged text in a file that only its owner can read.
fn fuzz_file(texts: &[&str], name: &str, work: impl Fn(&Path)) {
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
     [guard]\nalpha = 0.05\nwithdraw_for = \"24h\"\n[tree]\nv4 = 24\n[[override]]\nprefix = \"10.0.0.0/8\"\ncc = \
                                             \"bbr\"\n",
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
fn fuzz_requests_on_the_socket() {
    fuzz(QUESTIONS, show::question);
}

#[test]
fn fuzz_record_file_names() {
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
fn fuzz_prefix_tables() {
    fuzz_file(TABLES, "table.csv", tune::table);
}

#[test]
fn fuzz_learned_state() {
    fuzz_file(STATES, "tune.json", tune::state);
}
