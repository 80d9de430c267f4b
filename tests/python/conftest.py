"""What several tests need."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def fake_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A thalweg-engine that does as FAKE_ENGINE says; see fake_engine.py."""
    binary = tmp_path / "fake-engine"
    binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{HERE / "fake_engine.py"}" "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("THALWEG_ENGINE", str(binary))
    return binary
