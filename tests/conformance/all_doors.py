"""Every way into specclient behind one face: our clients, the SDK's wrapped ones, the gateway."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from specclient.report import Report
from tests.doors import AsyncDoor, SyncDoor
from tests.providers.fixtures import KNOWN, Case
from tests.server import ScriptedServer

PREDICTION = {"type": "content", "content": KNOWN}
FOREVER = {"openai": "2099-12-31", "azure": "2099-12-31"}
"""Endpoints whose predictions end: these tests are about their format, on any day."""


@dataclass
class Seen:
    """What a caller saw of one answer."""

    objects: list[dict[str, Any]]
    report: Report
    keys: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.keys = {key for seen in self.objects for key in seen if seen[key] is not None}

    @property
    def text(self) -> str:
        choices = [choice for seen in self.objects for choice in seen.get("choices", ())]
        return "".join(
            (choice.get("delta") or choice.get("message") or {}).get("content") or "" for choice in choices
        )


def overrides(case: Case) -> dict[str, Any]:
    until = {"prediction": {"until": FOREVER[case.provider]}} if case.provider in FOREVER else {}
    return {**case.overrides, **until}


def arguments(case: Case) -> dict[str, Any]:
    """The case as arguments of `create()`; what OpenAI's signature does not have goes into extra_body."""
    request = {key: value for key, value in case.request_body().items() if key != "stream"}
    beyond = {key: request.pop(key) for key in ("perf_metrics_in_response",) if key in request}
    return {**request, "extra_body": beyond} if beyond else request


class Door:
    """`ask` makes the case's call and raises whatever the door raises."""

    def __init__(self, server: ScriptedServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def ask(self, case: Case) -> Seen:
        raise NotImplementedError

    def close(self) -> None:
        """Close what was opened."""

    def base_url(self, case: Case) -> str:
        return self.server.origin if case.provider == "azure" else self.server.url


class OurClient(Door):
    kind: Callable[[ScriptedServer], SyncDoor] = SyncDoor

    def __init__(self, server: ScriptedServer, folder: Path) -> None:
        super().__init__(server, folder)
        self.inner = type(self).kind(server)

    def ask(self, case: Case) -> Seen:
        self.inner.make(
            provider=case.provider,
            api_version=case.api_version,
            base_url=self.base_url(case),
            model=case.model,
            overrides=overrides(case),
            max_retries=0,
        )
        request = arguments(case)
        if case.streamed:
            chunks = self.inner.read(**request, prediction=KNOWN)
            return Seen([chunk.model_dump(exclude={"specclient"}) for chunk in chunks], chunks[-1].specclient)
        answer = self.inner.create(**request, prediction=KNOWN)
        return Seen([answer.model_dump(exclude={"specclient"})], answer.specclient)

    def close(self) -> None:
        self.inner.close()


class OurAsyncClient(OurClient):
    kind = AsyncDoor


class WrappedSdk(Door):
    """The openai SDK with our middleware under it."""

    is_async = False

    def ask(self, case: Case) -> Seen:
        from specclient.middleware import report_of, wrap
        from tests.wrap.sdks import Kind, Sdk

        kind = Kind("openai", "openai", ("OpenAI", "AsyncOpenAI"), case.provider, case.model, ends_in_v1=True)
        self.sdk = Sdk(kind, self.server.origin, is_async=self.is_async)
        wrap(self.sdk.client, provider=case.provider, overrides=overrides(case))
        request = {**arguments(case), "prediction": PREDICTION}
        answers = self.sdk.stream(**request) if case.streamed else [self.sdk.create(**request)]
        report = report_of(answers[-1])
        assert report is not None
        return Seen([_without_report(answer.model_dump()) for answer in answers], report)

    def close(self) -> None:
        if hasattr(self, "sdk"):
            self.sdk.close()


class WrappedAsyncSdk(WrappedSdk):
    is_async = True


class Gateway(Door):
    """Our server, asked by a bare HTTP client."""

    def ask(self, case: Case) -> Seen:
        pytest.importorskip("starlette")
        from specclient.config import load_config
        from specclient.errors import status_error
        from tests.gateway.conftest import Running

        path = self.folder / "specclient.json"
        target = {
            "provider": case.provider,
            "model": case.model,
            "base_url": self.base_url(case),
            "api_key": "sk-upstream",
            "max_retries": 0,
            "overrides": overrides(case),
            **({"api_version": case.api_version} if case.api_version else {}),
        }
        path = path.with_suffix(".toml")
        path.write_text(_toml({"targets": {"it": target}}), encoding="utf-8")
        self.running = Running(load_config(path, env={}))
        body = {**case.request_body(), "model": "it", "prediction": PREDICTION}
        response = self.running.client.post("/chat/completions", json=body)
        if response.status_code >= 400:
            raise status_error(response.status_code)(
                "refused", status_code=response.status_code, body=response.json()
            )
        if not case.streamed:
            objects = [response.json()]
        else:
            lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
            objects = [json.loads(line) for line in lines if line != "[DONE]"]
        report = Report.model_validate(next(seen["specclient"] for seen in objects if "specclient" in seen))
        return Seen([_without_report(seen) for seen in objects], report)

    def close(self) -> None:
        if hasattr(self, "running"):
            self.running.stop()


def _without_report(seen: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in seen.items() if key != "specclient"}


def _toml(values: dict[str, Any], prefix: str = "") -> str:
    """Tables of tables of scalars and lists, which JSON writes as TOML does."""
    plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
    lines = [f"[{prefix}]"] if prefix else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in values.items():
        if isinstance(value, dict):
            lines.append(_toml(value, f"{prefix}.{key}" if prefix else key))
    return "\n".join(lines)


DOORS: dict[str, type[Door]] = {
    "client": OurClient,
    "async-client": OurAsyncClient,
    "wrapped-openai": WrappedSdk,
    "wrapped-async-openai": WrappedAsyncSdk,
    "gateway": Gateway,
}
