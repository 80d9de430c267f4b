"""Output of a fuzzer's findings, and of a planned search, on a terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.cli import typed
from thalweg.cli.printing import output
from thalweg.search.failures import described
from thalweg.search.findings import sentence

if TYPE_CHECKING:
    from thalweg.search.findings import Finding
    from thalweg.search.fuzz_table import Fuzz


def show(fuzz: "Fuzz", findings: "Sequence[Finding]", files: Sequence[Path], directory: Path, page: Path) -> None:
    """Print the paths of all results, and a sentence for each finding."""
    output.data(f"fuzz    {directory}")
    output.data(f"page    {page}")
    output.data(f"again   {typed.again()}")
    for name, text in described(fuzz.failures).items():
        matching = [
            (candidate, file) for candidate, file in zip(findings, files, strict=True) if candidate.failure.name == name
        ]
        count = (
            f"{len(matching)} kinds"
            if len(matching) > 1
            else "1 kind"
            if matching
            else f"nothing in {fuzz.budget} candidates"
        )
        output.data(f"\n{name}, {text}: {count}")
        for finding, file in matching:
            output.data(f"  {sentence(fuzz.document, finding)}")
            if finding.confirmed:
                output.data(f"    {finding.confirmed.text}")
            output.data(f"    {file}")


def describe(fuzz: "Fuzz") -> str:
    """Return a description of a planned fuzz run."""
    failures = "; ".join(f"{name}, {text}" for name, text in described(fuzz.failures).items())
    return f"[fuzz] {fuzz.budget} candidates for each failure: {failures}\n  conditions: {', '.join(fuzz.ranges)}"
