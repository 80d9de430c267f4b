//! Checks that docs/reference/engine-protocol.md explains every error code of this crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/reference/engine-protocol.md");

/// Returns the codes of errors that the sources in a directory construct with a literal.
fn codes(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(codes(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let calls = source.split("Error::new(").skip(1);
            all.extend(
                calls.filter_map(|call| Some(call.trim_start().strip_prefix('"')?.split_once('"')?.0.to_owned())),
            );
        }
    }
    all
}

#[test]
fn every_failure_code_is_documented() {
    let codes = codes(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(codes.contains("no-namespaces") && codes.contains("too-fast"), "{codes:?}");
    let unexplained: Vec<&String> = codes.iter().filter(|code| !PAGE.contains(&format!("`{code}`"))).collect();
    assert!(unexplained.is_empty(), "not in docs/reference/engine-protocol.md: {unexplained:?}");
}
