"""The command line as typed by the user, for run directories and messages."""

import shlex
import sys


def words() -> list[str]:
    """Return the words of the command line; bytes that are not valid UTF-8 are escaped."""
    return ["thalweg", *(word.encode(errors="backslashreplace").decode() for word in sys.argv[1:])]


def again() -> str:
    """Return the command line, quoted for a shell."""
    return shlex.join(words())
