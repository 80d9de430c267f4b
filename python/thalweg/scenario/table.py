"""Base class of the generated models of the scenario."""

from pydantic import BaseModel, ConfigDict

from thalweg.scenario.document import TomlValue


class Table(BaseModel):
    """An immutable table of the scenario, validated strictly."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def table_or_value(value: TomlValue | Table) -> str:
    """Return which branch of "a value or a table" was intended, so that only its mistakes are reported."""
    return "table" if isinstance(value, dict | Table) else "value"
