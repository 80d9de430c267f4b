"""If the set-up cannot continue, it reports what is missing and what to do."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USUAL = ("bash", "cat", "cut", "dirname", "env", "head", "sed", "sort")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a minimal PATH: an ordinary user of Debian without Rust, Python, a C compiler or a browser."""
    for name in USUAL:
        real = shutil.which(name)
        assert real, name
        (tmp_path / name).symlink_to(real)
    program(tmp_path, "id", "echo 1000")
    program(tmp_path, "apt-get", "exit 1")
    return tmp_path


def program(machine: Path, name: str, script: str) -> None:
    (machine / name).write_text(f"#!/bin/bash\n{script}\n")
    (machine / name).chmod(0o755)


def bootstrap(machine: Path, *steps: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment |= {"PATH": str(machine), "HOME": str(machine), "MAKE_GOAL": "demo"}
    command = [str(ROOT / "tools" / "bootstrap"), *steps]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def stopped(machine: Path, *steps: str, **environment: str) -> str:
    done = bootstrap(machine, *steps, **environment)
    assert done.returncode == 1, done
    return done.stderr


def completed(machine: Path, *steps: str) -> str:
    done = bootstrap(machine, *steps)
    assert done.returncode == 0, done
    return done.stderr


@pytest.fixture
def kernel_machine(machine: Path) -> Path:
    """Return the same PATH with every program that tests of real kernels start, but without user-mode Linux."""
    for name in (
        "ip",
        "tc",
        "ethtool",
        "unshare",
        "nsenter",
        "setpriv",
        "chrt",
        "sysctl",
        "iperf3",
        "nft",
        "tcpdump",
        "strace",
    ):
        program(machine, name, "exit 0")
    for name in ("make", "gcc", "flex", "bison", "bc", "xz", "busybox"):
        program(machine, name, "exit 0")
    return machine


def test_missing_rust_is_reported_with_its_source(machine: Path) -> None:
    message = stopped(machine, "system")
    assert "cannot continue: cargo (Rust) is missing" in message
    assert "do this: install Rust" in message


def test_rust_missing_from_the_path_is_reported(machine: Path) -> None:
    (machine / ".cargo" / "bin").mkdir(parents=True)
    program(machine / ".cargo" / "bin", "cargo", "exit 0")
    assert 'do this: . "$HOME/.cargo/env"' in stopped(machine, "system")


def test_old_rust_is_refused_with_both_versions(machine: Path) -> None:
    program(machine, "cargo", "exit 0")
    program(machine, "rustc", "echo 'rustc 1.63.0 (4b91a6ea7 2022-08-08)'")
    message = stopped(machine, "system")
    assert "Rust 1.63.0 is too old: 1." in message
    assert "do this: rustup update" in message


def test_a_missing_c_compiler_is_reported_with_its_package(machine: Path) -> None:
    program(machine, "cargo", "exit 0")
    program(machine, "rustc", "echo 'rustc 1.999.0'")
    assert "do this: sudo apt-get install gcc libc6-dev" in stopped(machine, "system")


def test_old_python_is_refused_with_its_version(machine: Path) -> None:
    program(machine, "python3", '[ "$1" = --version ] && echo Python 3.9.2 || exit 1')
    message = stopped(machine, "venv")
    assert "Python 3.11 or newer is missing (found: Python 3.9.2)" in message
    assert "make demo PYTHON=" in message


def test_missing_chromium_is_reported_with_its_package(machine: Path) -> None:
    message = stopped(machine, "browser")
    assert "Chromium is missing" in message
    assert "do this: sudo apt-get install chromium" in message


def test_missing_clippy_is_reported_with_its_component(machine: Path) -> None:
    program(machine, "cargo", '[ "$1" = fmt ]')
    assert "do this: rustup component add rustfmt clippy" in stopped(machine, "lints")


def test_requirements_of_kernel_tests_are_reported_together(kernel_machine: Path) -> None:
    assert completed(kernel_machine, "kernel") == ""
    for name in ("unshare", "nsenter", "iperf3"):
        (kernel_machine / name).unlink()
    message = stopped(kernel_machine, "kernel")
    assert "cannot continue: missing: unshare nsenter iperf3" in message
    assert "do this: sudo apt-get install util-linux iperf3\n" in message


def test_requirements_of_a_kernel_build_are_reported_together(kernel_machine: Path) -> None:
    for name in ("flex", "bison", "bc", "xz"):
        (kernel_machine / name).unlink()
    assert "do this: sudo apt-get install flex bison bc xz-utils\n" in stopped(kernel_machine, "kernel")


def test_skipped_tests_are_listed_at_the_end(kernel_machine: Path) -> None:
    program(kernel_machine, "apt-cache", "exit 100")
    assert completed(kernel_machine, "kernel") == ""
    message = completed(kernel_machine, "left-out")
    assert "the kernel of 'uml' is not built" in message
    assert "you are not root" in message
    assert "user namespaces" not in message, "this user may make them"


def test_prometheus_is_required_only_in_ci(kernel_machine: Path) -> None:
    program(kernel_machine, "apt-cache", "exit 100")
    assert completed(kernel_machine, "prometheus") == ""
    assert "Prometheus is missing: the dashboard's queries" in completed(kernel_machine, "left-out")
    assert "cannot continue: Prometheus is missing" in stopped(kernel_machine, "prometheus", THALWEG_CI="1")


def test_the_benchmarked_web_server_is_required_only_in_ci(kernel_machine: Path) -> None:
    program(kernel_machine, "apt-cache", "exit 100")
    assert completed(kernel_machine, "nginx") == ""
    assert "nginx is missing: the benchmark" in completed(kernel_machine, "left-out")
    assert "cannot continue: nginx is missing" in stopped(kernel_machine, "nginx", THALWEG_CI="1")


@pytest.mark.parametrize(
    ("package", "folder", "programs"),
    [("prometheus", "bin", ["prometheus", "promtool"]), ("nginx", "sbin", ["nginx"])],
)
def test_servers_for_tests_are_unpacked_and_not_installed(
    machine: Path, package: str, folder: str, programs: list[str]
) -> None:
    for name in ("mkdir", "mktemp", "mv", "rm"):
        (machine / name).symlink_to(str(shutil.which(name)))
    program(machine, "apt-cache", "exit 0")
    program(machine, "apt-get", f'[ "$1" = download ] && : >{package}_2.deb')
    unpack = f"mkdir -p usr/{folder} && for name in {' '.join(programs)}; do : >usr/{folder}/$name; done"
    program(machine, "dpkg-deb", unpack)
    assert "not installed" in completed(machine, package)
    kept = machine / ".cache" / "thalweg" / package
    assert sorted(path.name for path in kept.iterdir()) == programs


def test_without_namespaces_the_kernel_engine_is_reported_as_untested(kernel_machine: Path) -> None:
    program(kernel_machine, "unshare", "exit 1")
    assert "no user namespaces: 'kernel' was not tested" in completed(kernel_machine, "left-out")


def test_without_skipped_tests_nothing_is_reported(kernel_machine: Path) -> None:
    program(kernel_machine, "id", "echo 0")
    built = kernel_machine / ".cache" / "thalweg" / "uml" / "current"
    built.mkdir(parents=True)
    (built / "kernel.json").write_text("{}")
    servers = ("slurmctld", "slurmd", "munged", "prometheus", "promtool", "nginx")
    for name in ("qemu-system-x86_64", "java", "buildah", "mmdebstrap", "newuidmap", *servers):
        program(kernel_machine, name, "exit 0")
    fetched = kernel_machine / ".cache" / "thalweg" / "vm" / "current"
    fetched.mkdir(parents=True)
    (fetched / "kernel.json").write_text("{}")
    assert completed(kernel_machine, "kernel", "left-out") == ""


@pytest.fixture
def checkout(machine: Path) -> Path:
    """Return a checkout whose `thalweg` logs its calls and exits with the code THALWEG_ENDS."""
    program(machine, "uname", "echo x86_64")
    program(machine, "qemu-system-x86_64", "exit 0")
    for name in ("find", "grep", "mkdir", "sha256sum", "xargs"):
        (machine / name).symlink_to(str(shutil.which(name)))
    program(machine, "gcc", "echo gcc 12")
    folder = machine / "checkout"
    for name in ("tools/bootstrap", "python/thalweg/data/uml.config"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "python" / "thalweg" / "kernel").mkdir()
    (folder / ".venv" / "bin").mkdir(parents=True)
    built = "$HOME/.cache/thalweg/$([ $2 = build ] && echo uml || echo vm)/current"
    program(
        folder / ".venv" / "bin",
        "thalweg",
        'echo "$@" >>"$HOME/called"\n'
        f'[ "$THALWEG_ENDS" != 0 ] || {{ mkdir -p {built}/modules/fs/9p && echo >{built}/kernel.json; }}\n'
        'exit "$THALWEG_ENDS"',
    )
    return folder


def built(
    checkout: Path, ends: int, step: str = "uml", **environment: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the step; return its result, and all calls of `thalweg` so far."""
    machine = checkout.parent
    environment |= {"PATH": str(machine), "HOME": str(machine), "MAKE_GOAL": "test", "THALWEG_ENDS": str(ends)}
    command = [str(checkout / "tools" / "bootstrap"), step]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done, (machine / "called").read_text().splitlines()


def test_the_virtual_time_kernel_is_built_if_missing(checkout: Path) -> None:
    done, calls = built(checkout, 0)
    assert (done.returncode, calls) == (0, ["kernel build"]), done.stderr
    done, calls = built(checkout, 0)
    assert (done.stderr, calls) == ("", ["kernel build"]), "once is enough"
    (checkout / "python" / "thalweg" / "data" / "uml.config").write_text("CONFIG_HZ=100\n")
    assert built(checkout, 0)[1] == ["kernel build"] * 2, "other options make another kernel"
    shutil.rmtree(checkout.parent / ".cache")
    assert built(checkout, 0)[1] == ["kernel build"] * 3, "the cache is not ours alone"


def test_tests_without_a_kernel_build_are_skipped_except_in_ci(checkout: Path) -> None:
    assert built(checkout, 4)[0].returncode == 0
    done, calls = built(checkout, 4, THALWEG_CI="1")
    assert done.returncode == 1
    assert "the kernel of the engine uml was not built" in done.stderr
    assert len(calls) == 2


def test_a_failed_kernel_build_stops_the_tests(checkout: Path) -> None:
    assert built(checkout, 1)[0].returncode == 1


def test_guest_kernels_are_fetched_if_one_is_missing(checkout: Path) -> None:
    with_9p, default = "kernel fetch linux-image-amd64 --force", "kernel fetch"
    done, calls = built(checkout, 4, "vm")
    assert (done.returncode, calls) == (0, [with_9p]), "its tests are left out"
    done, calls = built(checkout, 4, "vm", THALWEG_CI="1")
    assert done.returncode == 1
    assert "no kernel for guests was fetched" in done.stderr
    assert built(checkout, 0, "vm", THALWEG_CI="1")[1] == [with_9p, with_9p, with_9p, default]
    assert built(checkout, 0, "vm", THALWEG_CI="1")[1] == [with_9p, with_9p, with_9p, default], "once is enough"
    shutil.rmtree(checkout.parent / ".cache" / "thalweg" / "vm" / "current" / "modules")
    assert built(checkout, 0, "vm")[1][4:] == [with_9p, default], "one without 9p runs no programs in guests"


def test_a_default_setup_has_no_kernel_requirements() -> None:
    lines = (ROOT / "Makefile").read_text().splitlines()
    recipe = lines[next(number for number, line in enumerate(lines) if line.startswith("setup:")) + 1]
    assert recipe.split() == ["@tools/bootstrap", "system", "venv", "engine"]


def test_the_missing_bpf_compiler_is_reported(machine: Path) -> None:
    program(machine, "cc", "exit 1")
    message = stopped(machine, "bpf")
    assert "missing: clang make pkg-config libelf zlib" in message
    assert "do this: sudo apt-get install clang" in message
    assert "libelf-dev zlib1g-dev" in message


def test_a_versioned_clang_is_accepted(machine: Path) -> None:
    for name in ("clang-19", "make", "pkg-config", "cc"):
        program(machine, name, "exit 0")
    assert completed(machine, "bpf") == ""
