"""Unchanged files keep their modification times from one checkout of CI to the next."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / ".ci/restore-times"


def checkout(folder: Path, contents: dict[str, str], manifest: Path) -> dict[str, int]:
    """Write files as in a new checkout, restore their times, and return the modification times."""
    for name, content in contents.items():
        path = folder / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    subprocess.run([sys.executable, SCRIPT, manifest], cwd=folder, check=True)
    return {name: (folder / name).stat().st_mtime_ns for name in contents}


def test_only_changed_files_are_newer_than_in_the_previous_checkout(tmp_path: Path) -> None:
    folder, manifest = tmp_path / "work", tmp_path / "cache" / "checkout.json"
    first = checkout(folder, {"a/lib.rs": "1", "b/lib.rs": "1"}, manifest)
    second = checkout(folder, {"a/lib.rs": "1", "b/lib.rs": "2"}, manifest)
    assert second["a/lib.rs"] == first["a/lib.rs"]
    assert second["b/lib.rs"] > first["b/lib.rs"]
    third = checkout(folder, {"a/lib.rs": "1", "b/lib.rs": "1"}, manifest)
    assert third["a/lib.rs"] == first["a/lib.rs"]
    assert third["b/lib.rs"] > second["b/lib.rs"], "what was compiled last is the content in between"


def test_another_folder_or_a_damaged_manifest_changes_no_time(tmp_path: Path) -> None:
    manifest = tmp_path / "checkout.json"
    first = checkout(tmp_path / "one", {"lib.rs": "1"}, manifest)
    assert checkout(tmp_path / "two", {"lib.rs": "1"}, manifest)["lib.rs"] > first["lib.rs"]
    manifest.write_text("{")
    assert checkout(tmp_path / "two", {"lib.rs": "1"}, manifest)["lib.rs"] > first["lib.rs"]
