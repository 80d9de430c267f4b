"""The drawing script: Vega, Vega-Lite and Vega-Embed in one file, from the installed package vl-convert.

Assembling it is slow, so `make setup` stores it. It is assembled on demand if it is missing, or if the version of
vl-convert or Altair has changed.
"""

from functools import cache
from importlib import metadata, resources
from pathlib import Path

BUNDLE = resources.files("thalweg.report").joinpath("static", "library.js")


@cache
def script() -> str:
    """Return the script, escaped for embedding in a page."""
    try:
        versions, _, bundle = BUNDLE.read_text(encoding="utf-8").partition("\n")
    except FileNotFoundError:
        return _bundled()
    return bundle if versions == _versions() else _bundled()


def write() -> None:
    """Assemble the script and store it in the package."""
    Path(str(BUNDLE)).write_text(f"{_versions()}\n{_bundled()}", encoding="utf-8")


def _versions() -> str:
    return f"// vl-convert {metadata.version('vl-convert-python')}, Altair {metadata.version('altair')}"


def vega_lite() -> str:
    """Return the version of Vega-Lite that Altair validates, in the notation of vl-convert."""
    from altair import SCHEMA_VERSION

    return ".".join(SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _bundled() -> str:
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;", vl_version=vega_lite())
    return bundle.replace("</script", r"<\/script")
