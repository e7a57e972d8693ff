"""The embedded engine: the known text is verified in bulk by the model itself, in this process."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Claim,
    Endpoint,
    PredictionRule,
    RequestRule,
    SpeculationRule,
)
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
SOURCE = "specclient, local_engine/README.md"

ENDPOINT = Endpoint(
    name="local",
    title="The embedded engine",
    base_url=None,
    telemetry_name="specclient",
    self_hosted=True,
    prediction=(
        PredictionRule(
            Claim("documented", SOURCE, CHECKED), apis=("chat", "completions"), shapes=("object",)
        ),
    ),
    no_prediction=Claim("undocumented", SOURCE, CHECKED),
    request=RequestRule(unknown_fields=Claim("rejected", SOURCE, CHECKED)),
    answer=AnswerRule(
        figures=USAGE_WITH_PREDICTION,
        subset=False,
        counters=Claim("documented", SOURCE, CHECKED),
        timings=Claim("documented", SOURCE, CHECKED, note="The engine's own stopwatch."),
    ),
    speculation=SpeculationRule(
        Claim("documented", SOURCE, CHECKED), methods=("prediction", "prompt_lookup")
    ),
)
