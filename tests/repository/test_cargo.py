"""The parts of a build that CI caches: libraries from an earlier run."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_test_target_is_named_like_a_library() -> None:
    # `cargo clean --package` removes files by target name: for a test named `cc` it also removes the library `cc`.
    libraries = set(re.findall(r'^name = "(.+)"$', (ROOT / "Cargo.lock").read_text(), re.MULTILINE))
    files = [*ROOT.glob("crates/*/tests/*.rs"), *ROOT.glob("fuzz/tests/*.rs"), *ROOT.glob("crates/*/tests/*/main.rs")]
    names = {file.parent.name if file.name == "main.rs" else file.stem for file in files}
    assert len(names) > 15
    assert not names & libraries
