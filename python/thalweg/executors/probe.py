"""Detects a worker's properties with a function that works even if thalweg is not installed there.

Dask serialises the function by value, so it must import thalweg itself.
"""

from typing import TypedDict


class Probe(TypedDict):
    """Properties of a worker."""

    thalweg: str
    """Version of thalweg; empty if it is not installed."""
    engine: str
    """Version of the engine's results; empty if the engine cannot be used."""
    why: str
    """Reason why thalweg is missing or the engine cannot be used; otherwise empty."""


def probe(engine_name: str) -> Probe:
    """Detect thalweg and its engine on the worker that runs this function."""
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
