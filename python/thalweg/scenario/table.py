"""What the generated models of the scenario share."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A table of the scenario: no unknown keys, no conversion between kinds, no infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def table_or_value(given: Any) -> str:
    """Tell which branch of "a value or a table" is meant, so that only its mistakes are reported."""
    return "table" if isinstance(given, dict | Table) else "value"
