"""The executor `local`: the engine of this machine."""

from thalweg import run
from thalweg.executors.work import Work
from thalweg.run import Outcome


def execute(work: Work) -> Outcome:
    """Run the work on this machine."""
    return run.execute(
        work.plan,
        work.out,
        binary=work.binary,
        threads=work.threads,
        command=work.command,
        listener=work.listener,
        due=work.due,
    )
