"""Applications of a plan: all parameters, with defaults for those that a scenario does not set."""

from thalweg.plan import models as plan
from thalweg.scenario import models
from thalweg.scenario.rules import rules_app
from thalweg.scenario.rules.rules_app import CONNECTIONS, DEFAULTS, NUMBERS
from thalweg.scenario.text import quantities
from thalweg.scenario.values import NANOS

BITS = 8


def resolve(app: models.App) -> plan.App:
    """Return an application with all its parameters."""
    table = app if isinstance(app, models.AppTable) else models.AppTable(name=app)
    match table.name:
        case "video":
            return _video(table)
        case "web":
            return _web(table)
        case "call":
            return _call(table)
        case "rpc":
            return _rpc(table)
        case "probe":
            size_bytes = quantities.size(table.size or DEFAULTS["size"])
            return plan.AppProbe(
                size_bytes=size_bytes, interval_ns=quantities.time(table.interval or DEFAULTS["interval"])
            )


def _video(table: models.AppTable) -> plan.AppVideo:
    return plan.AppVideo(
        bitrates_bps=[quantities.rate(rate) for rate in table.bitrates or rules_app.BITRATES],
        segment_ns=quantities.time(table.segment or DEFAULTS["segment"]),
        buffer_ns=quantities.time(table.buffer or DEFAULTS["buffer"]),
    )


def _web(table: models.AppTable) -> plan.AppWeb:
    return plan.AppWeb(
        objects=table.objects or NUMBERS["objects"],
        depth=table.depth or NUMBERS["depth"],
        sizes_bytes=_sizes(table, "web"),
        connections=table.connections or CONNECTIONS["web"],
        pages=table.pages or NUMBERS["pages"],
        think_ns=quantities.time(table.think or DEFAULTS["think"]),
    )


def _call(table: models.AppTable) -> plan.AppCall:
    fps = table.fps or NUMBERS["fps"]
    bitrate = quantities.rate(table.bitrate or DEFAULTS["bitrate"])
    return plan.AppCall(
        frame_bytes=max(1, round(bitrate / (fps * BITS))),
        interval_ns=round(NANOS / fps),
        freeze_ns=quantities.time(table.freeze or DEFAULTS["freeze"]),
    )


def _rpc(table: models.AppTable) -> plan.AppRpc:
    sizes_bytes = _sizes(table, "rpc")
    per_second = rules_app.arrivals(quantities.arrival_rate(table.rate or DEFAULTS["rate"]), sizes_bytes)
    return plan.AppRpc(
        # A gap of zero would make everything arrive at the same time; a nanosecond is the resolution of the clock.
        mean_gap_ns=max(1, round(NANOS / per_second)),
        sizes_bytes=sizes_bytes,
        connections=table.connections or CONNECTIONS["rpc"],
    )


def _sizes(table: models.AppTable, name: str) -> list[int]:
    return [quantities.size(size) for size in table.sizes or rules_app.SIZES[name]]
