"""What the official SDK has and these clients have not, with what to use instead."""

from __future__ import annotations

from typing import Any

RESOURCES = frozenset(
    [
        "admin",
        "audio",
        "batches",
        "beta",
        "chatkit",
        "containers",
        "conversations",
        "embeddings",
        "evals",
        "files",
        "fine_tuning",
        "graders",
        "images",
        "moderations",
        "realtime",
        "responses",
        "skills",
        "uploads",
        "vector_stores",
        "videos",
        "webhooks",
    ]
)
_BY_HAND = frozenset(["get", "post", "put", "patch", "delete", "request", "get_api_list"])
_ARGUMENTS = {
    "http_client": "use proxy=, verify=, client_cert=, headers= and max_connections=, or keep the official "
    "SDK with its own client and pass it to specclient.wrap()",
    "azure_endpoint": "use provider='azure' with base_url= and api_version=",
    "azure_deployment": "use provider='azure' with the deployment's name as model=",
    "azure_ad_token": "use api_key=, with headers= where the service wants another one",
    "azure_ad_token_provider": "use api_key_command=, which is run for every new client",
    "webhook_secret": "webhooks are read with the official SDK",
    "websocket_base_url": "realtime sessions are held with the official SDK",
    "_strict_response_validation": "answers are read leniently, and odd values are kept as they came",
}


def check_arguments(fields: dict[str, Any]) -> None:
    """Raises TypeError for an argument of the official SDK's that is not taken here."""
    for name in _ARGUMENTS.keys() & fields.keys():
        raise TypeError(f"{name}= is not taken: {_ARGUMENTS[name]}.")


def missing(client: object, name: str) -> AttributeError:
    """The error for an attribute that a client does not have."""
    kind = type(client).__name__
    if name in RESOURCES:
        return AttributeError(
            f"{kind} has no {name!r}: it speaks chat completions, completions and models. "
            f"Use the official SDK for the rest; specclient.wrap(client) adds reports to it."
        )
    if name in _BY_HAND:
        return AttributeError(
            f"{kind} has no {name!r}: extra_body=, extra_query= and extra_headers= of a call reach what has "
            f"no parameter; the official SDK has the rest."
        )
    if name in ("with_raw_response", "with_streaming_response"):
        return AttributeError(f"{kind} has no {name!r}: write client.chat.completions.{name}.create(…).")
    return AttributeError(f"{kind!r} object has no attribute {name!r}")
