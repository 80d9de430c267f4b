"""Run directories, read: `open_run` gives tables, metadata and the journal of one run.

This layer imports nothing of ours but the errors: a report can be made again on any machine that has the directory.
"""

from thalweg.results.run import Measured, Run, Untrustworthy, open_run

__all__ = ["Measured", "Run", "Untrustworthy", "open_run"]
