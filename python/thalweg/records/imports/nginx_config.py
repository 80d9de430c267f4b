"""The format of nginx's access log, from an option or from nginx.conf."""

import re
from collections.abc import Iterator
from pathlib import Path

from thalweg.errors import ThalwegError
from thalweg.files import LARGEST_TEXT, read_regular
from thalweg.records.imports.log_lines import FormField, FormPart, LineForm

COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
"""nginx's default format, which has no TCP fields."""

VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
TOKEN = re.compile(
    r"""[ \t\r\n]+|\#[^\n]*|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([{};])|((?:\\.|\$\{|[^ \t\r\n;{\\])+)|(.)""", re.S
)
"""Tokens of nginx.conf."""
ESCAPED = re.compile(r"\\([\"'\\trn])")
MEANINGS = {"t": "\t", "r": "\r", "n": "\n"}
ADDRESSES = ("remote_addr", "server_addr", "realip_remote_addr", "upstream_addr")
"""Variables with an address, which may be followed by a port."""


def unescaped(text: str) -> str:
    r"""Replace escapes as nginx's configuration parser does; before other characters the backslash is kept.

    >>> unescaped(r"a\tb\"c\d")
    'a\tb"c\\d'
    """
    return ESCAPED.sub(lambda match: MEANINGS.get(match[1], match[1]), text)


def line_form(text: str) -> LineForm:
    """Split a format into literal texts and variables.

    Raises:
        ThalwegError: If it has no variable, or two adjacent ones.
    """
    parts: list[FormPart] = []
    end = 0
    for match in VARIABLE.finditer(text):
        if match.start() > end:
            parts.append(text[end : match.start()])
        name = match[1] or match[2]
        parts.append(FormField(name, is_list=name.startswith("upstream_"), is_address=name in ADDRESSES))
        end = match.end()
    if end < len(text):
        parts.append(text[end:])
    if not end:
        raise ThalwegError(
            "bad-format",
            f"the format `{text}` has no variable",
            place="--format-string",
            expected="the log_format of nginx.conf, in single quotes for the shell",
            hint="--format-string '$remote_addr $msec $request_time $bytes_sent $tcpinfo_rtt'",
        )
    return LineForm(parts, text)


def log_format(config: Path, name: str | None) -> str:
    """Return a format from an nginx configuration file; without a name, the only one in the file.

    Included files are not read.

    Raises:
        ThalwegError: If the file cannot be read, or not exactly one format matches.
    """
    try:
        text = read_regular(config, LARGEST_TEXT).decode("utf-8", errors="replace")
    except OSError as error:
        raise ThalwegError(
            "cannot-read",
            f"`{config}` cannot be read: {(error.strerror or str(error)).lower()}",
            place="--config",
            hint="--config /etc/nginx/nginx.conf",
        ) from None
    named_formats = list(_formats(text))
    formats = {"combined": COMBINED, **dict(named_formats)}
    custom_names = [format_name for format_name in formats if format_name != "combined"]
    if name is None and len(custom_names) == 1:
        name = custom_names[0]
    if len({form for format_name, form in named_formats if format_name == name}) > 1:
        raise ThalwegError(
            "no-format",
            f"`{config}` has several different log_formats `{name}`",
            place="--config",
            expected="one format of that name: http and stream may each have their own",
            hint="--format-string '...', with the text of the right one",
        )
    if name in formats:
        return formats[name]
    problem = (
        f"no log_format `{name}`"
        if name
        else f"{len(custom_names)} formats of logs"
        if custom_names
        else "no log_format"
    )
    without_name = (
        "set --config to the included file that has it; if none has, nginx uses its default format: omit --config"
    )
    raise ThalwegError(
        "no-format",
        f"`{config}` has {problem}",
        place="--format-name" if name else "--config",
        found=", ".join(custom_names) or "none",
        expected="the name of a log_format in the same file; included files are not read",
        hint=f"--format-name {custom_names[0]}" if custom_names else without_name,
    )


def _formats(text: str) -> Iterator[tuple[str, str]]:
    """Yield the formats of a configuration with their names; the parts of one are concatenated as in nginx."""
    words: list[str] = []
    for match in TOKEN.finditer(text):
        double, single, mark, word, _ = match.groups()
        if mark:
            if len(words) > 2 and words[0] == "log_format":
                parts = words[2:]
                yield words[1], "".join(parts[1:] if parts[0].startswith("escape=") else parts)
            words = []
        elif (part := next((group for group in (double, single, word) if group is not None), None)) is not None:
            words.append(unescaped(part))
