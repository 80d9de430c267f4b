"""Reads run directories: `open_run` returns tables, metadata and the journal of one run.

This layer imports only shared modules, so that a report can be created on any machine that has the directory.
"""

from thalweg.results.run import Measured, Run, Untrustworthy, open_run

__all__ = ["Measured", "Run", "Untrustworthy", "open_run"]
