"""User-supplied congestion controls: `cc = {module = "mine.ko"}` and `cc = {bpf = "mine.bpf.o"}`."""

import re
from pathlib import Path, PurePath

from thalweg.scenario import values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.rules import rules_direction
from thalweg.scenario.text import words

FILES = ("bpf", "module")

ENDINGS = (".bpf.o", ".o", ".ko")

NAME = re.compile(r"[A-Za-z0-9_-]{1,15}")
"""Valid names of congestion controls; a kernel stores 16 bytes, including the terminating null."""


def name_of(table: Raw) -> str:
    """Return the name under which the algorithm registers.

    >>> name_of({"module": "build/tcp_mine.ko"}), name_of({"bpf": "mine.bpf.o"}), name_of({"name": "x", "bpf": "y.o"})
    ('mine', 'mine', 'x')
    """
    if "name" in table:
        return str(table["name"])
    file = PurePath(str(next((table[key] for key in FILES if key in table), ""))).name
    ending = next((ending for ending in ENDINGS if file.endswith(ending)), "")
    return file.removesuffix(ending).removeprefix("tcp_")


def check(raw: Raw, folder: Path, mistakes: Mistakes) -> None:
    """Check the files from which flows load their congestion controls; relative names are resolved in `folder`."""
    for index, flow in values.tables(raw, "flow"):
        table = flow.get("cc")
        if isinstance(table, dict):
            _check(table, ("flow", index, "cc"), f"flow.{flow.get('name', index)}.cc", folder, mistakes)
    _check_names(raw, mistakes)


def _check_names(raw: Raw, mistakes: Mistakes) -> None:
    """Check that each name belongs to one algorithm of a host."""
    sources: dict[tuple[str, str], tuple[str, str]] = {}
    for index, flow in values.tables(raw, "flow"):
        cc = flow.get("cc")
        if "program" in flow or not isinstance(cc, dict | str):
            continue
        table: Raw = cc if isinstance(cc, dict) else {"name": cc}
        name, host, cc = f"flow.{flow.get('name', index)}.cc", rules_direction.sender_of(flow), name_of(table)
        source = next((str(table[key]) for key in FILES if key in table), "")
        other_name, other_source = sources.setdefault((host, cc), (name, source))
        if source != other_source:
            mistakes.add(
                "conflict",
                ("flow", index, "cc"),
                f"`{name}` and `{other_name}` are different algorithms with the name `{cc}` on the host `{host}`",
                expected="one algorithm per name on a host",
                hint="rename yours, in its source and file, or give one of the flows a host of its own: [host.other]",
            )


def _check(table: Raw, key_path: KeyPath, name: str, folder: Path, mistakes: Mistakes) -> None:
    file_keys = [key for key in FILES if key in table]
    if len(file_keys) != 1:
        mistakes.add(
            "conflict" if file_keys else "missing-key",
            key_path,
            f"`{name}` specifies {'two files' if file_keys else 'no file'} to load",
            expected="exactly one of bpf, module",
            hint='cc = {module = "mine.ko"}, or the name of an available one: cc = "cubic"',
        )
        return
    if values.MALFORMED in table.values():
        return
    file = folder / str(table[file_keys[0]])
    if not file.is_file():
        near = (
            words.closest(file.name, [file_.name for file_ in file.parent.glob(f"*{file.suffix}")])
            if file.parent.is_dir()
            else None
        )
        mistakes.add(
            "no-cc-file",
            (*key_path, file_keys[0]),
            f"there is no file `{file}`",
            expected="a file, looked up in the scenario's folder",
            hint=f"did you mean `{near}`?" if near else None,
        )
    if not NAME.fullmatch(name_of(table)):
        mistakes.add(
            "bad-name",
            (*key_path, "name" if "name" in table else file_keys[0]),
            f"`{name}` registers a name that kernels do not accept: `{name_of(table)}`",
            expected="1 to 15 letters, digits, dashes and underscores",
            hint=f'set its name: cc = {{name = "mine", {file_keys[0]} = "{table[file_keys[0]]}"}}',
        )
