"""Names that claims and figures can use for a part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from thalweg import analysis
from thalweg.scenario import Document
from thalweg.scenario.document import Value
from thalweg.scenario.mistakes import Mistakes
from thalweg.studies.claims import advice_measures
from thalweg.studies.claims.keys import DERIVED
from thalweg.studies.claims.models import Claims, RecordsPart, StudyPart


@dataclass(frozen=True)
class Shape:
    """Valid names of a part."""

    sweep: Mapping[str, Sequence[Value] | None]
    """Keys that distinguish points, with their values; None: the values are known only after the run."""
    flows: Sequence[str] = ()
    is_of_records: bool = False
    measures: Sequence[str] = tuple(analysis.MEASURES)

    @property
    def keys(self) -> list[str]:
        """Keys that conditions may use, including derived keys if the part has a path."""
        return [*self.sweep, *(() if self.is_of_records else DERIVED)]


def shapes(claims: Claims, documents: Mapping[str, Document], mistakes: Mistakes) -> dict[str, Shape]:
    """Return the shape of every part; record the mistakes of malformed parts."""
    return {name: _shape(name, part, documents.get(name), mistakes) for name, part in claims.parts.items()}


def _shape(name: str, part: StudyPart, document: Document | None, mistakes: Mistakes) -> Shape:
    if (part.scenario is None) == (part.records is None):
        has = "neither a scenario nor records" if part.records is None else "both a scenario and records"
        expected = 'scenario = "FILE", or records = { by = ["class"] }'
        mistakes.add("bad-part", ("parts", name), f"`parts.{name}` has {has}", expected=expected)
    if part.records is None:
        if document is None:
            return Shape({})
        return Shape(document.swept, [str(flow["name"]) for flow in document.flows])
    for key in part.quick:
        if key not in RecordsPart.model_fields:
            mistakes.add_unknown(("parts", name, "quick", key), "key of records", key, list(RecordsPart.model_fields))
    try:
        quick(part)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        if details["type"] != "extra_forbidden":  # recorded above
            mistakes.add("wrong-type", ("parts", name, "quick", *details["loc"]), f"in parts.{name}: {details['msg']}")
    if part.engines:
        problem = f"`parts.{name}` sets up engines, but records are synthesised from runs of the simulator only"
        mistakes.add("unused-key", ("parts", name, "engines"), problem, hint="remove `engines`")
    return Shape(dict.fromkeys(part.records.by), is_of_records=True, measures=tuple(advice_measures.MEASURES))


def quick(part: StudyPart) -> RecordsPart:
    """Return the records of a part with --quick."""
    assert part.records
    return RecordsPart.model_validate(part.records.model_dump() | part.quick)
