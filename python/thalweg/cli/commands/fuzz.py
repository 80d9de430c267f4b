"""`thalweg fuzz`: search for conditions under which an algorithm fails."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg import engine, executors
from thalweg.cli import prepared, typed
from thalweg.cli.options import EngineName, Executor, File, OverridesOfOnePoint, Threads, option
from thalweg.cli.printing import output
from thalweg.errors import Exit
from thalweg.run.directory import RUNS

if TYPE_CHECKING:
    from thalweg.search.candidates import Candidate
    from thalweg.search.findings import Finding
    from thalweg.search.fuzz_table import Fuzz
    from thalweg.search.fuzzing import Fuzzing

EPILOG = "Example: thalweg fuzz scenarios/fuzz/policer.toml"

CONFIRM = "uml"

NOT_CONFIRMED = "none"

DOCUMENT = "fuzz.json"

PAGE = "fuzz.html"


def command(
    file: File,
    engine_name: EngineName = engine.DEFAULT,
    confirm: Annotated[
        str, option("--confirm", "ENGINE", "Engine on which findings are run again, or none. [default: uml]")
    ] = CONFIRM,
    budget: Annotated[
        int | None, option("--budget", "N", "Number of candidates per failure, instead of the scenario's.", min=1)
    ] = None,
    out: Annotated[
        Path | None, option("--out", "DIR", "Directory of the search. [default: runs/NAME-fuzz-HASH]")
    ] = None,
    threads: Threads = None,
    executor: Executor = executors.DEFAULT,
    seed: Annotated[int | None, option("--seed", "N", "Random seed, instead of the scenario's.", min=0)] = None,
    overrides: OverridesOfOnePoint = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Search for conditions under which an algorithm fails.

    The table [fuzz] of the scenario names failures, and the conditions that may cause them. Of the failing candidates
    (sets of conditions), at most three per failure are reduced to fewer and milder conditions that still fail, run
    again on another engine, and written as scenarios with a sentence that describes the failure. A page shows each of
    these scenarios over time, on --engine, beside a run without the conditions.

    The same command resumes an interrupted search; started in several terminals at once, the processes share the work.
    """
    from thalweg.search.fuzz_table import Fuzz
    from thalweg.search.fuzzing import fingerprint
    from thalweg.search.planning import claim_directory

    executors.check(executor)
    document = prepared.load(file, engine_name, overrides or [], seed)
    fuzz = Fuzz.of(document)
    fuzz = replace(fuzz, budget=budget or fuzz.budget)
    if confirm != NOT_CONFIRMED and confirm not in (every := engine.capabilities()).engines:
        engine.choose(confirm, every, "--confirm")  # this fails with a list of the engines
    plan, capabilities = prepared.plan_for(document, engine_name)
    if confirm == plan.engine:
        output.talk(f"the engine {confirm} also runs the search, so findings are not run again on another one")
        confirm = NOT_CONFIRMED
    fuzz.check(capabilities.engines[plan.engine])
    name = fingerprint(fuzz, plan, capabilities.engines[plan.engine].version)
    directory = out or RUNS / f"{plan.name}-fuzz-{name}"
    claim_directory(directory, name)
    raise typer.Exit(_fuzz(fuzz, capabilities, plan.engine, directory, threads, executor, confirm, as_json=as_json))


