"""What a worker has: a function that runs there before any work does, also where thalweg is not installed.

Dask sends it by value, so it must not use anything of this module or of thalweg at the top.
"""

from typing import TypedDict


class Probe(TypedDict):
    """What was found on a worker."""

    thalweg: str
    """Version; empty: not installed."""
    engine: str
    """Version of the engine's results; empty without an engine."""
    why: str
    """Why the engine is missing."""


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
