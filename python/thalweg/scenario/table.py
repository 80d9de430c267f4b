"""Base classes of the generated models of the scenario."""

from pydantic import BaseModel, ConfigDict

from thalweg.scenario.document import TomlValue


class Table(BaseModel):
    """A table of the scenario: no unknown keys, no conversion between kinds, no infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def table_or_value(value: TomlValue | Table) -> str:
    """Describe which branch of "a value or a table" is meant, so that only its mistakes are reported."""
    return "table" if isinstance(value, dict | Table) else "value"
