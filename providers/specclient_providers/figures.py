"""Figures that many endpoints report under the same names."""

from __future__ import annotations

from specclient_providers.endpoint import Figure

OPENAI_SDK = "openai-python 3.57.0, types/completion_usage.py"


def usage_figures(*prefixes: str, source: str | None = OPENAI_SDK) -> tuple[Figure, ...]:
    """Token counts of OpenAI's `usage` object, found under any of `prefixes` (default "usage")."""
    where = prefixes or ("usage",)

    def at(*names: str) -> tuple[str, ...]:
        return tuple(f"{prefix}.{name}" for prefix in where for name in names)

    return (
        Figure("prompt_tokens", at("prompt_tokens", "input_tokens"), "tokens", source),
        Figure("completion_tokens", at("completion_tokens", "output_tokens"), "tokens", source),
        Figure("total_tokens", at("total_tokens"), "tokens", source),
        Figure(
            "cached_tokens",
            at("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
            "tokens",
            source,
        ),
        Figure(
            "reasoning_tokens",
            at("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"),
            "tokens",
            source,
        ),
    )


def prediction_figures(*prefixes: str, source: str | None = OPENAI_SDK) -> tuple[Figure, ...]:
    """The accepted / rejected pair of OpenAI's usage details, in snake_case and camelCase."""
    where = prefixes or ("usage",)

    def at(word: str) -> tuple[str, ...]:
        snake, camel = f"{word}_prediction_tokens", f"{word}PredictionTokens"
        return tuple(
            f"{prefix}.{name}"
            for prefix in where
            for name in (
                f"completion_tokens_details.{snake}",
                f"completionTokensDetails.{camel}",
                f"completion_tokens_details.{camel}",
                f"output_tokens_details.{snake}",
                snake,
                camel,
            )
        )

    return (
        Figure("accepted", at("accepted"), "tokens", source),
        Figure("rejected", at("rejected"), "tokens", source),
    )


USAGE = usage_figures()
USAGE_WITH_PREDICTION = (*USAGE, *prediction_figures())
