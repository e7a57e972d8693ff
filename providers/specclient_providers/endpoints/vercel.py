"""Vercel AI Gateway: does not mention predictions itself."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, Figure
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
_AI_SDK = "https://github.com/vercel/ai/tree/main/packages/openai/src/chat"

ENDPOINT = Endpoint(
    name="vercel",
    title="Vercel AI Gateway",
    base_url="https://ai-gateway.vercel.sh/v1",
    key_env=("AI_GATEWAY_API_KEY",),
    no_prediction=Claim(
        "undocumented",
        "https://vercel.com/docs/ai-gateway/openai-compat",
        CHECKED,
        note="The AI SDK's openai.prediction option is passed through unchecked.",
    ),
    answer=AnswerRule(
        figures=(
            *USAGE_WITH_PREDICTION,
            Figure("accepted", ("providerMetadata.openai.acceptedPredictionTokens",), "tokens", _AI_SDK),
            Figure("rejected", ("providerMetadata.openai.rejectedPredictionTokens",), "tokens", _AI_SDK),
        ),
    ),
)
