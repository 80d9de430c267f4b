"""Base classes of the generated models of the plan."""

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """An object of the plan: no unknown keys, no conversion between kinds, no infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
