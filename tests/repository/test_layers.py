"""The layer check detects all documented violations, and no others."""

from pathlib import Path

import check_layers
import pytest
import rust_source


def cargo(crate: str, *uses: str, kind: str | None = None) -> dict[str, object]:
    dependencies = [{"name": name, "kind": kind} for name in uses]
    return {"packages": [{"name": f"thalweg-{crate}", "dependencies": dependencies}]}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_repository_respects_its_layers() -> None:
    assert check_layers.main() == 0


def test_a_crate_may_not_use_one_above_it() -> None:
    (violation,) = check_layers.crate_violations(cargo("cc", "thalweg-units", "thalweg-sim"))
    assert violation == "crates/cc/Cargo.toml: `cc` uses `sim`, but may use only: units"


def test_tests_of_a_crate_may_use_any_crate() -> None:
    assert not list(check_layers.crate_violations(cargo("cc", "thalweg-sim", "tempfile", kind="dev")))


def test_a_pure_crate_may_not_depend_on_one_that_does_io() -> None:
    (violation,) = check_layers.crate_violations(cargo("tcp", "rustix"))
    assert "`tcp` is pure, and `rustix` is not in PURE_DEPENDENCIES" in violation
    assert not list(check_layers.crate_violations(cargo("engine", "rustix")))


def test_a_new_crate_must_be_assigned_a_layer() -> None:
    (violation,) = check_layers.crate_violations(cargo("sctp"))
    assert "add it with its dependencies" in violation


@pytest.mark.parametrize(
    "code",
    [
        "use std::time::Instant;",
        "use std::time::{Duration, SystemTime};",
        "use std::{\n    collections::BTreeMap,\n    fs::{self, File},\n};",
        "fn f() { std::thread::spawn(|| ()); }",
        'fn f() -> Option<String> { std::env::var("HOME").ok() }',
        "use std::io::Write;",
        "use std::net::UdpSocket;",
        "let seen: HashMap<u32, u32> = Default::default();",
        "let seen = std::collections::HashSet::new();",
        "let mut random = rand::rng();",
        "let seed = OsRng.next_u64();",
        'println!("{x}");',
        "let quote = '\"'; let now = Instant::now(); // \"",
        "fn f<'a>(x: &'a str) { std::fs::read(x); } // it's",
    ],
)
def test_a_pure_crate_may_not_do_io(code: str) -> None:
    assert list(rust_source.impurities(code))


@pytest.mark.parametrize(
    "code",
    [
        "// std::fs is for others",
        "/// See [`std::time::Instant`].\npub struct Time(u64);",
        "/* HashMap\n   thread_rng */",
        'let text = "std::fs and HashMap";',
        'let text = r#"std::io "quoted" Instant"#;',
        "use std::time::Duration;",
        "use std::{collections::{BTreeMap, VecDeque}, fmt, num::NonZero};",
        "fn environment(env: &Environment) {}",
        "#[cfg(test)]\nmod tests {\n    use std::fs;\n    fn f() { if true { std::env::args(); } }\n}",
        "#[cfg(test)]\nuse std::fs;\nfn f() {}",
    ],
)
def test_names_that_only_resemble_io_are_accepted(code: str) -> None:
    assert not list(rust_source.impurities(code))


def test_an_impurity_is_reported_with_its_position(tmp_path: Path) -> None:
    files = {"crates/sim/src/clock.rs": "//! The clock.\n\npub fn now() {\n    let _ = std::time::Instant::now();\n}\n"}
    (violation,) = check_layers.purity_violations(write(tmp_path, files) / "crates")
    assert violation.startswith("crates/sim/src/clock.rs:4: `Instant` in the pure crate `sim`: it has no clock")


