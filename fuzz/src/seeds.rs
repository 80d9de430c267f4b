//! Runs every parser on its seeds, and on damaged forms of them.

use crate::PARSERS;
use crate::damage::damage;
use std::fs;
use std::path::PathBuf;

fn seeds(parser: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds").join(parser);
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file")).collect()
}

#[test]
fn every_parser_has_seeds_and_takes_them() {
    for (name, parse) in PARSERS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "seeds/{name} is empty");
        seeds.iter().for_each(|seed| parse(seed));
    }
}

#[test]
fn fuzz_damaged_seeds() {
    std::thread::scope(|threads| {
        for (name, parse) in PARSERS {
            threads.spawn(move || damage(seeds(name), parse));
        }
    });
}
