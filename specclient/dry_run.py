"""`specclient.plan`: what would be sent, and why, without sending it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from typing import Any

from specclient.config import Config, Target, load_config, resolve_target
from specclient.core.asked import fault_in_messages
from specclient.core.plan import Plan, Policy, build_plan
from specclient.errors import ConfigError
from specclient.prediction import Prediction, PredictionLike
from specclient_providers import OverrideError, UnknownProvider, resolve

_APIS = ("chat", "completions", "responses")
"""The kinds of request that are planned."""


def plan(
    request: Mapping[str, Any],
    *,
    target: str | Target | None = None,
    provider: str | None = None,
    model: str | None = None,
    api: str = "chat",
    api_version: str | None = None,
    base_url: str | None = None,
    prediction: PredictionLike | None = None,
    on: date | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    **fields: Any,
) -> Plan:
    """The plan of one request: `.body`, `.outcome`, `.reasons`, `.notes`. No network, no key.

    `request` is OpenAI's shape and may hold `prediction`. The target is found as for `Client`; `on` asks
    about another day than today. Raises ConfigError, also for messages that are none, or
    PredictionRefusedError under `on_unsupported="error"`.
    """
    if api not in _APIS:
        raise ConfigError(f"api is one of {', '.join(_APIS)}, not {api!r}.")
    if api == "chat" and (said := fault_in_messages(request.get("messages", ()))) is not None:
        raise ConfigError(said)
    loaded = config if isinstance(config, Config) else load_config(config)
    asked = model or request.get("model")
    found = resolve_target(
        target, provider, asked, config=loaded, api_version=api_version, base_url=base_url, **fields
    )
    try:
        facts = resolve(
            found.provider,
            model=found.model,
            api=api,
            api_version=found.api_version,
            base_url=found.base_url,
            on=on,
            overrides=found.overrides,
            origin=found.origins.get("overrides"),
        )
    except (UnknownProvider, OverrideError) as error:
        raise ConfigError(str(error)) from None
    whole = {**request, "model": found.model} if found.model else dict(request)
    return build_plan(
        whole,
        facts=facts,
        prediction=Prediction.of(prediction, whole),
        policy=Policy(found.on_unsupported, found.put_in_prompt, found.use_corpus),
        api=api,
    )
