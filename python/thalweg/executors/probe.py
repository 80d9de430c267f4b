"""Properties of a worker, from a function that runs there before any work, also where thalweg is not installed.

Dask sends it by value, so it must not use other names of this module or of thalweg.
"""

from typing import TypedDict


class Probe(TypedDict):
    """Properties of a worker."""

    thalweg: str
    """Version; empty: not installed."""
    engine: str
    """Version of the engine's results; empty without an engine."""
    why: str
    """Reason why the engine is missing."""


def probe(engine_name: str) -> Probe:
    """Find thalweg and its engine on the worker that runs this."""
    try:
        from thalweg import __version__, engine
        from thalweg.errors import ThalwegError
    except ImportError as error:
        return {"thalweg": "", "engine": "", "why": str(error)}
    try:
        version = engine.choose(engine_name, engine.capabilities(engine_name)).version
    except ThalwegError as error:
        return {"thalweg": __version__, "engine": "", "why": error.message}
    return {"thalweg": __version__, "engine": version, "why": ""}
