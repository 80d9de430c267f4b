"""Checks that an engine supports all settings; otherwise the error names the engines that do.

An engine lists the supported keys (`path.rate`, `host.*.sndbuf_max`), and for keys with choices, the choices
(`path.queue=fifo`, `flow.cc=name`; for a trace the format, `path.trace=csv`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from thalweg.engine import Algorithm, Engine
from thalweg.errors import ThalwegError
from thalweg.scenario import sweep, traces
from thalweg.scenario.axis import Axis
from thalweg.scenario.document import Document, Raw, TomlValue
from thalweg.scenario.places import name_of, show
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.text import words
from thalweg.scenario.values import table, tables


def check(document: Document, engine: Engine, others: Mapping[str, Engine]) -> list[ThalwegError]:
    """Return an error for each setting that `engine` does not support at the points of the document's sweep.

    Except for parameters of congestion controls, support for a value depends on no other key, so each value is checked
    once instead of at each point.
    """
    base: Raw = {key: value for key, value in document.raw.items() if key != "sweep"}
    swept = document.swept
    for address, values in swept.items():
        base = sweep.put(base, sweep.locate(address, document.raw), values[0])
    mistakes: dict[tuple[str, str], ThalwegError] = {}

    def note(errors: Iterable[ThalwegError | None]) -> None:
        for error in errors:
            if error:
                mistakes.setdefault((str(error.place), error.message), error)

    folder = document.file.parent
    for address, values in swept.items():
        key_path = sweep.locate(address, document.raw)
        for value in values:
            error = _honoured(key_path, _honoured_value(key_path, value, folder), base, engine, others)
            if error and error.place == address:
                error.source = document.sweep_source(address, value)
            note([error])
    note(
        _honoured(key_path, _honoured_value(key_path, value, folder), base, engine, others)
        for key_path, value in _leaves(base, ())
    )
    for error in mistakes.values():
        error.source = error.source or document.source(_place_in_file(error, document))
    note(_algorithms(document, base, document.axes, engine, others))
    return list(mistakes.values())


def wrong_algorithms(document: Document, engine: Engine, others: Mapping[str, Engine]) -> list[ThalwegError]:
    """Return errors for congestion controls, and their parameters, that `engine` lacks.

    The document need not be valid: its malformed flows and sweeps are skipped.
    """
    axes = [
        Axis((address,), tuple((value,) for value in values if isinstance(value, bool | int | float | str)))
        for address, values in table(document.raw, "sweep").items()
        if isinstance(values, list)
    ]
    errors = _algorithms(document, document.raw, axes, engine, others)
    return list({(error.place, error.message): error for error in errors}.values())


def _algorithms(
    document: Document, base: Raw, axes: Sequence[Axis], engine: Engine, others: Mapping[str, Engine]
) -> Iterator[ThalwegError]:
    """Check the congestion controls of flows without programs, with the position of each mistake."""
    swept = {address for axis in axes for address in axis.addresses}
    for index, flow in tables(base, "flow"):
        if "program" in flow:
            continue
        address = name_of(("flow", index, "cc"), base)
        of_sweep = {
            key.removeprefix(f"{address}_params."): key for key in swept if key.startswith(f"{address}_params.")
        }
        written = table(flow, "cc_params")
        names = _values(axes, address, {}) if address in swept else [flow.get("cc")]
        for name in names:
            params = {
                param: _values(axes, of_sweep[param], {address: name}) if param in of_sweep else [written[param]]
                for param in sorted({*written, *of_sweep})
            }
            for error, value in _algorithm(name, params, address, engine, others) if isinstance(name, str) else ():
                place = str(error.place)
                key_path: KeyPath = ("flow", index, *place.removeprefix(address.removesuffix("cc")).split("."))
                error.source = document.sweep_source(place, value) if place in swept else document.source(key_path)
                yield error


def _values(axes: Sequence[Axis], address: str, condition: Mapping[str, TomlValue]) -> list[TomlValue]:
    """Return the distinct values of a swept key at the points that meet a condition, by address.

    >>> _values([Axis(("cc", "gain"), (("bbr", 1.5), ("bbr3", 2)))], "gain", {"cc": "bbr"})
    [1.5]
    """
    axis = next(axis for axis in axes if address in axis.addresses)
    choices = [dict(zip(axis.addresses, choice, strict=True)) for choice in axis.choices]
    return list(
        dict.fromkeys(
            choice[address] for choice in choices if all(choice.get(key, at) == at for key, at in condition.items())
        )
    )


def pattern(key_path: KeyPath) -> str:
    """Return a key path in the notation of engines.

    >>> pattern(("host", "sender", "sndbuf_max")), pattern(("path", "steps", 3, "at"))
    ('host.*.sndbuf_max', 'path.steps.at')
    """
    parts: list[str] = []
    for index, part in enumerate(key_path):
        if isinstance(part, str):
            parts.append("*" if index and key_path[index - 1] == "host" else part)
    if len(key_path) > 1 and "cc_params" in key_path[:-1]:
        parts = parts[: parts.index("cc_params") + 1]
    return ".".join(parts)


def _leaves(value: TomlValue, key_path: KeyPath) -> Iterator[tuple[KeyPath, TomlValue]]:
    if isinstance(value, dict) and value:
        for key, inside in value.items():
            yield from _leaves(inside, (*key_path, key))
    elif isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        for index, entry in enumerate(value):
            yield from _leaves(entry, (*key_path, index))
    elif not isinstance(value, dict) and value != []:
        yield key_path, value


def _honoured_value(key_path: KeyPath, value: TomlValue, folder: Path) -> TomlValue:
    """Return the value to check: for a trace its format, `csv` or `mahimahi`; otherwise the value."""
    if key_path[0] != "path" or key_path[-1] != "trace" or not isinstance(value, str):
        return value
    return "csv" if isinstance(traces.read(folder / value), traces.Conditions) else "mahimahi"


def _honoured(
    key_path: KeyPath, value: TomlValue, raw: Raw, engine: Engine, others: Mapping[str, Engine]
) -> ThalwegError | None:
    key = pattern(key_path)
    if key == "flow.cc_params":  # `_algorithms` checks each parameter
        return None
    if not _has_key(engine, key):
        supporting = [other.name for other in others.values() if _has_key(other, key)]
        name = name_of(_refused(key_path, engine), raw)
        return _error("not-honoured", f"`{name}`", name, supporting, engine, f"remove `{name}`")
    name = name_of(key_path, raw)
    choice = _choice(key, value)
    if _lists_choices(engine, key) and choice not in engine.honours:
        supporting = [other.name for other in others.values() if choice in other.honours]
        choices = sorted(honour.partition("=")[2] for honour in engine.honours if honour.startswith(f"{key}="))
        setting = f"`{name}` in the format {value}" if key.endswith(".trace") else f"`{name} = {show(value)}`"
        error = _error("not-honoured", setting, name, supporting, engine, None)
        error.expected = words.one_of(choices)
        return error
    return None


def _refused(key_path: KeyPath, engine: Engine) -> KeyPath:
    """Return the outermost table around a key of which the engine supports no key, otherwise the key; never a top-level
    table.
    """
    while len(key_path) > 2:
        around = key_path[:-1] if isinstance(key_path[-2], str) else key_path[:-2]
        if any(honour.startswith(f"{pattern(around)}.") for honour in engine.honours):
            break
        key_path = around
    return key_path


def _choice(key: str, value: TomlValue) -> str:
    """Return a choice in the notation of engines; any algorithm name is `flow.cc=name`."""
    return "flow.cc=name" if key == "flow.cc" else f"{key}={value if isinstance(value, str) else show(value)}"


def _has_key(engine: Engine, key: str) -> bool:
    return key in engine.honours or _lists_choices(engine, key)


def _lists_choices(engine: Engine, key: str) -> bool:
    return key in _keys_with_choices(engine.honours)


@cache
def _keys_with_choices(honours: frozenset[str]) -> frozenset[str]:
    return frozenset(key for key, equals, _ in (honour.partition("=") for honour in honours) if equals)


def _error(
    code: str, setting: str, address: str, supporting: list[str], engine: Engine, hint: str | None
) -> ThalwegError:
    if supporting:
        message = f"the engine `{engine.name}` does not support {setting}"
        return ThalwegError(
            code,
            message,
            place=address,
            hint=f"--engine {supporting[0]} does" if len(supporting) == 1 else f"these do: {', '.join(supporting)}",
        )
    return ThalwegError(code, f"no engine supports {setting}", place=address, hint=hint)


def _algorithm(
    name: str,
    params: Mapping[str, Sequence[TomlValue]],
    address: str,
    engine: Engine,
    others: Mapping[str, Engine],
) -> Iterator[tuple[ThalwegError, TomlValue]]:
    """Check the name and the parameters of a congestion control; yield each mistake and the value that has it."""
    algorithm = engine.algorithms.get(name)
    if algorithm is None:
        yield _no_algorithm(name, address, engine, others), name
        return
    for param, values in params.items():
        place = f"{address}_params.{param}"
        if param not in algorithm.params:
            yield _no_parameter(algorithm, param, place, engine, others), next(iter(values), None)
            continue
        valid = algorithm.ranges.get(param)
        for value in values:
            if valid and isinstance(value, int | float) and value not in valid:
                yield _out_of_range(algorithm, param, place, value, str(valid)), value


def _no_parameter(
    algorithm: Algorithm, param: str, place: str, engine: Engine, others: Mapping[str, Engine]
) -> ThalwegError:
    elsewhere = [(other.name, other.algorithms.get(algorithm.name)) for other in others.values()]
    supporting = [name for name, same in elsewhere if same and param in same.params]
    have_it = f"--engine {supporting[0]} has it" if len(supporting) == 1 else f"these have it: {', '.join(supporting)}"
    return ThalwegError(
        "unknown-cc-param",
        f"`{algorithm.name}` has no parameter `{param}`" + (f" on the engine `{engine.name}`" if supporting else ""),
        place=place,
        found=param,
        expected=words.one_of(algorithm.params) if algorithm.params else "no parameters",
        hint=have_it if supporting else words.did_you_mean(param, list(algorithm.params)),
    )


def _out_of_range(algorithm: Algorithm, param: str, place: str, value: float, expected: str) -> ThalwegError:
    return ThalwegError(
        "out-of-range",
        f"`{place}` is {show(value)}, with the congestion control `{algorithm.name}`",
        place=place,
        found=show(value),
        expected=expected,
        hint=f"{param}: {algorithm.params[param]}",
    )


def _no_algorithm(name: str, address: str, engine: Engine, others: Mapping[str, Engine]) -> ThalwegError:
    supporting = [f"--engine {other.name} has it" for other in others.values() if name in other.algorithms][:1]
    message = f"the engine `{engine.name}` has no congestion control `{name}`"
    if lack := engine.lacks.get(name):
        message += f" here: {lack.why}"
        hint: str | None = "\n".join([lack.hint, *supporting])
    else:
        hint = supporting[0] if supporting else words.did_you_mean(name, list(engine.algorithms))
    return ThalwegError(
        "unknown-cc",
        message,
        place=address,
        found=name,
        expected=words.one_of(sorted(engine.algorithms)),
        hint=hint,
    )


def _place_in_file(error: ThalwegError, document: Document) -> KeyPath:
    """Return the key path that an error refers to: the key in the sweep if the sweep sets it, else the key."""
    address = str(error.place)
    if address in document.swept:
        return ("sweep", address)
    keys = address.split(".")
    if keys[0] == "flow":
        names = [flow.get("name") for flow in document.flows]
        return ("flow", names.index(keys[1]), *keys[2:])
    return tuple(int(key) if key.isdigit() else key for key in keys)
