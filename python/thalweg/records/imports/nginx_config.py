"""The format of nginx's access log, as the user gives it or as nginx.conf does."""

import re
from collections.abc import Iterator
from pathlib import Path

from thalweg.errors import ThalwegError
from thalweg.records.imports.log_lines import Field, LineForm, Part

COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
"""What nginx writes when its configuration names no format; it says nothing of TCP."""

VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
TOKEN = re.compile(r"""#[^\n]*|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([{};])|([^\s;{}"'#][^\s;{}]*)""", re.S)


def line_form(text: str) -> LineForm:
    """Take a format apart into literal texts and variables.

    Raises `ThalwegError` if it has no variable, or two with nothing in between.
    """
    parts: list[Part] = []
    end = 0
    for match in VARIABLE.finditer(text):
        if match.start() > end:
            parts.append(text[end : match.start()])
        name = match[1] or match[2]
        parts.append(Field(name, is_list=name.startswith("upstream_")))
        end = match.end()
    if end < len(text):
        parts.append(text[end:])
    if not end:
        raise ThalwegError(
            "bad-format",
            f"the format `{text}` has no variable",
            place="--format-string",
            expected="what log_format has in nginx.conf, in single quotes for the shell",
            hint="--format-string '$remote_addr $msec $request_time $bytes_sent $tcpinfo_rtt'",
        )
    return LineForm(parts, text)


def log_format(config: Path, name: str | None) -> str:
    """Find a format in a file of nginx's configuration; without a name, the only one that there is.

    Files that it includes are not looked into. Raises `ThalwegError` if there is none of that name.
    """
    try:
        text = config.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ThalwegError(
            "cannot-read",
            f"`{config}` cannot be read: {(error.strerror or str(error)).lower()}",
            place="--config",
            hint="--config /etc/nginx/nginx.conf",
        ) from None
    formats = {"combined": COMBINED, **dict(_formats(text))}
    named = [each for each in formats if each != "combined"]
    if name is None and len(named) == 1:
        name = named[0]
    if name in formats:
        return formats[name]
    what = f"no log_format `{name}`" if name else f"{len(named)} formats of logs" if named else "no log_format"
    none = "--config the included file that has it; if there is none, nginx writes its own format: leave --config away"
    raise ThalwegError(
        "no-format",
        f"`{config}` has {what}",
        place="--format-name" if name else "--config",
        found=", ".join(named) or "none",
        expected="the name of a log_format in that very file; files that it includes are not read",
        hint=f"--format-name {named[0]}" if named else none,
    )


def _formats(text: str) -> Iterator[tuple[str, str]]:
    """Give the formats of a configuration by their names; the parts of one are joined as nginx does."""
    words: list[str] = []
    for match in TOKEN.finditer(text):
        if match[0].startswith("#"):
            continue
        if match[3]:
            if len(words) > 2 and words[0] == "log_format":
                parts = words[2:]
                yield words[1], "".join(parts[1:] if parts[0].startswith("escape=") else parts)
            words = []
        else:
            words.append(
                next(re.sub(r"\\(.)", r"\1", part) for part in (match[1], match[2], match[4]) if part is not None)
            )
