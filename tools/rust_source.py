"""Reads Rust source to find accesses to the outside world.

This is not a parser. It blanks comments, string literals and `#[cfg(test)]` items, expands nested `use` lists, and
searches for names. That suffices because these names are distinctive.
"""

import re
from collections.abc import Iterator
from pathlib import Path

FORBIDDEN = (
    (r"\b(?:Instant|SystemTime)\b", "it has no clock; take the time as an argument"),
    (r"\bstd::(?:fs|io|net|os|process)\b", "it does no I/O"),
    (r"\b(?:e?print(?:ln)?|dbg)!", "it does no I/O"),
    (r"\bstd::env\b", "it reads no environment"),
    (r"\b(?:std::thread|thread_local!)", "it has no threads"),
    (r"\b(?:HashMap|HashSet|RandomState)\b", "hash order differs between runs; use BTreeMap, BTreeSet or a Vec"),
    (r"\b(?:rand::rng|thread_rng|OsRng|SysRng|getrandom|from_entropy|from_os_rng)\b", "randomness is an argument"),
)

TEST_MODULE_FILE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
TOKENS_TO_BLANK = re.compile(
    r"""
      //[^\n]*                                    # a line comment, documentation too
    | /\*.*?\*/                                   # a block comment (nested ones are not used here)
    | b?r(?P<hashes>\#*)".*?"(?P=hashes)          # a raw string
    | b?"(?:\\.|[^"\\])*"                         # a string
    | b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\\n])'     # a character, but no lifetime
    """,
    re.DOTALL | re.VERBOSE,
)


def files_without_tests(source: Path) -> Iterator[Path]:
    """Yield the Rust files under `source` that are part of the library itself."""
    files = sorted(source.rglob("*.rs"))
    tests = {path for file in files for path in test_modules(file)}
    for file in files:
        if not any(file == test or test in file.parents for test in tests):
            yield file


def test_modules(file: Path) -> Iterator[Path]:
    """Yield the paths at which the test-only modules of `file` may be: as a file, and as a folder."""
    folder = file.parent if file.stem in {"lib", "main", "mod"} else file.with_suffix("")
    for name in TEST_MODULE_FILE.findall(file.read_text()):
        yield folder / f"{name}.rs"
        yield folder / name


def impurities(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and reason of everything in `text` that a pure crate must not use.

    >>> list(impurities("use std::{collections::BTreeMap, fs::File};"))
    [(1, 'std::fs', 'it does no I/O')]
    >>> list(impurities("// std::fs is for others\\n#[cfg(test)]\\nmod tests { use std::fs; }"))
    []
    """
    code = blank_tests(TOKENS_TO_BLANK.sub(blank, text))
    code = re.sub(r"\buse\s+([^;]*);", spell_out, code)
    for number, line in enumerate(code.split("\n"), start=1):
        for pattern, why in FORBIDDEN:
            for match in dict.fromkeys(re.findall(pattern, line)):
                yield number, match, why


def blank(match: re.Match[str]) -> str:
    """Replace a match by spaces, preserving line breaks."""
    return re.sub(r"[^\n]", " ", match[0])


def blank_tests(code: str) -> str:
    """Blank every item under `#[cfg(test)]`: to the end of its braces, or to its semicolon."""
    while (start := code.find("#[cfg(test)]")) >= 0:
        depth, end = 0, len(code)
        for position in range(start, len(code)):
            character = code[position]
            depth += (character == "{") - (character == "}")
            if depth == 0 and character in "};":
                end = position + 1
                break
        code = code[:start] + re.sub(r"[^\n]", " ", code[start:end]) + code[end:]
    return code


def spell_out(statement: re.Match[str]) -> str:
    """Return a `use` with nested lists as full paths, on the line where the statement ends."""
    lines = statement[0].count("\n")
    paths = "; ".join(f"use {path}" for path in paths_of(re.sub(r"\s+", " ", statement[1])))
    return "\n" * lines + paths + ";"


def paths_of(tree: str, prefix: str = "") -> Iterator[str]:
    """Yield the paths of a `use` tree.

    >>> list(paths_of("std::{fs::{self, File}, time::Duration}"))
    ['std::fs::self', 'std::fs::File', 'std::time::Duration']
    """
    depth, start = 0, 0
    for position, character in enumerate(tree + ","):
        depth += (character == "{") - (character == "}")
        if depth == 0 and character == ",":
            branch = tree[start:position].strip()
            start = position + 1
            head, brace, rest = branch.partition("{")
            if brace:
                yield from paths_of(rest.rstrip()[:-1], prefix + head)
            elif branch:
                yield prefix + branch
