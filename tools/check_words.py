"""Checks that new text is written in plain, standard English.

`tools/words.toml` lists rejected patterns, each with its replacement, and the files where one is allowed with a reason.
A pattern may have a limit: the number of remaining uses. Limits can only decrease: the check fails if there are more
uses, and also if there are fewer, until the limit is lowered.

    python tools/check_words.py            prints all violations; fails if there are any
    python tools/check_words.py --lower    lowers limits to the number of remaining uses
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(__file__).parent / "words.toml"
SUFFIXES = {".py", ".rs", ".c", ".h", ".md", ".toml", ".j2", ".js", ".css", ".service", ".sh", ""}
"""Suffixes of the files that are checked; most names without a suffix are scripts."""
SKIPPED = (
    "tools/words.toml",
    "LICENSE",
    "LICENSES/",
    "Cargo.lock",
    "tests/repository/test_words.py",
    "bpf/include/",
    "fuzz/seeds/",
)
"""Path prefixes of files that are not checked."""
LINES = "long line"
"""Name of the pattern for long lines, which does not apply to markup and to code blocks of Markdown."""
MARKUP = (".j2", ".css")
MAX_SHOWN = 10
"""Maximum number of uses that are printed for a pattern."""


@dataclass(frozen=True)
class Pattern:
    """A rejected pattern."""

    name: str
    regex: re.Pattern[str]
    instead: str
    suffixes: Sequence[str]
    """Suffixes of the files in which it is rejected; empty: all files."""
    limit: int
    """Number of remaining uses that are tolerated."""
    allowed: frozenset[str]
    """Files in which it is allowed; words.toml gives the reasons."""


@dataclass(frozen=True)
class Use:
    """One occurrence of a pattern, with its line."""

    file: str
    line: int
    text: str


def patterns(file: Path = FILE) -> list[Pattern]:
    """Read the list of patterns."""
    listed = tomllib.loads(file.read_text())
    allowed = [(entry["pattern"], entry["file"]) for entry in listed.get("allowed", ())]
    return [
        Pattern(
            entry["name"],
            re.compile(entry["regex"]),
            entry["instead"],
            entry.get("suffixes", ()),
            entry.get("limit", 0),
            frozenset(path for name, path in allowed if name == entry["name"]),
        )
        for entry in listed["pattern"]
    ]


def texts(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the lines of every checked file, by path."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.splitlines() if Path(name).suffix in SUFFIXES and not name.startswith(SKIPPED)]
    return {name: (root / name).read_text(errors="replace").splitlines() for name in names if (root / name).is_file()}


def uses(pattern: Pattern, files: dict[str, list[str]]) -> Iterator[Use]:
    """Yield the uses of a pattern, except in files where it is allowed."""
    for name, lines in files.items():
        if pattern.name == LINES and name.endswith(MARKUP):
            continue
        if name in pattern.allowed or (pattern.suffixes and Path(name).suffix not in pattern.suffixes):
            continue
        is_code = False
        for number, line in enumerate(lines, 1):
            is_code ^= line.lstrip().startswith("```")
            if pattern.name == LINES and name.endswith(".md") and (is_code or line.startswith("    ")):
                continue
            for _ in pattern.regex.finditer(line):
                yield Use(name, number, line.strip())


def violations(listed: Sequence[Pattern], files: dict[str, list[str]]) -> Iterator[str]:
    """Yield a message for each pattern whose number of uses differs from its limit."""
    for pattern in listed:
        matches = list(uses(pattern, files))
        if len(matches) > pattern.limit:
            more = len(matches) - pattern.limit
            yield f"`{pattern.name}`: {more} uses above the limit of {pattern.limit}; write {pattern.instead}"
            yield from (f"    {use.file}:{use.line}: {use.text[:100]}" for use in matches[:MAX_SHOWN])
        elif len(matches) < pattern.limit:
            yield f"`{pattern.name}`: {len(matches)} uses, below the limit {pattern.limit}; run: check_words.py --lower"


def lower(listed: Sequence[Pattern], files: dict[str, list[str]], file: Path = FILE) -> None:
    """Lower the limits in the file to the number of remaining uses."""
    text = file.read_text()
    for pattern in listed:
        count = sum(1 for _ in uses(pattern, files))
        if count < pattern.limit:
            begin = text.index(f'name = "{pattern.name}"')
            text = text[:begin] + text[begin:].replace(f"limit = {pattern.limit}\n", f"limit = {count}\n", 1)
    file.write_text(text)


def main() -> int:
    """Print all violations; the exit code is 1 if there are any."""
    listed, files = patterns(), texts()
    if "--lower" in sys.argv:
        lower(listed, files)
        listed = patterns()
    problems = list(violations(listed, files))
    for message in problems:
        print(message, file=sys.stderr)
    if not problems:
        print(f"words: {len(listed)} patterns, {sum(pattern.limit for pattern in listed)} tolerated uses")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
