"""Formats of HAProxy's log lines: those of `option httplog` and `option tcplog`, and those of `log-format`."""

import itertools
import re
from collections.abc import Iterator, Sequence

from thalweg.errors import ThalwegError
from thalweg.records.imports.items import Unread
from thalweg.records.imports.log_lines import FormField, FormPart, LineForm

COUNTERS = "%ac/%fc/%bc/%sc/%rc %sq/%bq"
HTTP = f"%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc {COUNTERS} %rest"
"""Format of `option httplog` and `option httpslog`, without the end of the line. HAProxy before 1.7 wrote %t, %Tq and
%Tt instead of %tr, %TR and %Ta.
"""
TCP = f"%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts {COUNTERS}"
"""Format of `option tcplog`."""

TOKEN = re.compile(
    r"""%(?:\([^()]*\))?(?:\{([^{}]*)\})?(?:\[((?:[^\[\]"']|"[^"]*"|'[^']*')*)\]|([A-Za-z]+)|(%))""", re.ASCII
)
"""An alias or an expression with its flags, or a percent sign."""
OPTIONAL = ("hr", "hs")
"""Captured headers; if nothing is captured, the field and the space before it are missing."""
QUOTED = {
    "r", "b", "s", "f", "ft", "ci", "bi", "fi", "si", "CC", "CS", "H", "ID", "HM", "HU", "HP", "HPO", "HQ", "HV",
    "sslc", "sslv",
}  # fmt: skip
"""Text fields; `+Q` quotes only these and expressions."""
ADDRESSES = ("ci", "fi", "bi", "si")


class HaproxyFormat:
    """A log format; some of its fields may be missing in a line."""

    def __init__(self, text: str) -> None:
        """Create a format from the text of `log-format`.

        Raises:
            ThalwegError: If it is invalid.
        """
        self.text = text
        parts = list(_parts(text))
        optional = [part.name for part in parts if isinstance(part, FormField) and part.name in OPTIONAL]
        choices = [
            set(combination)
            for size in range(len(optional) + 1)
            for combination in itertools.combinations(optional, size)
        ]
        self._forms = [LineForm(_without(parts, absent), text) for absent in choices]
        self.names = self._forms[0].names

    def read(self, line: str) -> dict[str, str]:
        """Return the fields of a line by name.

        Raises:
            Unread: If the line does not match the format.
        """
        first: Unread | None = None
        for form in self._forms:
            try:
                fields = form.read(line)
            except Unread as why:
                first = first or why
                continue
            if all(fields[name].startswith("{") for name in OPTIONAL if name in fields):
                return fields
        raise first or Unread("does not match the format")


def _without(parts: Sequence[FormPart], absent: set[str]) -> list[FormPart]:
    """Remove fields, and join the literal texts around each with one space removed."""
    kept: list[FormPart] = []
    for part in parts:
        if isinstance(part, FormField):
            if part.name not in absent:
                kept.append(part)
        elif kept and isinstance(kept[-1], str):
            kept[-1] = re.sub(" +", " ", kept[-1] + part)
        else:
            kept.append(part)
    return kept


def _parts(text: str) -> Iterator[FormPart]:
    """Yield literal texts and fields; the flags in `%{+Q}o` apply to the following fields without flags."""
    # In haproxy.cfg, spaces and quotes are escaped. HAProxy writes one space for several consecutive ones.
    plain = re.sub(" +", " ", re.sub(r'\\([ "\\#])', r"\1", text))
    default_flags = ""
    literal = ""
    end = 0
    has_field = False
    for match in TOKEN.finditer(plain):
        literal += plain[end : match.start()]
        end = match.end()
        flags, expression, alias, percent = match.groups()
        if percent:
            literal += "%"
            continue
        if alias == "o":
            default_flags = flags or ""
            continue
        flags = default_flags if flags is None else flags
        if "+X" in flags:
            raise _bad(text, f"has a hexadecimal field `{match[0]}`", "decimal fields: without +X")
        name = alias or expression.strip()
        quote = '"' if "+Q" in flags and (name in QUOTED or not alias) else ""
        # `%o` prints nothing, and HAProxy writes no space at the beginning of a line or after another space.
        literal = re.sub(" +", " ", literal if has_field else literal.lstrip(" "))
        has_field = True
        if literal + quote:
            yield literal + quote
        yield FormField(name, last="}" if name in OPTIONAL else "", is_address=name in ADDRESSES)
        literal = quote
    if literal + plain[end:]:
        yield literal + plain[end:]
    if not has_field:
        raise _bad(text, "has no field", "the log-format of haproxy.cfg, in single quotes for the shell")


def _bad(text: str, problem: str, expected: str) -> ThalwegError:
    return ThalwegError(
        "bad-format",
        f"the format `{text}` {problem}",
        place="--format-string",
        expected=expected,
        hint="--format-string '%ci:%cp [%tr] %ST %B %U %Ta %[fc_rtt(us)]'",
    )
