"""Queries a suite of the distribution without adding it to apt's sources."""

import platform
from pathlib import Path
from typing import Protocol

from thalweg.errors import Exit, ThalwegError
from thalweg.kernel import commands
from thalweg.kernel.commands import Log

KEYRINGS = Path("/usr/share/keyrings")
"""Folder of the keys with which distributions sign their archives."""


class SuiteListener(Protocol):
    """Shows the progress of reading a suite."""

    def phase(self, text: str) -> None:
        """Show the start of a phase."""


def apt_options(folder: Path, suite: str, listener: SuiteListener, log: Log) -> list[str]:
    """Make apt read one suite of the distribution, with separate lists.

    Args:
        folder: Folder for apt's lists, which must exist while the options are used.
        suite: Name of the suite, such as bookworm-backports.
        listener: Shows the progress.
        log: Receives apt's output.

    Returns:
        Options of apt-get and apt-cache.

    Raises:
        ThalwegError: If apt has no sources, or the distribution has no such suite or does not respond.
    """
    form = "$(SITE)|$(RELEASE)"
    said = commands.read(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]) or ""
    lines = [line.split("|") for line in said.splitlines() if line.count("|") == 1]
    # Security updates have a separate archive, which lacks the other suites.
    sites = [site for site, release in lines if "-" not in release] or [site for site, _ in lines]
    if not sites:
        raise ThalwegError(
            "no-sources",
            "apt has no sources to fetch from",
            hint="sudo apt-get update",
            exit_code=Exit.MISSING,
        )
    site = sites[0]
    private = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (private / part).mkdir(parents=True)
    keys = KEYRINGS / f"{platform.freedesktop_os_release().get('ID', '')}-archive-keyring.gpg"
    signed = f"[signed-by={keys}] " if keys.exists() else ""
    (private / "sources.list").write_text(f"deb {signed}{site} {suite} main\n", encoding="utf-8")
    options = [
        f"-oDir::Etc::SourceList={private / 'sources.list'}",
        "-oDir::Etc::SourceParts=/dev/null",
        f"-oDir::State::Lists={private / 'lists'}",
        f"-oDir::Cache={private / 'cache'}",
        "-oAPT::Sandbox::User=",
    ]
    listener.phase(f"downloading the package lists of {suite} from {site}")
    try:
        commands.run(["apt-get", *options, "update"], f"downloading the package lists of {suite}", log, folder=folder)
    except ThalwegError as error:
        raise ThalwegError(
            "no-suite",
            f"{site} has no suite `{suite}`, or does not respond",
            place="--suite",
            found=suite,
            expected="such as bookworm-backports",
            hint=f"apt's output: less {log.file}",
            exit_code=Exit.FAILED,
        ) from error
    return options
