"""The container image runs as an ordinary user, with the exit codes of checks.

Packages that `thalweg run --no-report` does not load are excluded from the image of this test; `test_wheel` tests the
full set. The user has a range of subordinate user ids.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from left_out import skip_or_fail
from thalweg.errors import Exit

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "polars", "_polars_runtime_32", "pyarrow", "numpy", "numpy.libs", "scipy", "scipy.libs",
    "pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions.py",
    "typer", "annotated_doc", "shellingham", "rich", "pygments", "markdown_it", "mdurl",
)  # fmt: skip
"""Packages that `thalweg run --no-report` loads."""

USER, IDS = "daemon", "daemon:200000:65536"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Create a folder that ordinary users can read, unlike pytest's folders."""
    if os.geteuid() != 0:
        skip_or_fail("another user is only available to root")
    if not all(map(shutil.which, ("buildah", "mmdebstrap", "newuidmap"))):
        skip_or_fail("buildah, mmdebstrap or newuidmap is missing: tools/bootstrap image")
    if sys.version_info[:2] != (3, 11):
        skip_or_fail("the image has the packages of this Python only if it is 3.11")
    temporary = Path(tempfile.mkdtemp(prefix="thalweg-image-"))
    temporary.chmod(0o755)
    yield temporary
    shutil.rmtree(temporary)


@pytest.fixture(scope="module")
def image(folder: Path, wheel: Path) -> Path:
    """Build the image as `make image` does, but with `PACKAGES` only; return its archive."""
    packages = folder / "packages"
    packages.mkdir()
    installed = Path(pytest.__file__).parents[1]
    for name in PACKAGES:
        if (installed / name).exists():  # some versions have no folder of shared libraries
            (packages / name).symlink_to(installed / name)
    build = [ROOT / "packaging/image/build", "--wheel", wheel, "--packages", packages, folder / "dist"]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def container(folder: Path, image: Path) -> str:
    """Return a command with which an ordinary user runs a command in a container of the image, in the folder `work`."""
    home = folder / "home"
    for path in (home, home / "work"):
        path.mkdir()
        shutil.chown(path, USER)
    shutil.copy(ROOT / "scenarios/quickstart.toml", home / "work")
    (folder / "ids").write_text(IDS)
    buildah = f"buildah --root {home}/store --runroot {home}/run"
    named = as_user(folder, f"{buildah} from --name quickstart oci-archive:{image}")
    assert named.returncode == 0, named.stderr
    return f"{buildah} run --isolation chroot --volume {home}/work:/work quickstart "


def as_user(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command as the user, whose subordinate ids are set in a mount namespace, so that the machine's files
    are unchanged.
    """
    ids = "".join(f"mount --bind {folder}/ids {file} && " for file in ("/etc/subuid", "/etc/subgid"))
    user = f"env HOME={folder}/home XDG_RUNTIME_DIR={folder}/home setpriv --reuid={USER} --regid={USER} --clear-groups"
    script = f"{ids} cd {folder}/home && {user} {command}"
    return subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)


def test_an_unprivileged_user_checks_the_quickstart_in_a_container(folder: Path, container: str) -> None:
    bounds = {"goodput(bbr) > 1Mbps": "holds", "goodput(bbr) > goodput(cubic)": "does not hold"}
    checked = " ".join(f"--check '{bound}'" for bound in bounds)
    run = f"thalweg run quickstart.toml --set duration=3s --set path.buffer=4bdp --no-report {checked}"
    done = as_user(folder, f"{container} {run}")
    for bound, verdict in bounds.items():
        assert f"{verdict}: {bound}: " in done.stdout, done.stderr
    assert done.returncode == Exit.CHECK_BROKEN
    (tables,) = (folder / "home/work").glob("runs/quickstart-sim-*/flows")
    assert all(table.owner() == USER for table in tables.iterdir())
