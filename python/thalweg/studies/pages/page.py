"""Converts a reproduced study to its page."""

import shlex
from collections.abc import Sequence

from thalweg import analysis, engine
from thalweg.report.pages import study as report
from thalweg.studies.claims.load import Study
from thalweg.studies.claims.models import Claim
from thalweg.studies.judging.judged import Judged
from thalweg.studies.pages import figures, lessons, texts
from thalweg.studies.running.reproduce import Reproduced


def as_page(study: Study, reproduced: Sequence[Reproduced], *, quick: bool) -> report.StudyPage:
    """Return the content of the page of a study."""
    claims = study.claims
    drawn_figures = figures.draw(study, reproduced)
    return report.StudyPage(
        name=study.name,
        title=claims.title,
        about=claims.about.strip(),
        cite=claims.paper.cite.strip(),
        url=claims.paper.url or "",
        story=study.story,
        engines=[result.engine.name for result in reproduced],
        claims=[_claim(claim, reproduced) for claim in claims.claims],
        figures=drawn_figures.figures,
        provenance=[_provenance(study, result, quick=quick) for result in reproduced if result.directories],
        sections=lessons.sections(study, reproduced, quick=quick),
        is_quick=quick,
        cautions=[caution for result in reproduced for caution in _cautions(result)],
        left_out=drawn_figures.left_out,
    )


def _claim(claim: Claim, reproduced: Sequence[Reproduced]) -> report.PageClaim:
    return report.PageClaim(
        id=claim.id,
        text=claim.text.strip(),
        source=claim.source,
        paper=texts.paper(claim),
        judged=[_judged(claim, result.engine.name, result.judged[claim.id]) for result in reproduced if result.judged],
        asked=texts.asked(claim),
        trust=(claim.trust or "").strip(),
        reason=(claim.reason or "").strip(),
    )


def _judged(claim: Claim, name: str, judged: Judged) -> report.PageVerdict:
    return report.PageVerdict(
        name, judged.verdict, texts.with_interval(judged, texts.unit(claim)), judged.n, judged.note
    )


def _provenance(study: Study, reproduced: Reproduced, *, quick: bool) -> report.Provenance:
    words = ["thalweg", "reproduce", study.name]
    words += ["--engine", reproduced.engine.name] if reproduced.engine.name != engine.DEFAULT else []
    words += ["--quick"] if quick else []
    return report.Provenance(
        engine=reproduced.engine.name,
        version=reproduced.engine.version,
        command=shlex.join(words),
        seconds=reproduced.seconds if reproduced.is_fresh else None,
        machine=_machine(reproduced),
        experiments=reproduced.experiments,
        scaled=[
            f"{part}: {planned_part.scaled}"
            for part, planned_part in reproduced.planned_parts.items()
            if planned_part.scaled and planned_part.plan
        ],
        directories=[str(directory) for directory in reproduced.directories.values()],
    )


def _machine(reproduced: Reproduced) -> str:
    runs = [data.run for data in reproduced.parts.values() if data.run]
    host = runs[0].meta.get("host", {}) if runs else {}
    cores = f"{host['cores']} cores" if "cores" in host else ""
    return ", ".join(str(fact) for fact in (host.get("cpu"), cores, host.get("os"), host.get("kernel")) if fact)


def _cautions(reproduced: Reproduced) -> list[str]:
    cautions = []
    for part, data in reproduced.parts.items():
        if data.run is None:
            continue
        status, name = analysis.status(data.run), f"{part} on {reproduced.engine.name}"
        if status.failures:
            why = status.failures[0].message.strip().splitlines()[0]
            cautions.append(f"{name}: {len(status.failures)} of {status.expected} experiments failed: {why}")
        if status.untrustworthy:
            marked = {(mark.experiment, mark.repetition) for mark in status.untrustworthy}
            why = status.untrustworthy[0].reason
            cautions.append(f"{name}: {len(marked)} experiments are untrustworthy, and left out: {why}")
        if status.missing:
            cautions.append(f"{name}: {status.missing} of {status.expected} experiments are missing")
    return cautions
