"""The types of run.json; the struct is `RunFile` in crates/store/src/run_file.rs."""

from typing import NotRequired, TypedDict

from thalweg.results.plan_document import PlanDocument


class ExperimentId(TypedDict):
    """An experiment of a run, and the base name of its files."""

    id: str
    experiment: int
    repetition: int


class Machine(TypedDict, total=False):
    """The machine that created a run directory."""

    os: str
    kernel: str
    cpu: str
    cores: int


class RunFile(TypedDict):
    """The content of run.json."""

    format: int
    engine: str
    engine_version: NotRequired[str]
    result_version: NotRequired[str]
    plan: PlanDocument
    experiments: list[ExperimentId]
    host: NotRequired[Machine]
    created: NotRequired[str]
    command: NotRequired[list[str] | None]
