"""Models of claims.toml. docs/reference/studies.md documents them for authors of studies."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from thalweg.report.drawing.figure import FigureKind
from thalweg.scenario.document import TomlValue


class _Unchecked:
    """Makes pydantic accept any value."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()


UncheckedKeys = dict[str, Annotated[TomlValue, _Unchecked]]
"""Keys and values that depend on the scenario; they are checked later."""

ComparisonKind = Literal["value", "ratio", "difference", "gain", "harm"]

Take = Literal["growth", "spread", "slope", "spearman", "crossing"]
"""Reduction of the points along a key to one number."""

Over = Literal["every", "median", "mean", "min", "max", "share", "total"]
"""Reduction of the numbers of several points to one."""

PolicyCondition = Literal["buffer_bdp", "loss_ratio", "rtt_s"]

Trace = Literal["cwnd", "rate", "inflight_bdp", "pacing_rate", "rtt", "bandwidth", "gain", "queue"]


class ClaimsTable(BaseModel):
    """A table of claims.toml; undeclared keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Paper(ClaimsTable):
    """Source of the claims."""

    cite: str
    url: str | None = None


class Setup(ClaimsTable):
    """Set-up of an engine for a part."""

    set: UncheckedKeys = {}
    """Overrides of the scenario."""
    quick: UncheckedKeys = {}
    """Additional overrides with --quick."""
    scaled: str | None = None
    """Differences from the paper's set-up, and the reason."""
    why_not: str | None = None


class RecordsPart(ClaimsTable):
    """Synthetic records, drawn from runs of the simulator and judged by `thalweg advise`."""

    by: list[str] = Field(min_length=1)
    rows: int = Field(1_000_000, ge=1)
    days: int = Field(7, ge=1)
    design: Literal["ab", "before-after", "switchback"] = "ab"
    repetitions: int = Field(10, ge=1)
    """Number of repetitions, each with a different seed."""


class StudyPart(ClaimsTable):
    """A scenario that is run, or synthetic records that are judged."""

    scenario: str | None = None
    """The file, relative to the study's folder."""
    records: RecordsPart | None = None
    about: str = ""
    quick: UncheckedKeys = {}
    """Overrides of the scenario, or of `records`, with --quick."""
    engines: dict[str, Setup] = {}


class StudyMeasure(ClaimsTable):
    """A measure defined by the study, computed from others at the same point and repetition."""

    about: str
    expression: str
    """Arithmetic over measures of flows; the prefixes `least_` and `most_` select the minimum and maximum."""
    among: list[str] = Field(min_length=1)
    """Keys of the sweep: `least_` and `most_` are taken over points that differ only in these keys."""


class Quantity(ClaimsTable):
    """One measure of one flow (or of the path) at some points of a part."""

    measure: str
    flow: str | None = None
    where: UncheckedKeys = {}
    window: tuple[str, str] | None = None


class Against(ClaimsTable):
    """Reference of a quantity; unspecified settings are those of the quantity."""

    measure: str | None = None
    flow: str | None = None
    where: UncheckedKeys = {}
    window: tuple[str, str] | None = None
    part: str | None = None


class Judge(ClaimsTable):
    """The number computed from the quantities, and the required value."""

    kind: ComparisonKind = Field("value", alias="as")
    along: str | None = None
    take: Take | None = None
    level: float | None = None
    over: Over = "every"
    sample: bool = False
    """Whether the points are a sample of a population; the interval then includes sampling variation."""
    at_least: float | None = None
    at_most: float | None = None
    at_least_share: float | None = Field(None, ge=0, le=1)
    tolerance: float | None = Field(None, gt=0)


class Claim(ClaimsTable):
    """A claim of a publication, or of the study itself, that can be checked."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    text: str
    source: str = ""
    paper: str | float | None = None
    trust: str | None = None
    reason: str | None = None
    part: str
    value: Quantity
    against: Against | None = None
    judge: Judge


class Curve(ClaimsTable):
    """A theoretical curve that is drawn over a figure."""

    name: str
    y: str
    """An arithmetic expression over derived keys."""


class PaperFigure(ClaimsTable):
    """A figure of the paper, reproduced from thalweg's runs."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    paper: str = ""
    title: str
    about: str = ""
    part: str
    kind: FigureKind
    value: Quantity | None = None
    against: Against | None = None
    as_: ComparisonKind = Field("value", alias="as")
    x: str | None = None
    y: str | None = None
    series: list[str] = []
    panels: list[str] = []
    log_x: bool = False
    log_y: bool = False
    curves: list[Curve] = []
    quantity: Trace | None = None
    where: UncheckedKeys = {}
    flows: list[str] = []


class Learn(ClaimsTable):
    """A decision tree to learn."""

    name: str
    features: list[str] = Field(min_length=1)
    depth: int = Field(3, ge=1, le=8)


class Tree(ClaimsTable):
    """Decision trees learned from the points of a part; the label is the side of a level on which a quantity is."""

    part: str
    about: str = ""
    value: Quantity
    against: Against | None = None
    as_: ComparisonKind = Field("value", alias="as")
    level: float = 0.0
    above: str
    """Label of points above the level."""
    below: str
    """Label of the other points."""
    folds: int = Field(5, ge=2)
    source: str = ""
    paper: str = ""
    """The paper's tree, line by line."""
    learn: list[Learn] = Field(min_length=1)


class PolicyRange(ClaimsTable):
    """A condition of a policy."""

    at_least: float | None = None
    at_most: float | None = None


class PolicyRule(ClaimsTable):
    """A rule of a study's policy, written to the policy file (docs/reference/policy.md) if all of its `claims` hold."""

    name: str
    algorithm: str
    when: dict[PolicyCondition, PolicyRange] = Field(min_length=1)
    reason: str
    source: str
    cost: str = ""
    """Its effect on others, or its cost for the flow itself."""
    claims: list[str] = Field(min_length=1)


class Policy(ClaimsTable):
    """The policy for servers that follows from a study."""

    about: str = ""
    default: str
    rules: list[PolicyRule]


class Claims(ClaimsTable):
    """The contents of claims.toml."""

    title: str
    about: str
    paper: Paper
    measures: dict[str, StudyMeasure] = {}
    parts: dict[str, StudyPart] = Field(min_length=1)
    claims: list[Claim] = []
    figures: list[PaperFigure] = []
    tree: Tree | None = None
    policy: Policy | None = None
