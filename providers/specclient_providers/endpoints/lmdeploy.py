"""LMDeploy: ignores `prediction`; its accepted and rejected counters exist and are never filled."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, RequestRule, SpeculationRule
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
WHEEL = "lmdeploy 0.18.0, serve/openai/protocol.py"

ENDPOINT = Endpoint(
    name="lmdeploy",
    title="LMDeploy",
    base_url="http://localhost:23333/v1",
    self_hosted=True,
    no_prediction=Claim("ignored", WHEEL, CHECKED),
    request=RequestRule(unknown_fields=Claim("ignored", WHEEL, CHECKED)),
    answer=AnswerRule(
        figures=USAGE_WITH_PREDICTION,
        counters=Claim("undocumented", WHEEL, CHECKED, note="Reserved and null: neither zero nor support."),
    ),
    speculation=SpeculationRule(
        Claim("documented", WHEEL, CHECKED),
        methods=("eagle", "eagle3", "deepseek_mtp", "hy3_mtp", "qwen3_5_mtp", "dflash"),
    ),
)
