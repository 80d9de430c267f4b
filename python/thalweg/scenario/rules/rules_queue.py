"""Rules of the queue disciplines, policers and aggregation of [path] and [path.reverse]."""

from types import MappingProxyType

from thalweg.scenario import values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.text import quantities, words

MTU_BYTES = 1500
"""Size of a full-sized IP packet."""

DISCIPLINES = ("fifo", "codel", "fq_codel", "pie", "fq_pie", "red", "fq", "dualpi2", "cake")

PARAMETERS = MappingProxyType(
    {
        "limit": DISCIPLINES[1:],
        "target": ("codel", "fq_codel", "pie", "fq_pie", "dualpi2"),
        "interval": ("codel", "fq_codel"),
        "flows": ("fq_codel", "fq_pie"),
        "quantum": ("fq_codel", "fq_pie", "fq"),
        "initial_quantum": ("fq",),
        "flow_limit": ("fq",),
        "memory_limit": ("fq_codel", "fq_pie"),
        "drop_batch": ("fq_codel",),
        "ecn": ("codel", "fq_codel", "pie", "fq_pie", "red"),
        "ce_threshold": ("codel", "fq_codel", "fq"),
        "ecn_prob": ("fq_pie",),
        "min": ("red",),
        "max": ("red",),
        "avpkt": ("red",),
        "burst": ("red",),
        "probability": ("red",),
        "tupdate": ("pie", "fq_pie", "dualpi2"),
        "alpha": ("pie", "fq_pie", "dualpi2"),
        "beta": ("pie", "fq_pie", "dualpi2"),
        "step_thresh": ("dualpi2",),
        "coupling_factor": ("dualpi2",),
        "classic_protection": ("dualpi2",),
        "rtt": ("cake",),
    }
)
"""Disciplines that have each parameter."""

ABOVE_ZERO = ("target", "interval", "tupdate", "rtt")

MAX_PIE_WEIGHT = 32
"""Maximum of alpha and beta, from tc-pie(8): both are integers in sixteenths of 1/s."""


def check(link: Raw, key_path: KeyPath, mistakes: Mistakes) -> None:
    """Check the queue discipline, the policer and the aggregation of one direction."""
    _queue(values.table(link, "queue"), (*key_path, "queue"), mistakes)
    _policer(values.table(link, "policer"), (*key_path, "policer"), mistakes)
    _aggregation(values.table(link, "aggregation"), (*key_path, "aggregation"), mistakes)


def _queue(queue: Raw, key_path: KeyPath, mistakes: Mistakes) -> None:
    name = queue.get("name")
    if name not in DISCIPLINES:
        return
    for key, disciplines in PARAMETERS.items():
        if key in queue and name not in disciplines:
            full = ".".join((*map(str, key_path), key))
            mistakes.add(
                "no-effect",
                (*key_path, key),
                f"`{full}` has no effect: {name} has no such parameter",
                expected=f"{key} only with {words.one_of(disciplines)}",
                hint='set path.buffer = "1bdp", which limits a fifo'
                if (key, name) == ("limit", "fifo")
                else f"remove `{key}`",
            )
    for key in ABOVE_ZERO:
        _above_zero(queue, (*key_path, key), mistakes)
    low, high = (values.quantity(queue, key, quantities.size) for key in ("min", "max"))
    if low is not None and high is not None and low > high:
        mistakes.add(
            "out-of-range",
            (*key_path, "max"),
            f"`{'.'.join(map(str, key_path))}.max` is {queue['max']}, below min = {queue['min']}",
            expected="max of at least min",
        )
    for key in ("alpha", "beta"):
        weight = queue.get(key)
        is_whole = isinstance(weight, int | float) and float(weight).is_integer() and weight <= MAX_PIE_WEIGHT
        if name in ("pie", "fq_pie") and isinstance(weight, int | float) and not is_whole:
            mistakes.add(
                "out-of-range",
                (*key_path, key),
                f"`{'.'.join(map(str, key_path))}.{key}` is {weight}",
                expected=f"a whole number from 0 to {MAX_PIE_WEIGHT}, in sixteenths of 1/s",
            )


def _policer(policer: Raw, key_path: KeyPath, mistakes: Mistakes) -> None:
    name = ".".join(map(str, key_path))
    if values.quantity(policer, "rate", quantities.rate) == 0:
        mistakes.add("out-of-range", (*key_path, "rate"), f"`{name}.rate` is zero", expected="a rate above zero")
    burst = values.quantity(policer, "burst", quantities.size)
    if burst is not None and burst < MTU_BYTES:
        mistakes.add(
            "out-of-range",
            (*key_path, "burst"),
            f"`{name}.burst` is {burst} B: no full packet would ever pass",
            expected=f"{MTU_BYTES} B or more",
        )


def _aggregation(aggregation: Raw, key_path: KeyPath, mistakes: Mistakes) -> None:
    _above_zero(aggregation, (*key_path, "interval"), mistakes)
    if values.quantity(aggregation, "max_bytes", quantities.size) == 0:
        name = ".".join(map(str, key_path))
        mistakes.add("out-of-range", (*key_path, "max_bytes"), f"`{name}.max_bytes` is zero", expected="1B or more")


def _above_zero(table: Raw, key_path: KeyPath, mistakes: Mistakes) -> None:
    if values.quantity(table, str(key_path[-1]), quantities.time) == 0:
        mistakes.add(
            "out-of-range", key_path, f"`{'.'.join(map(str, key_path))}` is zero", expected="a time above zero"
        )
