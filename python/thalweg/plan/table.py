"""Base class of the generated models of the plan."""

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """An immutable object of the plan, validated strictly."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
