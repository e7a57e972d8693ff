"""MLX-LM server: ignores `prediction`; a request may name a draft model."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, RequestRule, SpeculationRule
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
SERVER = "mlx-lm 0.32.2, server.py"

ENDPOINT = Endpoint(
    name="mlx_lm",
    title="MLX-LM server",
    base_url="http://localhost:8080/v1",
    self_hosted=True,
    no_prediction=Claim("ignored", SERVER, CHECKED),
    request=RequestRule(unknown_fields=Claim("ignored", SERVER, CHECKED)),
    answer=AnswerRule(figures=USAGE),
    speculation=SpeculationRule(
        Claim("documented", SERVER, CHECKED),
        methods=("draft_model",),
        per_request="draft_model and num_draft_tokens; a new draft model reloads the pair",
    ),
    restrictions=("A draft model switches batching off.", "Reports neither times nor acceptance."),
)
