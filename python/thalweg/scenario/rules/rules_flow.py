"""Rules between the keys of [[flow]] and [[background]]."""

from pathlib import Path

from thalweg.scenario import values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.rules import rules_app, rules_direction, rules_path, rules_repeat
from thalweg.scenario.text import quantities, words


def check(raw: Raw, _folder: Path, mistakes: Mistakes) -> None:
    """Check the flows."""
    flows = list(values.tables(raw, "flow"))
    if raw.get("flow", []) == []:
        mistakes.add(
            "no-flow",
            ("flow",),
            "the scenario has no flow",
            expected="at least one [[flow]]",
            hint="add a [[flow]] with a name, a cc and a size",
        )
    _names(flows, mistakes)
    endings = rules_repeat.Endings(flows)
    duration = values.quantity(raw, "duration", quantities.time)
    if duration == 0:
        mistakes.add("out-of-range", ("duration",), "`duration` is zero", expected="a time above zero")
    for index, flow in flows:
        key_path, name = ("flow", index), _name(flow, index)
        _host(raw, flow, key_path, name, mistakes)
        _load(flow, key_path, name, mistakes)
        rules_app.check(flow, key_path, name, mistakes)
        _times(flow, key_path, f"flow.{name}", duration, mistakes)
        if "duration" not in raw and endings.is_endless(flow):
            mistakes.add_missing(
                (*key_path, "size"),
                f"`duration` is missing and the flow `{name}` never ends",
                expected="a duration, or an end to every flow",
                hint='add duration = "60s" at the top of the file, or give the flow a size, a count or a stop',
                instead=("duration", f"flow.{name}"),
            )
    rules_repeat.check_until(flows, mistakes)


def check_background(raw: Raw, _folder: Path, mistakes: Mistakes) -> None:
    """Check the background traffic."""
    duration = values.quantity(raw, "duration", quantities.time)
    for index, background in values.tables(raw, "background"):
        _times(background, ("background", index), f"background.{index}", duration, mistakes)
        if values.quantity(background, "rate", quantities.rate) == 0:
            mistakes.add(
                "out-of-range",
                ("background", index, "rate"),
                f"`background.{index}.rate` is zero",
                expected="a rate above zero",
            )
    if "duration" not in raw and raw.get("background"):
        _endless(raw, mistakes)


def _endless(raw: Raw, mistakes: Mistakes) -> None:
    """Check that UDP without a stop leaves capacity for the flows if the experiment ends only when they complete."""
    path = values.table(raw, "path")
    for name, link, is_up in (("path", path, False), ("path.reverse", values.table(path, "reverse"), True)):
        endless = [
            (index, table)
            for index, table in values.tables(raw, "background")
            if "stop" not in table and rules_direction.goes_up(table) == is_up
        ]
        udp = sum(values.quantity(table, "rate", quantities.rate) or 0 for _, table in endless)
        capacity = rules_path.last_rate(link)
        if endless and capacity and udp >= capacity:
            mistakes.add(
                "missing-key",
                ("background", endless[-1][0], "rate"),
                f"background UDP without a stop uses the whole rate of {name}: the experiment may never end",
                expected=f"less than the rate of {name}, a stop, or a duration",
                hint='add duration = "60s" at the top of the file',
            )


def _name(flow: Raw, index: int) -> str:
    return str(flow.get("name", index))


def _names(flows: list[tuple[int, Raw]], mistakes: Mistakes) -> None:
    indices: dict[str, int] = {}
    for index, flow in flows:
        name = flow.get("name")
        if isinstance(name, str) and name in indices:
            mistakes.add(
                "duplicate-name",
                ("flow", index, "name"),
                f"two flows are named `{name}`",
                found=f"[[flow]] number {indices[name] + 1} and number {index + 1}",
                expected="a unique name for every flow",
                hint="for parallel copies of one flow, set `count`",
            )
        elif isinstance(name, str):
            indices[name] = index


def _host(raw: Raw, flow: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    host = flow.get("host", "sender")
    senders = ["sender", *(host_ for host_ in values.table(raw, "host") if host_ not in ("sender", "receiver"))]
    if host == "receiver":
        mistakes.add(
            "bad-host",
            (*key_path, "host"),
            f"`flow.{name}.host` is the receiver",
            expected=f"a sending host: {words.one_of(senders)}",
        )
    elif isinstance(host, str) and host not in senders:
        mistakes.add(
            "unknown-host",
            (*key_path, "host"),
            f"`flow.{name}.host` names an unknown host: `{host}`",
            expected=words.one_of(senders),
            hint=words.did_you_mean(host, senders) or f"declare it with [host.{host}]",
        )


def _load(flow: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    repeat = values.table(flow, "repeat")
    carried = [
        label
        for label, is_set in (
            ("size", "size" in flow),
            ("requests", "requests" in flow),
            ("repeat.sizes", "sizes" in repeat),
        )
        if is_set
    ]
    if len(carried) > 1:
        mistakes.add(
            "conflict",
            (*key_path, carried[1].split(".")[0]),
            f"the flow `{name}` has {' and '.join(f'`{label}`' for label in carried)}",
            expected="one of size, requests, repeat.sizes",
            hint=f"remove all but one of {', '.join(carried)}",
        )
    for key, table in (("size", flow), ("requests.size", values.table(flow, "requests"))):
        if values.quantity(table, key.split(".")[-1], quantities.size) == 0:
            mistakes.add(
                "out-of-range",
                (*key_path, *key.split(".")),
                f"`flow.{name}.{key}` is zero: there is nothing to send",
                expected="a size above zero",
            )
    sizes = repeat.get("sizes")
    for index, size in enumerate(sizes if isinstance(sizes, list) else ()):
        if values.quantity({"size": size}, "size", quantities.size) == 0:
            mistakes.add(
                "out-of-range",
                (*key_path, "repeat", "sizes", index),
                f"`flow.{name}.repeat.sizes` contains zero",
                expected="sizes above zero",
            )
    if isinstance(flow.get("repeat"), dict):
        rules_repeat.check(flow, repeat, (*key_path, "repeat"), f"flow.{name}.repeat", mistakes)


def _times(table: Raw, key_path: KeyPath, name: str, duration: int | None, mistakes: Mistakes) -> None:
    start = values.quantity(table, "start", quantities.time, "0s")
    stop = values.quantity(table, "stop", quantities.time)
    if start is not None and stop is not None and stop <= start:
        mistakes.add(
            "out-of-range",
            (*key_path, "stop"),
            f"`{name}.stop` is not after its start",
            found=f"stop {table['stop']}, start {table.get('start', '0s')}",
            expected="a stop after the start",
        )
    if start is not None and duration and start >= duration:
        mistakes.add(
            "out-of-range",
            (*key_path, "start"),
            f"`{name}` starts after the end of the experiment",
            found=str(table.get("start")),
            expected="a start before `duration`",
        )
