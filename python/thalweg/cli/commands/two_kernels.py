"""Runs a scenario on two kernels of guests, so that they can be compared."""

from collections.abc import Sequence
from pathlib import Path

from thalweg.cli import guest_kernel, typed
from thalweg.cli.prepared import prepare
from thalweg.cli.printing import output
from thalweg.errors import Exit, ThalwegError
from thalweg.run import Progress, default_directory, execute, real_time_s

ENGINE = "vm"


def run_both(scenario: Path, kernels: Sequence[str], modules: Sequence[Path]) -> list[Path]:
    """Run the missing experiments of a scenario on both kernels; return the run directories.

    Folders of modules belong to the images, in this order; fetched kernels have their own.

    Raises:
        ThalwegError: If there are not two kernels, one does not exist, there are more folders than images, or a run
            fails or is interrupted.
    """
    from thalweg.kernel import guests

    if len(kernels) != 2:
        mistakes = {0: "--modules is given without --kernel", 1: "--kernel is given once"}
        raise ThalwegError(
            "bad-usage",
            mistakes.get(len(kernels), f"--kernel is given {len(kernels)} times"),
            place="--kernel",
            expected="two guest kernels to compare",
            hint=f"thalweg compare {scenario} --kernel A --kernel B",
        )
    fetched = {guest.name for guest in guests.kernels()}
    rest = list(modules)
    pairs = [(kernel, rest.pop(0) if kernel not in fetched and rest else None) for kernel in kernels]
    if rest:
        raise ThalwegError(
            "bad-usage", "there are more --modules than kernel images", place="--modules", found=str(rest[0])
        )
    for kernel, folder in pairs:  # the second kernel is also checked before the first run starts
        guest_kernel.choose(kernel, folder, ENGINE)
    first = _run(scenario, *pairs[0])
    return [first, _run(scenario, *pairs[1], other=first)]


def _run(scenario: Path, kernel: str, modules: Path | None, other: Path | None = None) -> Path:
    """Run a scenario on a kernel; return the run directory, which is not `other`."""
    guest_kernel.choose(kernel, modules, ENGINE)
    plan, capabilities = prepare(scenario, ENGINE, [])
    engine = capabilities.engines[ENGINE]
    directory = default_directory(plan, engine)
    if directory == other:  # the same kernel twice shows the noise of the machine
        directory = directory.with_name(f"{directory.name}-2")
    seconds = real_time_s(plan, engine)
    with Progress(output.console(), title=f"{plan.name} on {kernel}", real_time_s=seconds) as progress:
        outcome = execute(plan, directory, binary=capabilities.binary, command=typed.words(), listener=progress.event)
    if outcome.exit_code is not Exit.FINE:
        raise ThalwegError(
            "experiments-failed",
            f"{len(outcome.failed)} of {outcome.experiments} experiments failed on {kernel}"
            if outcome.failed
            else f"interrupted: {outcome.present + outcome.finished} of {outcome.experiments} experiments finished on"
            f" {kernel}",
            found=str(outcome.failed[0]["message"]) if outcome.failed else None,
            hint=f"to resume: {typed.again()}",
            exit_code=outcome.exit_code,
        )
    output.talk(f"{kernel}: {directory}")
    return directory
