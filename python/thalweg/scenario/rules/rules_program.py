"""Rules about flows of external programs: `program = {server = "...", client = "..."}`."""

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from thalweg.scenario import iperf3, values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.text import words

FIRST_PORT = 4433
"""Default port of the first program, that of many QUIC test servers."""

LAST_PORT = 32_767
"""Maximum port of programs, below Linux's default range of client ports."""

PLACEHOLDERS = ("server", "port", "size", "cc", "out")

PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")

COMMANDS = ("server", "client")

NOT_WITH_PROGRAMS = ("cc_params", "paced", "ecn", "requests", "app")
"""Keys of a flow that only the built-in traffic supports."""

SYSTEM_FOLDERS = "/usr/sbin:/sbin"
"""Folders of system tools, which are appended to a host's search path."""


def check(raw: Raw, folder: Path, mistakes: Mistakes) -> None:
    """Check the flows with programs, and that flows without them have a congestion control."""
    flows = list(values.tables(raw, "flow"))
    if iperf3.is_chosen(raw):
        flows = [(index, iperf3.with_programs(flow)) for index, flow in flows]
    for index, flow in flows:
        name = str(flow.get("name", index))
        if "program" not in flow:
            _needs_cc(flow, ("flow", index), name, mistakes)
        elif isinstance(program := flow["program"], dict):
            _combinations(flow, ("flow", index), name, mistakes)
            _ready(program, ("flow", index, "program", "ready"), name, mistakes)
            for command in COMMANDS:
                _command(flow, command, ("flow", index, "program", command), folder, mistakes)
            _size(flow, program, ("flow", index), name, mistakes)
            if "duration" not in raw and "stop" not in flow:
                mistakes.add_missing(
                    ("flow", index, "program"),
                    f"`duration` is missing, and nothing ends the programs of `{name}` if they hang",
                    expected="a duration, or a stop of the flow",
                    hint='add duration = "60s" at the top of the file',
                    instead=("duration", f"flow.{name}.stop"),
                )
    _ports(flows, mistakes)


def split(command: str) -> list[str]:
    """Split a command into words as a shell would, without expanding anything.

    Raises:
        ValueError: If quotes are not balanced.

    >>> split("curl -o '{out}/a file' http://{server}:{port}/")
    ['curl', '-o', '{out}/a file', 'http://{server}:{port}/']
    """
    return shlex.split(command)


def ports(flows: Sequence[tuple[int | None, int]]) -> list[int]:
    """Return the first port of each flow with programs.

    Args:
        flows: Port in the scenario, if any, and number of copies.

    >>> ports([(None, 2), (4435, 1), (None, 1)])
    [4433, 4435, 4436]
    """
    used = {port + copy for port, copies in flows if port is not None for copy in range(copies)}
    first_ports = []
    for port, copies in flows:
        first = FIRST_PORT if port is None else port
        while port is None and not used.isdisjoint(range(first, first + copies)):
            first += 1
        used.update(range(first, first + copies))
        first_ports.append(first)
    return first_ports


