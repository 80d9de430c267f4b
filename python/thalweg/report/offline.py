"""Makes a page a single file without network requests.

The page's Content-Security-Policy permits only the embedded scripts, identified by their hashes, so that even an
escaping bug could not run another one. It also forbids network requests.
"""

import base64
import hashlib
import json
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import thalweg
from thalweg.report import library
from thalweg.report.page_json import PageJson


def render(template: str, scripts: list[str], data: PageJson, **values: object) -> str:
    """Render a page's template; `scripts` are the names of thalweg's scripts, and `data` is their input."""
    environment = Environment(
        loader=PackageLoader("thalweg.report", "static"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    code = [library.script(), *(_file(name) for name in scripts)]
    context = {
        "policy": f"default-src 'none'; script-src {' '.join(map(_hash, code))};"
        " style-src 'unsafe-inline'; img-src data: blob:",
        "style": Markup(_file("page.css")),
        "scripts": [Markup(source) for source in code],
        "data": Markup(_json(data)),
        "version": thalweg.__version__,
    }
    return environment.get_template(template).render(**context, **values)


def _file(name: str) -> str:
    return resources.files("thalweg.report").joinpath("static", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _json(value: PageJson) -> str:
    """Return JSON for a script element; no user text can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
