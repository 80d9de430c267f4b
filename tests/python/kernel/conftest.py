"""A separate cache for every test, and a tree that builds in a second with the real make and gcc."""

import os
import shutil
from pathlib import Path

import pytest

PROGRAMS = ("make", "gcc", "ld", "flex", "bison", "bc", "gzip")

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 7
SUBLEVEL = 8
EXTRAVERSION = -rc9

allnoconfig:
\tgrep -v CONFIG_DROPPED= $(KCONFIG_ALLCONFIG) > $(O)/.config
\tgrep -q 'default 1000' $(KBUILD_KCONFIG)

linux:
\tmkdir -p $(O)/include/config
\techo 6.7.8-rc9 > $(O)/include/config/kernel.release
\t@echo "  CC      main.o"
\tgcc -o $(O)/linux $(CURDIR)/main.c
"""
"""A Makefile with a kernel's version, and the targets that a build uses."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of this test's kernels, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("THALWEG_UML_KERNEL", raising=False)
    return tmp_path / "cache" / "thalweg" / "uml"


@pytest.fixture
def toolchain() -> None:
    """Require the tools that build a kernel; if any is missing, the test is skipped, or fails in CI."""
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing and os.environ.get("THALWEG_CI"):
        pytest.fail(f"missing: {missing}")
    if missing:
        pytest.skip(f"kernels cannot be built here: {', '.join(missing)} missing")


@pytest.fixture
def tree(tmp_path: Path, toolchain: None) -> Path:
    """Return a tree that resembles a kernel's, and builds a program that prints its version."""
    folder = tmp_path / "tree"
    for name, text in {
        "Makefile": MAKEFILE,
        "Kconfig": 'mainmenu "Linux"\nsource "arch/um/Kconfig"\n',
        "arch/um/Kconfig": "config HZ\n\tint\n\tdefault 100\n\nconfig UML_TIME_TRAVEL_SUPPORT\n\tbool\n",
        "net/Kconfig": "config DROPPED\n\tbool\n\tdepends on MOON\n\tdepends on SUN\n",
        "scripts/Makefile.build": "",
        "main.c": '#include <stdio.h>\nint main(void) { puts("6.7.8-rc9"); return 0; }\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
