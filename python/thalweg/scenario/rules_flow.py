"""Rules between the keys of [[flow]] and [[background]]."""

from typing import Any

from thalweg.scenario import quantities, values, words
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import Place


def check(raw: Raw, mistakes: Mistakes) -> None:
    """Check the flows and the background traffic."""
    flows = list(values.tables(raw, "flow"))
    if raw.get("flow", []) == []:
        mistakes.add(
            "no-flow",
            ("flow",),
            "the scenario has no flow",
            expected="at least one [[flow]]",
            hint='[[flow]]\nname = "a"\ncc = "cubic"',
        )
    _names(flows, mistakes)
    duration = values.quantity(raw, "duration", quantities.time)
    if duration == 0:
        mistakes.add("out-of-range", ("duration",), "`duration` is zero", expected="a time above zero")
    for index, flow in flows:
        place, name = ("flow", index), _name(flow, index)
        _host(raw, flow, place, name, mistakes)
        _load(flow, place, name, mistakes)
        _times(flow, place, f"flow.{name}", duration, mistakes)
        if "duration" not in raw and _is_endless(flow, flows, ()):
            mistakes.add(
                "missing-key",
                (*place, "size"),
                f"`duration` is missing and the flow `{name}` never ends",
                expected="a duration, or an end to every flow",
                hint='add duration = "60s" at the top of the file, or give the flow a size, a count or a stop',
            )
    _until(flows, mistakes)
    for index, background in values.tables(raw, "background"):
        _times(background, ("background", index), f"background.{index}", duration, mistakes)
        if values.quantity(background, "rate", quantities.rate) == 0:
            mistakes.add(
                "out-of-range",
                ("background", index, "rate"),
                f"`background.{index}.rate` is zero",
                expected="a rate above zero",
            )


def _name(flow: Raw, index: int) -> str:
    return str(flow.get("name", index))


def _names(flows: list[tuple[int, Raw]], mistakes: Mistakes) -> None:
    seen: dict[Any, int] = {}
    for index, flow in flows:
        name = flow.get("name")
        if isinstance(name, str) and name in seen:
            mistakes.add(
                "duplicate-name",
                ("flow", index, "name"),
                f"two flows are named `{name}`",
                found=f"[[flow]] number {seen[name] + 1} and number {index + 1}",
                expected="a name of its own for every flow",
                hint="for parallel copies of one flow there is `count`",
            )
        elif isinstance(name, str):
            seen[name] = index


def _host(raw: Raw, flow: Raw, place: Place, name: str, mistakes: Mistakes) -> None:
    host = flow.get("host", "sender")
    known = ["sender", *(each for each in values.table(raw, "host") if each not in ("sender", "receiver"))]
    if host == "receiver":
        mistakes.add(
            "bad-host",
            (*place, "host"),
            f"`flow.{name}.host` is the receiver",
            expected=f"a sending host: {words.one_of(known)}",
        )
    elif isinstance(host, str) and host not in known:
        mistakes.add(
            "unknown-host",
            (*place, "host"),
            f"`flow.{name}.host` names no host: `{host}`",
            expected=words.one_of(known),
            hint=words.did_you_mean(host, known) or f"declare it with [host.{host}]",
        )


def _load(flow: Raw, place: Place, name: str, mistakes: Mistakes) -> None:
    """Check what connections carry, and what follows the first one."""
    repeat = values.table(flow, "repeat")
    carried = [
        label
        for label, there in (
            ("size", "size" in flow),
            ("requests", "requests" in flow),
            ("repeat.sizes", "sizes" in repeat),
        )
        if there
    ]
    if len(carried) > 1:
        mistakes.add(
            "conflict",
            (*place, carried[1].split(".")[0]),
            f"the flow `{name}` has {' and '.join(f'`{each}`' for each in carried)}",
            expected="one of size, requests, repeat.sizes",
            hint=f"remove all but one of {', '.join(carried)}",
        )
    for key, table in (("size", flow), ("requests.size", values.table(flow, "requests"))):
        if values.quantity(table, key.split(".")[-1], quantities.size) == 0:
            mistakes.add(
                "out-of-range",
                (*place, *key.split(".")),
                f"`flow.{name}.{key}` is zero: there is nothing to send",
                expected="a size above zero",
            )
    sizes = repeat.get("sizes")
    for index, size in enumerate(sizes if isinstance(sizes, list) else ()):
        if values.quantity({"size": size}, "size", quantities.size) == 0:
            mistakes.add(
                "out-of-range",
                (*place, "repeat", "sizes", index),
                f"`flow.{name}.repeat.sizes` has a zero",
                expected="sizes above zero",
            )
    if isinstance(flow.get("repeat"), dict):
        _repeat(flow, repeat, (*place, "repeat"), f"flow.{name}.repeat", mistakes)


