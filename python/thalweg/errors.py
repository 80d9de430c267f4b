"""Errors for users: the value found, its location, the expected value, and what to type next.

A `ThalwegError` is one mistake; `ThalwegErrors` is several that are reported together.
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of `thalweg`."""

    FINE = 0
    """Everything requested was done."""
    FAILED = 1
    """Something ran and failed, `compare` found a real difference, `--check` of `reproduce` or `validate` failed, or
    `doctor --live` found connections short of CPU.
    """
    USAGE = 2
    """The command line or the scenario is wrong."""
    CANNOT_WRITE = 3
    """A file or directory cannot be written: permissions, a full disk."""
    MISSING = 4
    """A requirement is missing on this machine, or on a cluster."""
    NO_EVIDENCE = 5
    """There is no evidence: nothing could be compared or evaluated, or no experiment of a run can be used."""
    INCOMPLETE = 6
    """Some evidence is missing: experiments are untrustworthy, failed or unfinished, or `compare` lacks a requested
    measure or flow.
    """
    CHECK_BROKEN = 7
    """A bound of `--check` of `run` or `results` does not hold: its interval is beyond the bound."""
    NOT_SETTLED = 8
    """A bound of `--check` of `run` or `results`, or a row of `compare --strict`, is not settled: too few repetitions,
    or values are missing.
    """
    TEMPORARY = 75
    """A resource of this machine is used up (open files, processes, memory), or a cluster stopped responding. Retry
    later.
    """
    INTERRUPTED = 130
    """Ctrl-C, SIGTERM or SIGHUP."""


@dataclass(frozen=True)
class Source:
    """Location of a mistake."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return the location in the format of compilers.

        >>> str(Source("itc.toml", 7))
        'itc.toml:7'
        """
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


class ThalwegError(Exception):
    """One mistake.

    `code` is a stable slug; `place` is the affected key (`flow.medium.cc`), option or path.

    >>> error = ThalwegError("no-file", "there is no file `itc.toml`", hint="see `ls`")
    >>> print(error.text())
    error[no-file]: there is no file `itc.toml`
      hint: see `ls`
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        place: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
        source: Source | None = None,
        exit_code: Exit = Exit.USAGE,
    ) -> None:
        """Create an error; `message` is one line without a full stop."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.found = found
        self.expected = expected
        self.hint = hint
        self.source = source
        self.exit_code = exit_code

    @property
    def errors(self) -> Sequence["ThalwegError"]:
        """The contained mistakes."""
        return (self,)

    def text(self) -> str:
        """Return the error as text for a terminal, without colour."""
        lines = [f"error[{self.code}]: {self.message}"]
        if self.source:
            lines.append(f"  --> {self.source}")
        if self.found is not None and self.found not in self.message:
            lines.append(f"  found {self.found}")
        if self.expected:
            lines.append(f"  expected {self.expected}")
        lines.extend(f"  hint: {hint}" for hint in (self.hint or "").splitlines())
        return "\n".join(lines)

    def as_dict(self) -> dict[str, str | int | None]:
        """Return the error in the form that `--json` prints."""
        source = self.source or Source("")
        return {
            "code": self.code,
            "message": self.message,
            "place": self.place,
            "found": self.found,
            "expected": self.expected,
            "hint": self.hint,
            "file": source.file or None,
            "line": source.line,
            "column": source.column,
        }


_SHORTAGES = {
    errno.EMFILE: "raise the limit of open files: ulimit -n 4096, or LimitNOFILE=4096 in a systemd unit",
    errno.ENFILE: "close programs, or raise the limit as root: sysctl -w fs.file-max=1000000",
    errno.ENOMEM: "close other programs; ulimit -v shows a limit of this process",
    errno.EAGAIN: "close other programs, or raise the limit of processes: ulimit -u, or TasksMax= in a systemd unit",
}
"""Remedies for exhausted resources, by errno. A full disk has a separate exit code."""


def shortage(error: OSError) -> ThalwegError | None:
    """Return the error for an exhausted resource, or `None` for any other system error.

    Call this before a system error is explained as a missing program or a damaged file.

    >>> shortage(OSError(errno.EMFILE, "Too many open files")).exit_code
    <Exit.TEMPORARY: 75>
    >>> shortage(OSError(errno.ENOENT, "No such file or directory"))
    """
    hint = _SHORTAGES.get(error.errno or 0)
    if hint is None:
        return None
    subject = f"`{error.filename}`: " if error.filename else ""
    why = (error.strerror or str(error)).lower()
    return ThalwegError("short-of-resources", f"{subject}{why}", hint=hint, exit_code=Exit.TEMPORARY)


def shortage_behind(error: BaseException) -> ThalwegError | None:
    """Return the error for an exhausted resource that a library reports with its own message; otherwise `None`.

    >>> shortage_behind(RuntimeError("can't start new thread")).exit_code
    <Exit.TEMPORARY: 75>
    >>> shortage_behind(RuntimeError("no such table"))
    """
    text = str(error)
    if isinstance(error, OSError):
        return shortage(error)
    if isinstance(error, RuntimeError) and "start new thread" in text:
        return shortage(OSError(errno.EAGAIN, "no thread can be started"))
    if isinstance(error, ImportError) and any(sign in text for sign in _NO_MEMORY):
        return shortage(OSError(errno.ENOMEM, "a library cannot be loaded into memory"))
    return None


_NO_MEMORY = ("failed to map segment", "annot allocate memory")
"""Messages of the dynamic linker if a library does not fit into memory."""


class ThalwegErrors(ThalwegError):
    """Several mistakes, found together."""

    def __init__(self, errors: Sequence[ThalwegError]) -> None:
        """Bundle `errors`, at least one, in display order."""
        first = errors[0]
        super().__init__(first.code, first.message, place=first.place, exit_code=first.exit_code)
        self._errors = tuple(errors)

    @property
    def errors(self) -> Sequence[ThalwegError]:
        """The contained mistakes."""
        return self._errors

    def text(self) -> str:
        """Return every error as text, separated by empty lines."""
        return "\n\n".join(error.text() for error in self._errors)
