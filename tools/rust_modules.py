"""Reads the dependencies between the modules of a crate, and finds import cycles.

A module is a file; inline modules belong to their file. `use` statements and paths in code that begin with `crate::`,
`super::` or `self::` count, and so do paths that begin with a child module. A name that a parent module re-exports
counts as a use of the module that defines it, as far as the `use` statements of the parent show it; the re-export
itself is not a use.
"""

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import rust_source

Module = tuple[str, ...]
"""Path of a module below its crate: `("cubic", "hystart")`; the crate's root is `()`."""

USE = re.compile(r"(?P<public>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]*);")
PATH = re.compile(r"(?<![\w:])(?<!in )(?:crate|super|self)(?:::\w+)+")
CHILD = re.compile(r"(?<![\w:])([a-z]\w*)::\w")


def cycle(source: Path) -> list[Module]:
    """Return the modules of one import cycle of a crate, sorted; empty without a cycle.

    A module and its child modules form a cycle only if they use one another's items: `mod child;` is not a use.
    """
    try:
        TopologicalSorter(uses(source)).prepare()
    except CycleError as error:
        return sorted(set(error.args[1]))
    return []


def uses(source: Path) -> dict[Module, set[Module]]:
    """Return the modules that each module of a crate uses; `source` is its folder `src`."""
    files = {_module(file, source): file for file in rust_source.files_without_tests(source)}
    code = {module: _code(file) for module, file in files.items()}
    exported = {module: dict(_reexports(module, text, files)) for module, text in code.items()}
    return {
        module: {target for path in _paths(module, text, files) if (target := _target(path, files, exported)) != module}
        for module, text in code.items()
    }


def _module(file: Path, source: Path) -> Module:
    parts = file.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("lib", "main", "mod") else parts


def _code(file: Path) -> str:
    return rust_source.blank_tests(rust_source.TOKENS_TO_BLANK.sub(rust_source.blank, file.read_text(encoding="utf-8")))


def _paths(module: Module, text: str, files: Mapping[Module, Path]) -> Iterator[Module]:
    """Yield the full path, below the crate, of every item that a module names."""
    for statement in USE.finditer(text):
        if statement["public"]:
            continue
        for path in rust_source.paths_of(re.sub(r"\s+", " ", statement["tree"])):
            yield from _absolute(module, path.split(" as ")[0].strip().split("::"), files)
    rest = USE.sub("", text)
    for path in PATH.findall(rest):
        yield from _absolute(module, path.split("::"), files)
    for child in set(CHILD.findall(rest)):
        if (*module, child) in files:
            yield (*module, child)


def _absolute(module: Module, parts: list[str], files: Mapping[Module, Path]) -> Iterator[Module]:
    base = list(module)
    if parts[0] == "crate":
        base, parts = [], parts[1:]
    elif parts[0] in ("self", "super"):
        while parts and parts[0] in ("self", "super"):
            if parts[0] == "super":
                base = base[:-1]
            parts = parts[1:]
    elif (*module, parts[0]) not in files:
        return
    yield (*base, *(part for part in parts if part not in ("self", "*")))


def _reexports(module: Module, text: str, files: Mapping[Module, Path]) -> Iterator[tuple[str, Module]]:
    """Yield the names that a module re-exports, or imports for its children, with their full paths."""
    for statement in USE.finditer(text):
        for path in rust_source.paths_of(re.sub(r"\s+", " ", statement["tree"])):
            full, _, alias = path.partition(" as ")
            for absolute in _absolute(module, full.strip().split("::"), files):
                if absolute:
                    yield (alias.strip() or absolute[-1]), absolute


def _target(path: Module, files: Mapping[Module, Path], exported: Mapping[Module, Mapping[str, Module]]) -> Module:
    """Return the module that defines the item at a path."""
    visited = set()
    while path not in visited:
        visited.add(path)
        owner = path
        while owner not in files:
            owner = owner[:-1]
        rest = path[len(owner) :]
        if not rest or rest[0] not in exported[owner]:
            return owner
        path = (*exported[owner][rest[0]], *rest[1:])
    return owner
