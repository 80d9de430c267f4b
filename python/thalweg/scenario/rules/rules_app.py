"""Rules of [flow.app]: the parameters of each application, and contradictions between them."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType

from thalweg.scenario import values
from thalweg.scenario.document import Raw, TomlValue
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.text import quantities, words

APPS = ("video", "web", "call", "rpc", "probe")

PARAMETERS = MappingProxyType(
    {
        "bitrates": ("video",),
        "segment": ("video",),
        "buffer": ("video",),
        "objects": ("web",),
        "depth": ("web",),
        "sizes": ("web", "rpc"),
        "connections": ("web", "rpc"),
        "pages": ("web",),
        "think": ("web",),
        "bitrate": ("call",),
        "fps": ("call",),
        "freeze": ("call",),
        "rate": ("rpc",),
        "interval": ("probe",),
        "size": ("probe",),
    }
)
"""Applications that have each parameter."""

DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "segment": "4s",
        "buffer": "30s",
        "think": "1s",
        "bitrate": "1.5Mbps",
        "freeze": "150ms",
        "rate": "100/s",
        "interval": "200ms",
        "size": "64B",
    }
)

NUMBERS: Mapping[str, int] = MappingProxyType({"objects": 70, "depth": 3, "pages": 1, "fps": 30})

CONNECTIONS: Mapping[str, int] = MappingProxyType({"web": 6, "rpc": 1})

BITRATES = tuple(f"{kbps}kbps" for kbps in (235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800))
"""Netflix's fixed bitrate ladder, "Per-Title Encode Optimization" (2015)."""

SIZES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # With 70 objects a page has 2.3 MB, about the median page of the HTTP Archive from 2022 to 2024.
        "web": ("300B", "800B", "1500B", "3kB", "6kB", "10kB", "18kB", "30kB", "60kB", "200kB"),
        # The median and the 90th percentile are those of Seemakhupt et al., SOSP 2023; larger messages are omitted.
        "rpc": ("200B", "400B", "700B", "1100B", "1500B", "2kB", "3kB", "5kB", "8kB", "12kB"),
    }
)

MIN_SEGMENTS = 2


def of(flow: Raw) -> Raw | None:
    """Return the application of a flow as a table with `name`; None if it has none."""
    app = flow.get("app")
    if isinstance(app, str):
        return {"name": app}
    return app if isinstance(app, dict) else None


def is_endless(flow: Raw) -> bool:
    """Return whether the application of a flow continues until the flow stops."""
    return (of(flow) or {}).get("name") != "web"


def messages_per_second(flow: Raw) -> Fraction:
    """Return the mean rate at which an application sends messages on its own, per second; 0 if it waits for answers."""
    app = of(flow) or {}
    if app.get("name") == "call":
        fps = app.get("fps", NUMBERS["fps"])
        return Fraction(fps) if isinstance(fps, int) else Fraction(0)
    if app.get("name") == "probe":
        interval = values.quantity(app, "interval", quantities.time, DEFAULTS["interval"])
        return Fraction(values.NANOS, interval) if interval else Fraction(0)
    if app.get("name") == "rpc":
        rate = values.quantity(app, "rate", quantities.arrival_rate, DEFAULTS["rate"])
        return Fraction(0) if rate is None else arrivals(rate, sizes(app, "rpc"))
    return Fraction(0)


def arrivals(rate: int | quantities.PerSecond, sizes_bytes: list[int]) -> Fraction:
    """Return arrivals per second; a load in bit/s is divided by the mean size."""
    if isinstance(rate, quantities.PerSecond):
        return rate.arrivals
    return Fraction(rate * len(sizes_bytes), 8 * sum(sizes_bytes)) if sum(sizes_bytes) else Fraction(0)


def sizes(app: Raw, name: str) -> list[int]:
    """Return the sizes of an application's messages in bytes; malformed sizes are omitted."""
    texts = app.get("sizes", list(SIZES[name]))
    return _read(texts, quantities.size)