def _fuzz(
    fuzz: "Fuzz",
    capabilities: engine.Capabilities,
    engine_name: str,
    directory: Path,
    threads: int | None,
    executor: str,
    confirm: str,
    *,
    as_json: bool,
) -> Exit:
    from thalweg.cli.printing.search_progress import SearchProgress
    from thalweg.search import fuzz_page, locks
    from thalweg.search.fuzzing import Fuzzing
    from thalweg.search.measuring import Interrupted, Lab

    with SearchProgress(output.console(), fuzz.budget, _failing) as progress:
        lab = Lab(capabilities.binary, directory, threads, typed.words(), progress.event, executor)
        fuzzing = Fuzzing(fuzz, capabilities.engines[engine_name], capabilities, lab, directory)
        fuzzing.listener = lambda failure, evaluated: progress.candidates(evaluated, failure.name)
        fuzzing.tell = progress.say
        try:
            findings = fuzzing.run()
            # Processes that share the work run these experiments one after another; the later ones find them finished.
            with locks.exclusive(directory / "lock"):
                if confirm != NOT_CONFIRMED and findings:
                    findings = _confirmed(fuzzing, findings, confirm, progress.say)
                files = _write(fuzz, findings, directory)
                progress.say("drawing the findings")
                fuzz_page.write(fuzzing, findings, [file.stem for file in files], directory / PAGE, typed.again())
        except (Interrupted, KeyboardInterrupt):
            progress.end()
            output.talk(f"interrupted: evaluated candidates are kept; to resume: {typed.again()}")
            return Exit.INTERRUPTED
    if as_json:
        document = _as_json(fuzz, findings, files)
        output.data_json({"run": str(directory), "page": str(directory / PAGE), **document, "command": typed.words()})
    else:
        from thalweg.cli.printing import fuzz_output

        fuzz_output.show(fuzz, findings, files, directory, directory / PAGE)
    return _evidence(fuzz, fuzzing)


def _evidence(fuzz: "Fuzz", fuzzing: "Fuzzing") -> Exit:
    """Report candidates that could not be run or measured. If these are all candidates of a failure, evidence is
    missing.
    """
    code = Exit.FINE
    for name, candidates in fuzzing.without_value.items():
        if candidates:
            first = candidates[0]
            ratio = f"{len(candidates)} of {fuzz.budget} candidates"
            output.talk(f"{name}: {ratio} could not be run; {first.name}: {first.failed}")
        if len(candidates) == fuzz.budget:
            code = Exit.NO_EVIDENCE
    return code


def _failing(candidates: "Sequence[Candidate]") -> str:
    from thalweg.search.fuzzing import fails

    return f"{sum(fails(candidate) for candidate in candidates)} fail"


def _confirmed(
    fuzzing: "Fuzzing", findings: "list[Finding]", name: str, report: Callable[[str], None]
) -> "list[Finding]":
    from thalweg.search.findings import Confirmed

    capabilities = engine.capabilities()
    other = capabilities.engines[name]
    if not other.available:
        return [replace(finding, confirmed=Confirmed(name, 0, 0, None, other.reason)) for finding in findings]
    # Clusters do not run real-time engines.
    fuzzing = replace(fuzzing, known=capabilities, lab=replace(fuzzing.lab, executor=executors.DEFAULT))
    confirmed = []
    for number, finding in enumerate(findings, 1):
        report(f"confirming {number} of {len(findings)} on {name}")
        confirmed.append(fuzzing.confirm(finding, other))
    return confirmed


def _write(fuzz: "Fuzz", findings: "list[Finding]", directory: Path) -> list[Path]:
    from thalweg.report.files import cannot_write, replace
    from thalweg.search.findings import scenario_text

    scenario = str(fuzz.document.raw["name"])
    files = []
    try:
        for number, finding in enumerate(findings, 1):
            name = f"{scenario}-{finding.failure.name}-{number}"
            files.append(directory / "found" / f"{name}.toml")
            replace(files[-1], scenario_text(fuzz.document, finding, name).encode())
        replace(directory / DOCUMENT, (json.dumps(_as_json(fuzz, findings, files), indent=2) + "\n").encode())
    except OSError as error:
        hint = f"free some space, then: {typed.again()}"
        raise cannot_write(directory, "the results", error.strerror or str(error), hint) from error
    return files


def _as_json(fuzz: "Fuzz", all_findings: "list[Finding]", files: list[Path]) -> dict[str, object]:
    from thalweg.search import findings
    from thalweg.search.failures import described

    return {
        "format": 1,
        "scenario": str(fuzz.document.raw["name"]),
        "about": str(fuzz.document.raw.get("about", "")),
        "fails": described(fuzz.failures),
        "budget": fuzz.budget,
        "found": [
            findings.as_json(fuzz.document, finding) | {"scenario": file.name}
            for finding, file in zip(all_findings, files, strict=True)
        ],
    }