def _repeat(flow: Raw, repeat: Raw, place: Place, name: str, mistakes: Mistakes) -> None:
    forms = "gap (with until or count), or arrivals with rate and sizes"
    at_random = [key for key in ("arrivals", "rate", "sizes") if key in repeat]
    if "gap" in repeat and at_random:
        mistakes.add(
            "conflict",
            (*place, at_random[0]),
            f"`{name}` has `gap` and {' and '.join(f'`{key}`' for key in at_random)}",
            expected=f"either {forms}",
            hint="remove `gap`, or " + ", ".join(f"`{key}`" for key in at_random),
        )
        return
    if "gap" not in repeat and not at_random:
        mistakes.add(
            "missing-key",
            place,
            f"`{name}` does not say when connections open",
            expected=f"either {forms}",
            hint='add gap = "0.1s"',
        )
        return
    for key, example in (("arrivals", '"poisson"'), ("rate", '"20/s"')):
        if at_random and key not in repeat:
            mistakes.add(
                "missing-key", place, f"`{key}` is missing in `{name}`", expected=forms, hint=f"add {key} = {example}"
            )
    if repeat.get("sizes") == []:
        mistakes.add("empty-list", (*place, "sizes"), f"`{name}.sizes` is an empty list", expected="at least one size")
    rate = values.quantity(repeat, "rate", quantities.arrival_rate)
    if rate == 0 or (isinstance(rate, quantities.PerSecond) and rate.arrivals == 0):
        mistakes.add(
            "out-of-range",
            (*place, "rate"),
            f"`{name}.rate` is zero: nothing would ever arrive",
            expected="a rate above zero",
        )
    requests = flow.get("requests")
    is_unlimited = flow.get("size", "unlimited") == "unlimited" and "sizes" not in repeat and requests is None
    if is_unlimited or (isinstance(requests, dict) and "count" not in requests):
        what = "a size" if is_unlimited else "requests.count"
        owner = name.removesuffix(".repeat")
        mistakes.add(
            "missing-key",
            place,
            f"`{name}` repeats connections that never finish",
            expected=f"{what} in `{owner}`",
            hint='add size = "1MB" to the flow' if is_unlimited else "add count = 100 to requests",
        )


def _times(table: Raw, place: Place, name: str, duration: int | None, mistakes: Mistakes) -> None:
    start = values.quantity(table, "start", quantities.time, "0s")
    stop = values.quantity(table, "stop", quantities.time)
    if start is not None and stop is not None and stop <= start:
        mistakes.add(
            "out-of-range",
            (*place, "stop"),
            f"`{name}.stop` is not after its start",
            found=f"stop {table['stop']}, start {table.get('start', '0s')}",
            expected="a stop after the start",
        )
    if start is not None and duration and start >= duration:
        mistakes.add(
            "out-of-range",
            (*place, "start"),
            f"`{name}` starts when the experiment is over",
            found=str(table.get("start")),
            expected="a start before `duration`",
        )


def _until(flows: list[tuple[int, Raw]], mistakes: Mistakes) -> None:
    names = [flow["name"] for _, flow in flows if isinstance(flow.get("name"), str)]
    follows = {
        name: until
        for _, flow in flows
        if isinstance(name := flow.get("name"), str)
        and isinstance(until := values.table(flow, "repeat").get("until"), str)
    }
    for index, flow in flows:
        until = values.table(flow, "repeat").get("until")
        if not isinstance(until, str):
            continue
        name, place = _name(flow, index), ("flow", index, "repeat", "until")
        others = [each for each in names if each != name]
        if until not in names:
            mistakes.add(
                "unknown-flow",
                place,
                f"`flow.{name}.repeat.until` names no flow: `{until}`",
                expected=words.one_of(others) if others else "the name of another flow",
                hint=words.did_you_mean(until, others),
            )
        elif name in (chain := _chain(until, follows)):
            circle = " waits for ".join(f"`{each}`" for each in [name, *chain[: chain.index(name) + 1]])
            mistakes.add(
                "circular-until",
                place,
                f"flows wait for each other: {circle}",
                expected="until of a flow that ends by itself",
            )


def _chain(name: str, follows: dict[str, str]) -> list[str]:
    """Follow `until` from flow to flow."""
    chain = [name]
    while chain[-1] in follows and follows[chain[-1]] not in chain:
        chain.append(follows[chain[-1]])
    return chain


def _is_endless(flow: Raw, flows: list[tuple[int, Raw]], seen: tuple[str, ...]) -> bool:
    """Whether a flow goes on for ever by itself; what is malformed or circular counts as finite."""
    if "stop" in flow:
        return False
    repeat, requests = flow.get("repeat"), flow.get("requests")
    sizes = isinstance(repeat, dict) and "sizes" in repeat
    if isinstance(requests, dict) and "count" not in requests:
        return not isinstance(repeat, dict)
    if requests is None and not sizes and flow.get("size", "unlimited") == "unlimited":
        return not isinstance(repeat, dict)
    if not isinstance(repeat, dict) or "count" in repeat:
        return False
    until = repeat.get("until")
    if until is None:
        return "gap" in repeat or "arrivals" in repeat
    target = next((other for _, other in flows if other.get("name") == until), None)
    return target is not None and until not in seen and _is_endless(target, flows, (*seen, str(until)))
