"""Shared code of tests of real-time engines."""

from thalweg.errors import Exit

UNTRUSTWORTHY = (Exit.NO_EVIDENCE, Exit.INCOMPLETE)
"""Exit codes of a command with untrustworthy experiments, all of them or some."""