def test_test_only_modules_are_not_checked(tmp_path: Path) -> None:
    files = {
        "crates/cc/src/lib.rs": "mod cubic;\n#[cfg(test)]\nmod kit;\n",
        "crates/cc/src/kit.rs": "mod golden;\nuse std::fs;\n",
        "crates/cc/src/kit/golden.rs": "use std::fs;\n",
        "crates/cc/src/cubic.rs": "#[cfg(test)]\n#[allow(dead_code)]\nmod tests;\n",
        "crates/cc/src/cubic/tests.rs": "use std::fs;\n",
    }
    assert not list(check_layers.purity_violations(write(tmp_path, files) / "crates"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("use crate::rows::Rows;", "use crate::stored::StoredRows;"),
        ("use super::rows::{self, Rows};", "use super::stored::{StoredRows};"),
        ("use crate::Rows;", "fn f(rows: &crate::stored::StoredRows) {}"),
    ],
)
def test_modules_of_a_crate_may_not_form_a_cycle(tmp_path: Path, one: str, other: str) -> None:
    files = {
        "crates/store/src/lib.rs": "mod rows;\nmod stored;\npub use rows::Rows;\n",
        "crates/store/src/stored.rs": f"{one}\npub struct StoredRows;\n",
        "crates/store/src/rows.rs": f"{other}\npub struct Rows;\n",
    }
    (violation,) = check_layers.module_violations(write(tmp_path, files) / "crates")
    assert violation.startswith("crates/store/src: `rows`, `stored` use each other")


def test_a_module_may_use_its_parent_or_its_child_but_not_both(tmp_path: Path) -> None:
    files = {
        "crates/cc/src/lib.rs": "mod bbr;\npub use bbr::Bbr;\n",
        "crates/cc/src/bbr/mod.rs": "mod window;\npub struct Bbr;\n",
        "crates/cc/src/bbr/window.rs": "use super::Bbr;\npub struct Recovery;\n",
    }
    root = write(tmp_path, files)
    assert not list(check_layers.module_violations(root / "crates"))
    write(root, {"crates/cc/src/bbr/mod.rs": "mod window;\nuse window::Recovery;\npub struct Bbr(Recovery);\n"})
    (violation,) = check_layers.module_violations(root / "crates")
    assert violation.startswith("crates/cc/src: `bbr`, `bbr::window` use each other")


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("results/tables.py", "from thalweg.analysis import summary"),
        ("results/tables.py", "from ..analysis import summary"),
        ("results/__init__.py", "from thalweg import analysis"),
        ("analysis/flows.py", "import thalweg.report.pages.page"),
        ("analysis/flows.py", "def f():\n    from thalweg.cli.main import app"),
        ("errors.py", "from thalweg.engine import locate"),
        ("newcomer.py", "import thalweg.plan"),
    ],
)
def test_a_python_layer_may_not_import_one_above_it(tmp_path: Path, file: str, line: str) -> None:
    layers = {f"thalweg/{layer}/__init__.py": "" for layer in check_layers.PYTHON if layer != "errors"}
    root = write(tmp_path / "python", {**layers, "thalweg/errors.py": "", f"thalweg/{file}": line})
    (violation,) = check_layers.python_violations(root / "thalweg")
    assert violation.startswith(f"python/thalweg/{file}:")


def test_a_python_layer_may_import_lower_layers_and_shared_modules(tmp_path: Path) -> None:
    files = {
        "thalweg/__init__.py": "__version__ = '1'",
        "thalweg/errors.py": "",
        "thalweg/engine.py": "from thalweg.errors import ThalwegError",
        "thalweg/results/__init__.py": "from thalweg import __version__",
        "thalweg/results/tables.py": "from thalweg.results.run import Run\nfrom . import columns\nimport polars",
        "thalweg/analysis/__init__.py": "from thalweg.results import Run",
        "thalweg/report/pages/page.py": "from ..analysis import flows\nimport thalweg.errors, thalweg.results.run",
    }
    assert not list(check_layers.python_violations(write(tmp_path, files) / "thalweg"))
