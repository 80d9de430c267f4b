//! Compiles programs in `bpf/` with clang: for the build scripts of the crates that carry them.

use libbpf_cargo::SkeletonBuilder;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Debian's default compiler first, then versions that can be installed alongside it.
const CLANGS: [&str; 5] = ["clang", "clang-19", "clang-18", "clang-17", "clang-16"];

/// Compiles `NAME.bpf.c` of `folder` (within `bpf/`) to `NAME.bpf.o` in cargo's output folder, for each of `names`.
/// Ends the build with a message if it cannot.
pub fn compile(folder: &str, names: &[&str]) {
    let bpf = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../bpf");
    let sources = bpf.join(folder);
    for watched in [&sources, &bpf.join("include"), &bpf.join("cc/cpu_rules")] {
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    let package = env!("CARGO_PKG_NAME");
    let clang = std::env::var("CLANG").ok().or_else(find_clang).unwrap_or_else(|| {
        eprintln!("{package}: clang is missing; it compiles the programs in bpf/");
        eprintln!("  do this: sudo apt-get install clang-19     (or set CLANG to its path)");
        exit(1)
    });
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for name in names {
        let built = SkeletonBuilder::new()
            .source(sources.join(format!("{name}.bpf.c")))
            .obj(out.join(format!("{name}.bpf.o")))
            .clang(&clang)
            // Freestanding, because the C library's <stdint.h> needs headers of the build machine's architecture.
            .clang_args([Path::new("-mcpu=v3"), Path::new("-ffreestanding"), Path::new("-I"), &bpf.join("include")])
            .build();
        if let Err(error) = built {
            eprintln!("{package}: {name}.bpf.c does not compile: {error:#}");
            exit(1);
        }
    }
}

fn find_clang() -> Option<String> {
    let works =
        |clang: &&str| Command::new(clang).arg("--version").output().is_ok_and(|output| output.status.success());
    CLANGS.into_iter().find(works).map(str::to_owned)
}
