"""Figures as files for papers: vector graphics or images in light colours."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

from thalweg.errors import Exit, ThalwegError
from thalweg.report.drawing.draw import Drawing, draw
from thalweg.report.drawing.figure import Figure
from thalweg.report.files import cannot_write, replace
from thalweg.report.library import vega_lite
from thalweg.report.page_json import PageJson, inside

Format = Literal["svg", "png", "pdf"]
FORMATS: tuple[str, ...] = get_args(Format)

PNG_SCALE = 3.0
"""Pixels of an image per pixel of the drawing: 288 dots per inch."""
WIDTH = 460
"""Width of a single panel in pixels (96 per inch): about that of a text column."""
HEIGHT = 230
PANEL_WIDTH, PANEL_HEIGHT = 210, 130
MAX_COLUMNS = 3
CELL_WIDTH, CELL_HEIGHT = 40, 24
LETTER = 5.6

INK, MUTED, GRID = "#1a1a1a", "#444444", "#dddddd"
CONFIG: PageJson = {
    "background": "white",
    "font": "Liberation Sans, Arial, Helvetica, DejaVu Sans, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED, "titleColor": INK, "labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": 400,
        "grid": False, "domainColor": MUTED, "tickColor": MUTED, "tickSize": 4,
    },
    "axisY": {"grid": True, "gridColor": GRID},
    "header": {"labelColor": INK, "labelFontSize": 11, "labelFontWeight": 600},
    "legend": {"labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": 400, "labelLimit": 320},
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
    "facet": {"spacing": 16},
}  # fmt: skip


def save(figures: Iterable[Figure], directory: Path, form: str = "svg") -> list[Path]:
    """Write each figure as `ID.FORMAT` into a folder, atomically; all figures are drawn before the first one is
    written.

    Raises:
        ThalwegError: If the format is unknown, or if the folder cannot be written.
    """
    prepare(directory, form)
    contents = {directory / name: content for name, content in _named(figures, form).items()}
    for path, content in contents.items():
        try:
            replace(path, content)
        except OSError as error:
            raise _cannot_write(path, error.strerror or str(error)) from error
    return list(contents)


def prepare(directory: Path, form: str) -> None:
    """Create the folder of figures, and check that they can be written.

    Raises:
        ThalwegError: If the format is unknown, or if the folder cannot be written.
    """
    if form not in FORMATS:
        raise ThalwegError(
            "no-format",
            f"figures cannot be written as `{form}`",
            place="--format",
            hint=f"use {', '.join(FORMATS[:-1])} or {FORMATS[-1]}",
            exit_code=Exit.USAGE,
        )
    if directory.exists() and not directory.is_dir():
        raise _cannot_write(directory, "it is a file, not a folder")
    probe = directory / ".thalweg-figures"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _cannot_write(directory, error.strerror or str(error)) from error


def _cannot_write(path: Path, why: str) -> ThalwegError:
    return cannot_write(path, "figures", why, "choose another folder with --figures DIR")


def _named(figures: Iterable[Figure], form: str) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for figure in figures:
        name = figure.id
        while f"{name}.{form}".lower() in (taken.lower() for taken in contents):
            name += "-2"
        contents[f"{name}.{form}"] = rendered(figure, form)
    return contents


def rendered(figure: Figure, form: str = "svg") -> bytes:
    """Return a figure as the content of a file in a format."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(specification(figure), vl_version=vega_lite())
    if form == "png":
        return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    if form == "pdf":
        return bytes(vl_convert.svg_to_pdf(svg))
    return svg.encode()


def specification(figure: Figure) -> PageJson:
    """Return the instantiated template of a figure for a printed page."""
    drawing = draw(figure)
    times = [x for row in drawing.rows if isinstance(x := row["x"], int | float)] if drawing.kind == "series" else []
    spec = inside(
        filled(
            drawing.spec,
            {
                "ink": INK,
                "names": [line.name for line in drawing.lines],
                "colours": [line.colour.light for line in drawing.lines],
                "dashes": [[*line.dash] for line in drawing.lines],
                "shapes": [line.shape for line in drawing.lines],
                "panels": [*drawing.panels],
                "x_domain": [*drawing.x_domain],
                "y_domain": [*drawing.y_domain],
                "t_domain": [min([0.0, *times]), max(times, default=1.0)],
                "gradient": 200,
            },
        )
    )
    columns = _size(spec, drawing)
    _add_legends(spec, drawing, columns)
    full_spec = spec if len(drawing.panels) > 1 else {**inside(spec, "spec"), "$schema": spec["$schema"]}
    text = [*([drawing.note] if drawing.note else [])]
    title = {"text": figure.title, "subtitle": text, "subtitleFontSize": 10} if text else {"text": figure.title}
    return {**full_spec, "data": {"values": drawing.rows}, "title": title, "config": CONFIG}


def filled(part: object, values: Mapping[str, object]) -> object:
    """Instantiate a template: `@name` is replaced by a value, and a list with only that by a list."""
    if isinstance(part, str):
        return values[part[1:]] if part.startswith("@") else part
    if isinstance(part, list):
        [first, *others] = part or [None]
        if isinstance(first, str) and first.startswith("@") and not others:
            return values[first[1:]]
        return [filled(element, values) for element in part]
    if isinstance(part, dict):
        return {key: filled(value, values) for key, value in part.items()}
    return part


def _size(spec: PageJson, drawing: Drawing) -> int:
    """Set the size of each panel; return the number of panels in a row."""
    max_columns = MAX_COLUMNS
    if drawing.kind == "heatmap":
        width, height = CELL_WIDTH * len(drawing.x_domain), CELL_HEIGHT * len(drawing.y_domain)
        max_columns = max(1, int(MAX_COLUMNS * (PANEL_WIDTH + 20) / max(1, width)))
    else:
        width, height = (WIDTH, HEIGHT) if len(drawing.panels) < 2 else (PANEL_WIDTH, PANEL_HEIGHT)
    inside(spec, "spec").update(width=width, height=height)
    panels = max(1, len(drawing.panels))
    columns = math.ceil(panels / math.ceil(panels / max_columns))
    spec["columns"] = columns
    longest = max((len(text) for text in drawing.x_domain), default=0)
    if longest * LETTER * len(drawing.x_domain) > width:
        for encoding in _encodings(spec):
            inside(encoding, "x", "axis")["labelAngle"] = -40
    if any(len(panel) * LETTER > width for panel in drawing.panels):
        inside(spec, "facet", "header")["labelExpr"] = "split(datum.label, ' · ')"
    return columns


def _encodings(spec: PageJson) -> list[PageJson]:
    layers = inside(spec, "spec")["layer"]
    assert isinstance(layers, list), "a template has layers"
    return [inside(layer, "encoding") for layer in layers]


def _add_legends(spec: PageJson, drawing: Drawing, columns: int) -> None:
    names = [line.name for line in drawing.lines if line.name]
    if len(names) < 2:
        return
    width = max(len(name) for name in names) * LETTER + 40
    room = WIDTH if len(drawing.panels) < 2 else columns * PANEL_WIDTH
    legend = {"title": None, "orient": "bottom", "columns": max(1, min(len(names), int(room / width)))}
    for encoding in _encodings(spec):
        for channel in ("color", "shape", "strokeDash"):
            channel_spec = encoding.get(channel)
            if isinstance(channel_spec, dict) and channel_spec.get("field") == "series":
                encoding[channel] = channel_spec | {"legend": legend}