def check(flow: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    """Check the application of one flow, whose name is `name`."""
    app = of(flow)
    if app is None or app.get("name") not in APPS:
        return
    kind = str(app["name"])
    others = [key for key in ("size", "requests", "repeat") if key in flow]
    if others:
        mistakes.add(
            "conflict",
            (*key_path, others[0]),
            f"the flow `{name}` has `app` and {' and '.join(f'`{key}`' for key in others)}: the application decides"
            " what is sent",
            expected="either app, or size, requests and repeat",
            hint=f"remove `app`, or {', '.join(f'`{key}`' for key in others)}",
        )
    key_path, full = (*key_path, "app"), f"flow.{name}.app"
    for key, apps in PARAMETERS.items():
        if key in app and kind not in apps:
            mistakes.add(
                "no-effect",
                (*key_path, key),
                f"`{full}.{key}` has no effect: {kind} has no such parameter",
                expected=f"{key} only with {words.one_of(apps)}",
                hint=f"remove `{key}`",
            )
    _zeros(app, key_path, full, mistakes)
    if kind == "video":
        _video(app, key_path, full, mistakes)
    objects, depth = (app.get(key, NUMBERS[key]) for key in ("objects", "depth"))
    if kind == "web" and isinstance(objects, int) and isinstance(depth, int) and depth > objects:
        mistakes.add(
            "out-of-range",
            (*key_path, "depth" if "depth" in app else "objects"),
            f"`{full}.depth` is {depth}, and a page has {objects} objects",
            expected="a depth of at most `objects`",
        )


def _zeros(app: Raw, key_path: KeyPath, full: str, mistakes: Mistakes) -> None:
    parsers = {
        "segment": quantities.time,
        "interval": quantities.time,
        "bitrate": quantities.rate,
        "size": quantities.size,
    }
    zero = [key for key, parse in parsers.items() if values.quantity(app, key, parse) == 0]
    rate = values.quantity(app, "rate", quantities.arrival_rate)
    if rate == 0 or (isinstance(rate, quantities.PerSecond) and rate.arrivals == 0):
        zero.append("rate")
    for key in zero:
        mistakes.add("out-of-range", (*key_path, key), f"`{full}.{key}` is zero", expected="more than zero")
    size_list = app.get("sizes")
    if isinstance(size_list, list) and (not size_list or 0 in _read(size_list, quantities.size)):
        mistakes.add(
            "out-of-range",
            (*key_path, "sizes"),
            f"`{full}.sizes` is empty, or contains zero",
            expected="at least one size, and sizes above zero",
        )


def _video(app: Raw, key_path: KeyPath, full: str, mistakes: Mistakes) -> None:
    bitrates = _read(app.get("bitrates", list(BITRATES)), quantities.rate)
    if not bitrates or not all(bitrates) or any(low >= high for low, high in pairwise(bitrates)):
        mistakes.add(
            "out-of-range",
            (*key_path, "bitrates"),
            f"`{full}.bitrates` is empty, has a zero, or does not ascend",
            found=", ".join(map(str, levels)) if isinstance(levels := app.get("bitrates"), list) else None,
            expected="bitrates above zero, the lowest first",
            hint='bitrates = ["1Mbps", "3Mbps", "6Mbps"]',
        )
    segment, buffer = (values.quantity(app, key, quantities.time, DEFAULTS[key]) for key in ("segment", "buffer"))
    if segment and buffer is not None and buffer < MIN_SEGMENTS * segment:
        mistakes.add(
            "out-of-range",
            (*key_path, "buffer" if "buffer" in app else "segment"),
            f"`{full}.buffer` holds less than two segments",
            found=f"buffer {app.get('buffer', DEFAULTS['buffer'])}, segment {app.get('segment', DEFAULTS['segment'])}",
            expected="a buffer of at least two segments",
        )


def _read(texts: TomlValue | None, parse: Callable[[str], int]) -> list[int]:
    read = [values.quantity({"it": text}, "it", parse) for text in texts] if isinstance(texts, list) else []
    return [number for number in read if number is not None]
