"""What a target's user wants to know and to risk."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

GateMode = Literal["always", "auto", "never"]


class EconomicsOptions(BaseModel):
    """The table `economics` of a target.

    `gate`: "always" sends every prediction that the endpoint can take, "never" none, "auto" those that
    the evidence says are worth it. `holdout` is a share of calls that run without their prediction so
    that there is something to compare with; 0 holds nothing out. `max_money_per_second` is what a saved
    second may cost, in the currency of the prices; None puts no limit. `min_chars` withholds shorter
    predictions; None leaves it to what is known of the endpoint. `explore` is the share of time that
    "auto" may lose by looking whether its opinion still holds. Evidence fades: the last `memory` calls of
    each kind count, and half of it is gone after `half_life_days`. `state` is a file that keeps the
    evidence for all processes; None keeps it in this one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    gate: GateMode = "always"
    holdout: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    max_money_per_second: Annotated[float, Field(ge=0)] | None = None
    min_chars: Annotated[int, Field(ge=0)] | None = None
    explore: Annotated[float, Field(ge=0, le=0.1)] = 0.005
    memory: Annotated[int, Field(ge=20)] = 200
    half_life_days: Annotated[float, Field(gt=0)] = 7.0
    state: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("state")
    @classmethod
    def _place(cls, value: str | None) -> str | None:
        from specclient.config.places import expanded  # whose package is made of this module too

        if value is not None:
            expanded(value)
        return value

    @property
    def watches(self) -> bool:
        """Whether calls are to be remembered: without a gate or a holdout nothing is compared."""
        return self.gate == "auto" or self.holdout > 0
