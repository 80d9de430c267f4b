//! Compiles the BPF programs in `bpf/cc/lockstep` with clang.

use libbpf_cargo::SkeletonBuilder;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Debian's default first, then versions that can be installed beside it.
const CLANGS: [&str; 5] = ["clang", "clang-19", "clang-18", "clang-17", "clang-16"];

fn main() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let sources = bpf.join("cc/lockstep");
    for watched in [&sources, &bpf.join("include")] {
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").ok().or_else(find_clang).unwrap_or_else(|| {
        eprintln!("thalweg-lockstep: clang is missing; it compiles the programs in bpf/");
        eprintln!("  do this: sudo apt-get install clang-19     (or set CLANG to where it is)");
        exit(1)
    });
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for algorithm in ["bbr", "cubic", "reno"] {
        let built = SkeletonBuilder::new()
            .source(sources.join(format!("{algorithm}.bpf.c")))
            .obj(out.join(format!("{algorithm}.bpf.o")))
            .clang(&clang)
            .clang_args([Path::new("-mcpu=v3"), Path::new("-I"), &bpf.join("include")])
            .build();
        if let Err(error) = built {
            eprintln!("thalweg-lockstep: {algorithm}.bpf.c does not compile: {error:#}");
            exit(1);
        }
    }
}

fn find_clang() -> Option<String> {
    let works =
        |clang: &&str| Command::new(clang).arg("--version").output().is_ok_and(|output| output.status.success());
    CLANGS.into_iter().find(works).map(str::to_owned)
}
