"""References in the documents of the repository exist, and their examples work."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import check_layers
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("studies/**/*.md")])
LINK = re.compile(r"\]\((?!https?://|#)([^)\s#]+)")
CODE = re.compile(r"`([^`\n]+)`")
FOLDERS = ("bench/", "crates/", "docs/", "packaging/", "python/", "scenarios/", "studies/", "tests/", "tools/")


def named_paths(document: Path) -> Iterator[Path]:
    """Yield the links of a document, and the names in backticks that look like a path of the repository."""
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    for link in LINK.findall(text):
        yield document.parent / link
    for code in CODE.findall(text):
        if code.startswith(FOLDERS) and not re.search(r"[ <>*]", code):
            yield ROOT / code


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_in_documents_exists(document: Path) -> None:
    missing = [str(path) for path in named_paths(document) if not path.exists()]
    assert not missing


def test_a_path_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    document = tmp_path / "guide.md"
    document.write_text("See [the loss](crates/loss.rs), `crates/nowhere`, https://example.org and `thalweg run`.\n")
    assert [path.exists() for path in named_paths(document)] == [False, False]


def test_the_scenario_of_the_readme_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    scenario = tmp_path / f"{tomllib.loads(block)['name']}.toml"
    scenario.write_text(block)
    command = [Path(sys.executable).with_name("thalweg"), "check", scenario]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_the_actual_output(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    (tmp_path / "duel.toml").write_text(re.findall(r"```toml\n(.*?)```", readme, flags=re.DOTALL)[0])
    shown = re.search(r"\$ thalweg run duel.toml\n(.*?)```", readme, flags=re.DOTALL)
    assert shown
    command = [Path(sys.executable).with_name("thalweg"), "run", "duel.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [line.rstrip() for line in done.stdout.splitlines()] == shown[1].splitlines()


def test_every_make_target_in_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for document in DOCUMENTS:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(), flags=re.MULTILINE))
        assert named <= targets, document.name


def test_architecture_lists_the_checked_layers() -> None:
    drawn: dict[str, set[str]] = {}
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| \[(\w+)\]\((?:crates/|fuzz).*\|\s*([^|]*?)\s*\|$", text, flags=re.MULTILINE)
    for name, uses in rows:
        drawn[name] = set(drawn) if uses == "all of the above" else {use for use in uses.split(", ") if use}
    assert drawn == check_layers.RUST
