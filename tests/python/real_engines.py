"""Shared code of tests of engines in real time."""

from thalweg.errors import Exit

UNTRUSTWORTHY = (Exit.NO_EVIDENCE, Exit.INCOMPLETE)
"""Exit codes of a command whose experiments a busy machine has disturbed, all of them or some."""
