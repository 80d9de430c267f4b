"""Checks that every layer of thalweg imports only lower layers, also within crates, and that pure crates are pure.

ARCHITECTURE.md describes the layers; the tables below are their only machine-readable form. A pure crate reads no
clock, no operating system's randomness, no file and no socket, starts no thread, and never iterates over a hash table:
time, randomness and order are arguments, so that the same plan produces the same bytes everywhere. Tests of pure crates
are exempt.

    python tools/check_layers.py        prints every violation, and fails when there is one

Limitations: paths in macros of other crates and calls into C are not detected (the workspace denies `unsafe`).
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import python_imports
import rust_modules
import rust_source

ROOT = Path(__file__).resolve().parent.parent

RUST: Mapping[str, set[str]] = {
    "units": set(),
    "netns": set(),
    "plan": {"units"},
    "trace": {"units"},
    "cc": {"units"},
    "link": {"units", "plan", "trace"},
    "tcp": {"units", "cc"},
    "traffic": {"units", "plan"},
    "sim": {"units", "plan", "trace", "cc", "link", "tcp", "traffic"},
    "policy": {"units"},
    "store": {"units", "plan", "trace"},
    "lab": {"units", "netns", "plan", "trace", "cc", "link", "traffic", "store"},
    "lockstep": {"units", "plan"},
    "quic": set(),
    "agent": {"units", "netns", "trace", "cc", "store", "policy"},
    "fuzz": {"units", "plan", "policy", "lab"},
    "engine": {"units", "netns", "plan", "trace", "cc", "link", "tcp", "traffic", "sim", "policy", "store", "lab"},
}
"""Crates of the workspace that each crate may use, except in tests."""

PURE = {"units", "plan", "trace", "cc", "link", "tcp", "traffic", "sim", "policy"}

PURE_DEPENDENCIES = {
    "arrayvec",
    "libm",
    "rand_core",
    "rand_xoshiro",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "smallvec",
    "thiserror",
}
"""Third-party crates that a pure crate may use; none of them accesses the outside world without a handle from the
caller.
"""

PYTHON: Mapping[str, set[str]] = {
    "errors": set(),
    "printable": set(),
    "engine": {"errors", "engine_output"},
    "engine_output": set(),
    "processes": set(),
    "scratch": set(),
    "files": {"errors"},
    "collector": set(),
    "scenario": set(),
    "plan": {"scenario"},
    "run": {"plan"},
    "results": set(),
    "executors": {"run", "results"},
    "analysis": {"results"},
    "checks": {"run", "analysis"},
    "records": {"results"},
    "policy_file": set(),
    "advise": {"analysis", "records", "policy_file"},
    "report": {"analysis", "records", "advise"},
    "validate": {"run", "analysis"},
    "studies": {"run", "checks", "report", "policy_file", "advise", "synth"},
    "api": {"run", "report"},
    "search": {"run", "checks", "report", "executors"},
    "kernel": set(),
    "synth": {"run", "results", "records"},
    "cli": {"studies", "validate", "search", "kernel", "synth", "executors"},
    "__main__": {"cli"},
}
"""Layers directly below each layer of `python/thalweg`; the layers below those are permitted as well."""

PYTHON_SHARED = {"errors", "printable", "engine", "engine_output", "files", "processes", "scratch", "collector"}
"""Modules that every layer outside of this set may import."""


def crate_violations(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the forbidden dependencies in the output of `cargo metadata`."""
    for package in metadata["packages"]:
        crate = package["name"].removeprefix("thalweg-")
        if crate not in RUST:
            yield f"crates/{crate}: not in the table RUST of tools/check_layers.py; add it with its dependencies"
            continue
        for dependency in package["dependencies"]:
            if dependency["kind"] == "dev":
                continue
            name = dependency["name"]
            if name.startswith("thalweg-"):
                ours = name.removeprefix("thalweg-")
                if ours not in RUST[crate]:
                    may = ", ".join(sorted(RUST[crate])) or "no other crate of the workspace"
                    yield f"crates/{crate}/Cargo.toml: `{crate}` uses `{ours}`, but may use only: {may}"
            elif crate in PURE and name not in PURE_DEPENDENCIES:
                yield f"crates/{crate}/Cargo.toml: `{crate}` is pure, and `{name}` is not in PURE_DEPENDENCIES"


def purity_violations(crates: Path) -> Iterator[str]:
    """Yield every position under `crates/*/src` where a pure crate accesses the outside world."""
    for crate in sorted(PURE):
        for file in rust_source.files_without_tests(crates / crate / "src"):
            for line, impurity, why in rust_source.impurities(file.read_text()):
                yield f"{file.relative_to(crates.parent)}:{line}: `{impurity}` in the pure crate `{crate}`: {why}"


def module_violations(crates: Path) -> Iterator[str]:
    """Yield an import cycle between the modules of each crate that has one."""
    for crate in sorted(RUST):
        if cycle := rust_modules.cycle(crates / crate / "src"):
            names = ", ".join(f"`{'::'.join(module) or 'lib'}`" for module in cycle)
            yield f"crates/{crate}/src: {names} use each other; move their shared code to a lower module"


def python_violations(package: Path) -> Iterator[str]:
    """Yield every import of a layer of the Python package that is not below the importing layer."""
    for imported in python_imports.between_layers(package):
        place = f"{imported.file.relative_to(package.parent.parent)}:{imported.line}"
        unknown = {imported.importer, imported.imported} - PYTHON.keys()
        if unknown:
            yield f"{place}: layer `{unknown.pop()}` is not in the table PYTHON of tools/check_layers.py"
        elif imported.imported not in below(imported.importer):
            may = ", ".join(sorted(below(imported.importer))) or "no other layer"
            yield f"{place}: `{imported.importer}` imports `{imported.imported}`, but may import only: {may}"


def below(layer: str) -> set[str]:
    """Return all layers that `layer` may import."""
    direct = PYTHON[layer]
    shared = set() if layer in PYTHON_SHARED else PYTHON_SHARED
    return direct | shared | {deeper for one in direct for deeper in below(one)}


def main() -> int:
    """Print all violations; the exit code is 1 if there are any."""
    command = ["cargo", "metadata", "--no-deps", "--format-version=1", "--offline"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    violations = [
        *crate_violations(metadata),
        *purity_violations(ROOT / "crates"),
        *module_violations(ROOT / "crates"),
        *python_violations(ROOT / "python" / "thalweg"),
    ]
    for violation in violations:
        print(violation, file=sys.stderr)
    if not violations:
        print(f"layers: {len(metadata['packages'])} crates and {len(PYTHON)} Python layers use only lower layers")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
