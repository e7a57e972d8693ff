"""Any OpenAI-compatible address about which nothing is documented.

Nothing is sent that the caller did not write, but an answer is still read: the names below belong to
one server each, so finding one says what it means.
"""

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.endpoints import cerebras, dynamo, fireworks, groq, llama_cpp, sglang, vllm
from specclient_providers.figures import prediction_figures, usage_figures

ENDPOINT = Endpoint(
    name="openai_compatible",
    title="OpenAI-compatible address",
    base_url=None,
    no_prediction=Claim(
        "undocumented",
        note="Nothing is known about it: if you know which server answers there, name it as provider.",
    ),
    answer=AnswerRule(
        figures=(
            *usage_figures("usage", "x_groq.usage"),
            *prediction_figures(),
            *groq.TIMES,
            *cerebras.TIME_INFO,
            *fireworks.METRICS,
            *vllm.METRICS,
            *sglang.FIGURES,
            *dynamo.TIMING,
            *llama_cpp.TIMINGS,
        ),
        derived=(
            *groq.DERIVED,
            *fireworks.DERIVED,
            *sglang.DERIVED,
            *dynamo.DERIVED,
            *llama_cpp.DERIVED,
            *vllm.DERIVED,
        ),
    ),
)
