"""JSON that pages' scripts and Vega-Lite read."""

PageJson = dict[str, object]
"""A JSON object."""


def inside(value: object, *keys: str) -> PageJson:
    """Return the object at these nested keys."""
    for key in keys:
        value = inside(value)[key]
    assert isinstance(value, dict), "it is an object"
    return value
