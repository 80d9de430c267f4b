"""The command line as the user typed it, for run directories and messages."""

import shlex
import sys


def words() -> list[str]:
    """Return what the user typed; bytes of names that are no UTF-8 are escaped."""
    return ["thalweg", *(word.encode(errors="backslashreplace").decode() for word in sys.argv[1:])]


def again() -> str:
    """Return the command for a shell."""
    return shlex.join(words())
