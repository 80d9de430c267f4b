"""JSON that pages' scripts and Vega-Lite read."""

from typing import Any

PageJson = dict[str, Any]
"""A JSON object whose keys Python only writes: their types are checked by Vega-Lite's schema and the tests of pages."""
