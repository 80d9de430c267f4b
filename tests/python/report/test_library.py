"""The drawing script is assembled once, and an outdated one is never used."""

from pathlib import Path

import pytest
from thalweg.report import library


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a separate file for the cached script, and a short script."""
    file = tmp_path / "library.js"
    monkeypatch.setattr(library, "BUNDLE", file)
    monkeypatch.setattr(library, "_bundled", lambda: "made(now)\n")
    monkeypatch.setattr(library, "script", library.script.__wrapped__)
    return file


def test_make_setup_caches_the_script_of_the_installed_libraries() -> None:
    kept = library.BUNDLE.read_text(encoding="utf-8")
    versions = kept.partition("\n")[0]
    assert versions == library._versions()
    assert "</script" not in kept


def test_a_cached_script_is_not_built_again(bundle: Path) -> None:
    library.write()
    bundle.write_text(bundle.read_text().replace("now", "then"))
    assert library.script() == "made(then)\n"


def test_a_missing_or_outdated_script_is_built(bundle: Path) -> None:
    assert library.script() == "made(now)\n"
    bundle.write_text("// vl-convert 0.1, Altair 5\nmade(then)\n")
    assert library.script() == "made(now)\n"
