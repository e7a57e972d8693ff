"""Amazon Bedrock: no prediction; latencies in the native API only."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Derive, Endpoint, Figure
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
BOTOCORE = "botocore 1.44.8, data/bedrock-runtime"
_STREAM = "amazon-bedrock-invocationMetrics"
_NATIVE = "Streams, native API."

ENDPOINT = Endpoint(
    name="bedrock",
    title="Amazon Bedrock",
    base_url=None,
    hosts=("bedrock-runtime.*.amazonaws.com",),
    key_env=("AWS_BEARER_TOKEN_BEDROCK",),
    telemetry_name="aws.bedrock",
    api_prefix="/openai/v1",
    no_prediction=Claim("undocumented", BOTOCORE, CHECKED),
    answer=AnswerRule(
        figures=(
            *USAGE,
            Figure("total", ("metrics.latencyMs", "metadata.metrics.latencyMs"), "ms", BOTOCORE),
            Figure("total", (f"{_STREAM}.invocationLatency",), "ms", BOTOCORE, _NATIVE),
            Figure("prompt_tokens", (f"{_STREAM}.inputTokenCount",), "tokens", BOTOCORE, _NATIVE),
            Figure(
                "completion_tokens",
                (f"{_STREAM}.outputTokenCount",),
                "tokens",
                BOTOCORE,
                _NATIVE,
            ),
            Figure("ttft", (f"{_STREAM}.firstByteLatency",), "ms", BOTOCORE, _NATIVE),
        ),
        derived=(Derive("decode", ("total",), ("ttft",)),),
        ttft_includes_queue=True,
        timings=Claim("documented", BOTOCORE, CHECKED, note="Native API; no queue."),
    ),
    restrictions=(
        "performanceConfig.latency and serviceTier are the per-request speed controls of the native API.",
        "The header X-Amzn-Bedrock-PerformanceConfig-Latency tells which latency was really given.",
        "The base URL names the region: https://bedrock-runtime.REGION.amazonaws.com/openai/v1.",
    ),
)
