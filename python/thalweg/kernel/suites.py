"""Looks at a suite of the distribution that is not among apt's sources, without root and without changing them."""

import platform
from pathlib import Path
from typing import Protocol

from thalweg.errors import Exit, ThalwegError
from thalweg.kernel import commands
from thalweg.kernel.commands import Log

KEYRINGS = Path("/usr/share/keyrings")
"""Where distributions keep the keys that their archives are signed with."""


class SuiteListener(Protocol):
    """Who shows how far a look at a suite is."""

    def phase(self, text: str) -> None:
        """Show that a part begins."""


def apt_options(folder: Path, suite: str, listener: SuiteListener, log: Log) -> list[str]:
    """Make apt look at one suite of the distribution, in lists of our own.

    Args:
        folder: Where apt keeps these lists; they are needed as long as the options are.
        suite: Such as bookworm-backports. It need not be among apt's sources.
        listener: Who shows how far it is.
        log: What apt prints.

    Returns:
        Options of apt-get and apt-cache.

    Raises:
        ThalwegError: If apt has no sources, or the distribution has no such suite.
    """
    form = "$(SITE)|$(RELEASE)"
    said = commands.read(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]) or ""
    lines = [line.split("|") for line in said.splitlines() if line.count("|") == 1]
    # Updates for security have an archive of their own, where the other suites are not.
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
    listener.phase(f"asking {site} for {suite}")
    try:
        commands.run(["apt-get", *options, "update"], f"asking for {suite}", log, folder=folder)
    except ThalwegError as error:
        raise ThalwegError(
            "no-suite",
            f"{site} has no suite `{suite}`, or does not answer",
            place="--suite",
            found=suite,
            expected="such as bookworm-backports",
            hint=f"what apt said: less {log.file}",
            exit_code=Exit.FAILED,
        ) from error
    return options
