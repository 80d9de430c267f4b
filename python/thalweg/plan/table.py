"""Base class of the generated models of the plan."""

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """An object of the plan: rejects unknown keys, type conversions and infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
