"""Middleware under the official SDKs: the client stays the SDK's own, real types and all.

client = specclient.wrap(openai.OpenAI())
answer = client.chat.completions.create(model=…, messages=…, prediction=…)
specclient.report_of(answer).prediction.outcome
"""

from specclient.middleware.context import last_report, predicting, report_of
from specclient.middleware.wrapping import unwrap, wrap

__all__ = ["last_report", "predicting", "report_of", "unwrap", "wrap"]
