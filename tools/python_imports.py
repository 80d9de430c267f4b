"""Finds the imports between the layers of a Python package, which are the modules and sub-packages directly below its
root.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One import of one layer by another."""

    file: Path
    line: int
    importer: str
    imported: str


def between_layers(package: Path) -> Iterator[Import]:
    """Yield the imports between layers in all files of `package` except its own `__init__`, including those for type
    checkers and inside functions.
    """
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package).with_suffix("").parts
        if inside == ("__init__",):
            continue
        for line, target in imported_modules(ast.parse(file.read_text(), str(file)), package.name, inside):
            if target and target[0] != inside[0] and is_layer(package, target[0]):
                yield Import(file, line, inside[0], target[0])


def is_layer(package: Path, name: str) -> bool:
    """Return whether a name is a layer, and not another name that the package's `__init__` exports, such as its
    version.
    """
    return (package / name).is_dir() or (package / f"{name}.py").is_file()


def imported_modules(tree: ast.AST, package: str, inside: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the line and the path, relative to the package's root, of every import from the package itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root, *path = alias.name.split(".")
                if root == package:
                    yield node.lineno, tuple(path)
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                module = inside[: len(inside) - node.level] + module
            elif module[:1] == (package,):
                module = module[1:]
            else:
                continue
            for alias in node.names:
                yield node.lineno, (*module, alias.name)
