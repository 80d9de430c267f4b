"""The wheel is complete: installed without this checkout, it reproduces a study.

The clean environment contains only the wheel and the packages of requirements.lock. These are not downloaded: they are
linked from the environment that runs the tests, which has the same versions.
"""

import re
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
STUDY = "bpftune-arms"
"""The fastest study; `make studies` reproduces all of them."""


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=cwd, env=environment or None, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of programs of an environment with the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    locked = re.findall(r"^([\w.-]+==[^\\\n]+)", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    for requirement in map(Requirement, locked):
        if requirement.marker is None or requirement.marker.evaluate():
            link(requirement.name, packages)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    run(*pip, "check", cwd=folder)  # all requirements of the wheel are installed
    return folder / "bin"


def link(name: str, packages: Path) -> None:
    """Link the files of an installed package into a folder."""
    installed = distribution(name)
    tops = {file.parts[0] for file in installed.files or [] if file.parts[0] not in ("..", "__pycache__")}
    assert tops, name
    for top in tops:
        target = packages / top
        if not target.exists():
            target.symlink_to(Path(str(installed.locate_file(top))))


def test_an_installed_wheel_is_independent_of_the_checkout(clean: Path) -> None:
    code = "import thalweg, thalweg.studies as s; print(thalweg.__file__, *s.ready_made().values(), sep='\\n')"
    places = run(clean / "python", "-c", code, cwd=clean, PATH="/usr/bin:/bin").stdout.split()
    assert len(places) > 1
    assert [place for place in places if not Path(place).is_relative_to(clean.parent)] == []


def test_an_installed_wheel_reproduces_a_study(clean: Path, tmp_path: Path) -> None:
    home = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "NO_COLOR": "1"}
    done = run(clean / "thalweg", "reproduce", STUDY, "--quick", cwd=tmp_path, **home)
    assert re.search(r"^sim: \d+ of \d+ claims hold", done.stdout, flags=re.MULTILINE), done.stdout
    page = tmp_path / "runs" / "studies" / STUDY / "sim-quick.html"
    assert "Maguire" in page.read_text()