def _needs_cc(flow: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    if "cc" not in flow:
        mistakes.add_missing(
            (*key_path, "cc"),
            f"`cc` is missing in `flow.{name}`",
            expected="a congestion control, or a program that makes the flow",
            hint='add cc = "cubic"',
            instead=(f"flow.{name}.cc", f"flow.{name}.program"),
        )


def _combinations(flow: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    for key in NOT_WITH_PROGRAMS:
        if key in flow:
            mistakes.add(
                "conflict",
                (*key_path, key),
                f"the flow `{name}` has `program` and `{key}`",
                expected=f"a flow without `program`: programs do not use `{key}`",
                hint=f"remove `{key}`, or add a separate option to the program",
            )
    if isinstance(flow.get("cc"), dict):
        mistakes.add(
            "conflict",
            (*key_path, "cc"),
            f"the flow `{name}` has `program` and loads its congestion control from a file",
            expected="the name for the program, which replaces `{cc}` in its command",
            hint='cc = "cubic"',
        )
    if "arrivals" in values.table(flow, "repeat"):
        mistakes.add(
            "conflict",
            (*key_path, "repeat", "arrivals"),
            f"the flow `{name}` has `program` and random arrivals",
            expected="clients one after another, because packets of simultaneous clients cannot be distinguished",
            hint='repeat = {gap = "1s", count = 10}',
        )


def _ready(program: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    ready = program.get("ready")
    if isinstance(ready, dict) and len(ready) != 1:
        mistakes.add(
            "conflict" if ready else "missing-key",
            key_path,
            f"`flow.{name}.program.ready` sets {'two conditions' if ready else 'no condition'} for a ready server",
            expected='"listening", or exactly one of output, after',
            hint='ready = {output = "listening on"}',
        )


def _command(flow: Raw, key: str, key_path: KeyPath, folder: Path, mistakes: Mistakes) -> None:
    command = values.table(flow, "program").get(key)
    if not isinstance(command, str):
        return
    name = ".".join(("flow", str(flow.get("name", key_path[1])), "program", key))
    try:
        arguments = split(command)
    except ValueError as error:
        mistakes.add(
            "bad-command", key_path, f"`{name}` is not a command: {error}", found=command, expected="balanced quotes"
        )
        return
    for unknown in dict.fromkeys(PLACEHOLDER.findall(command)):
        if unknown not in PLACEHOLDERS:
            mistakes.add(
                "unknown-placeholder",
                key_path,
                f"`{name}` has the unknown placeholder `{{{unknown}}}`",
                found=f"{{{unknown}}}",
                expected=words.one_of([f"{{{placeholder}}}" for placeholder in PLACEHOLDERS]),
                hint=words.did_you_mean(unknown, PLACEHOLDERS),
            )
    if "{cc}" in command and "cc" not in flow:
        mistakes.add(
            "missing-key",
            key_path,
            f"`{name}` has `{{cc}}`, and the flow has no `cc`",
            hint='add cc = "cubic" to the flow',
        )
    if arguments and not PLACEHOLDER.search(arguments[0]):
        _executable(arguments[0], name, key_path, folder, mistakes)
    elif not arguments:
        mistakes.add("bad-command", key_path, f"`{name}` is empty", expected="a program and its arguments")


def _executable(word: str, name: str, key_path: KeyPath, folder: Path, mistakes: Mistakes) -> None:
    if "/" in word:
        file = folder / word
        if file.is_file() and os.access(file, os.X_OK):
            return
        problem = "is not executable" if file.is_file() else "does not exist"
        hint = f"chmod +x {file}" if file.is_file() else "build it, or correct its path (relative to the scenario)"
        mistakes.add("no-program", key_path, f"the program of `{name}` {problem}: {file}", found=word, hint=hint)
    elif shutil.which(word, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_FOLDERS}") is None:
        near = folder / word
        mistakes.add(
            "no-program",
            key_path,
            f"the program of `{name}` is not installed: `{word}` is not on the PATH",
            found=word,
            expected="a program on the PATH, or a path",
            hint=f"write ./{word}" if near.is_file() else f"install it (Debian, Ubuntu: apt install {word})",
        )


def _size(flow: Raw, program: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    uses = any("{size}" in str(program.get(command)) for command in COMMANDS)
    has = flow.get("size", "unlimited") != "unlimited"
    if uses and not has:
        mistakes.add_missing(
            (*key_path, "program"),
            f"a command of `flow.{name}.program` has `{{size}}`, and the flow has no size",
            expected="a size of the flow",
            hint='add size = "10MB"',
            instead=(f"flow.{name}.size",),
        )
    elif has and not uses:
        mistakes.add(
            "conflict",
            (*key_path, "size"),
            f"no command of `flow.{name}.program` has `{{size}}`, so the size has no effect",
            expected="`{size}` in a command, or no size",
            hint="remove `size`: the client's exit ends the transfer",
        )


def _ports(flows: Sequence[tuple[int, Raw]], mistakes: Mistakes) -> None:
    owners: dict[int, str] = {}
    for index, port, count in _fixed_ports(flows):
        name = str(dict(flows)[index].get("name", index))
        key_path = ("flow", index, "program", "port")
        twice = next((number for number in range(port, port + count) if number in owners), None)
        if port + count - 1 > LAST_PORT:
            mistakes.add(
                "out-of-range",
                key_path,
                f"the copies of `{name}` need ports up to {port + count - 1}",
                expected=f"ports up to {LAST_PORT}",
                hint="choose a lower port",
            )
        elif twice is not None:
            mistakes.add(
                "conflict",
                key_path,
                f"`flow.{name}.program.port` and `flow.{owners[twice]}.program.port` share the port {twice}",
                expected="separate ports for every copy, because ports identify its packets",
                hint="remove `port`: free ports are then chosen for every flow",
            )
        owners.update(dict.fromkeys(range(port, port + count), name))


def _fixed_ports(flows: Sequence[tuple[int, Raw]]) -> Iterator[tuple[int, int, int]]:
    """Yield the flows with a port in the scenario: index, port and number of copies."""
    for index, flow in flows:
        port, count = values.table(flow, "program").get("port"), flow.get("count", 1)
        if isinstance(port, int) and isinstance(count, int):
            yield index, port, count
