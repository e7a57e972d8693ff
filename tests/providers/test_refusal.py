"""A live refusal of the prediction in every known wording, and never anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specclient_providers import refuses_prediction


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


def extra(*loc: Any) -> dict[str, Any]:
    return {"type": "extra_forbidden", "loc": list(loc), "msg": "Extra inputs are not permitted", "input": {}}


WORDS = [
    "The following parameters are not supported: prediction",
    "Unrecognized key(s) in object: 'prediction'",
    "body.prediction: unknown field",
    "schema validation failed: prediction: additional property not allowed",
    "Predicted outputs are not supported with this model",
    "prediction parameter not supported",
    "prediction not supported",
    "Parameter 'prediction' not allowed",
    "property prediction should not exist",
    "Error: Prediction is not currently supported for this deployment",
    "Validation: Unsupported parameter(s): `prediction`",
    "Value error, prediction is not supported",
    "Invalid request: prediction field not recognized",
    "ValidationError: 1 validation error for Request\nprediction\n  Extra inputs are not permitted",
    "litellm.UnsupportedParamsError: groq does not support parameters: ['prediction'], for model=x",
    "groq does not support parameters: {'prediction': {'type': 'content'}}",
    "json: cannot unmarshal object into Go struct field ChatRequest.prediction of type string",
    "Unsupported value: 'prediction' does not support this model",
    "Request contains unsupported field: prediction",
    "Input should not contain 'prediction'",
    "'prediction' : property 'prediction' is unsupported",
    "Extra inputs are not permitted, field: 'prediction', value: {'type': 'content'}",
    "The parameter `prediction` specified in the request are not valid: unsupported",
    'Unknown name "prediction": Cannot find field.',
]
REFUSALS: list[tuple[str, int, Any]] = [
    *((words, 400, error(words)) for words in WORDS),
    ("azure, older api-version", 400, error("Unrecognized request argument supplied: prediction")),
    (
        "openai",
        400,
        error(
            "Unsupported parameter: 'prediction' is not supported with this model.",
            type="invalid_request_error",
            param="prediction",
            code="unsupported_parameter",
        ),
    ),
    ("openai, param alone", 400, error("Not here.", param="prediction", code="unsupported_parameter")),
    ("openai, nested param", 400, error("Bad value.", param="prediction.content")),
    ("openai, code null", 400, error("Unknown parameter: 'prediction'.", param="prediction", code=None)),
    ("groq", 400, error("property 'prediction' is unsupported", type="invalid_request_error")),
    ("mistral", 422, {"object": "error", "message": {"detail": [extra("body", "prediction")]}}),
    ("mistral, older", 422, {"detail": [extra("body", "prediction")]}),
    ("mistral, JSON in a string", 422, {"message": json.dumps({"detail": [extra("body", "prediction")]})}),
    (
        "mistral, JSON in an error's message",
        422,
        error(json.dumps({"detail": [extra("body", "prediction")]})),
    ),
    ("fastapi, union arm", 422, {"detail": [extra("body", "ChatRequest", "prediction")]}),
    ("fastapi, inner field", 422, {"detail": [extra("body", "prediction", "content")]}),
    (
        "two complaints about it",
        422,
        {"detail": [extra("body", "prediction"), extra("body", "prediction", "type")]},
    ),
    ("pydantic list alone", 422, [extra("prediction")]),
    ("pydantic text", 400, error("prediction: Extra inputs are not permitted")),
    ("detail is text", 400, {"detail": "Unknown field: prediction"}),
    ("repr of a list", 400, {"message": str([{"type": "extra_forbidden", "loc": ("body", "prediction")}])}),
    ("pydantic report", 400, "1 validation error for Request\nprediction\n  Extra inputs are not permitted"),
    ("message at the top", 400, {"message": "Unexpected parameter 'prediction'"}),
    ("plain text body", 400, "Unsupported parameter(s): `prediction`"),
    ("bytes", 400, b'{"error": {"message": "property \'prediction\' is unsupported"}}'),
    ("JSON text", 400, json.dumps(error("Unrecognized request argument supplied: prediction"))),
    ("JSON schema", 400, error("Additional properties are not allowed ('prediction' was unexpected)")),
    (
        "google",
        400,
        error('Invalid JSON payload received. Unknown name "prediction": Cannot find field.', code=400),
    ),
    (
        "google, with details",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": 'Invalid JSON payload received. Unknown name "prediction": Cannot find.',
                }
            }
        ],
    ),
    ("go", 400, error('json: unknown field "prediction"')),
    (
        "serde",
        422,
        "Failed to deserialize the JSON body into the target type: unknown field `prediction`, expected x",
    ),
    ("dynamo", 400, {"message": "Unsupported parameter(s): prediction", "type": "Bad Request", "code": 400}),
    ("model says no", 400, error("This model does not support the prediction parameter.")),
    ("model says no, named", 400, error("The model `gpt-5` does not support predicted outputs.")),
    (
        "cerebras style",
        400,
        {"message": "Parameter 'prediction' is not supported for this model", "param": None},
    ),
    ("fireworks, native field", 400, error("Extra inputs are not permitted", param="speculation")),
    ("python keyword", 400, error("create() got an unexpected keyword argument 'prediction'")),
    ("prefixed", 400, error("400 Bad Request: property 'prediction' is unsupported")),
    ("an errors list", 400, {"errors": [{"message": "Unknown parameter: prediction"}]}),
]

OTHERS: list[tuple[str, int, Any]] = [
    ("another field", 400, error("Unrecognized request argument supplied: seed")),
    ("another param", 400, error("Unsupported value: 'temperature'.", param="temperature")),
    ("param wins over words", 400, error("property 'prediction' is unsupported", param="tools")),
    ("two fields in words", 400, error("Unrecognized request arguments supplied: prediction, seed")),
    (
        "two fields of a schema",
        400,
        error("Additional properties are not allowed ('prediction', 'a' were unexpected)"),
    ),
    ("two fields", 422, {"detail": [extra("body", "prediction"), extra("body", "seed")]}),
    ("two, in a repr", 400, {"message": str([extra("body", "prediction"), extra("body", "seed")])}),
    (
        "pydantic report of two",
        400,
        "2 validation errors for Request\nprediction\n  Extra inputs are not permitted",
    ),
    ("broken repr", 400, {"message": "[{'loc': ('body', 'prediction'"}),
    ("code in a repr", 400, {"message": "[__import__('os').getcwd(), 'prediction']"}),
    ("inside a message", 422, {"detail": [extra("body", "messages", 0, "prediction")]}),
    ("inside a tool", 422, {"detail": [extra("body", "tools", 0, "function", "prediction")]}),
    (
        "a quoted prompt that begins like one",
        400,
        error("Invalid value: 'prediction not supported, he said'"),
    ),
    ("a long prediction", 400, error("The prediction is too long: 5000 tokens, at most 2048")),
    ("a bad part of it", 400, error("Invalid value for prediction.content: must be a string")),
    ("a model of that name", 404, error("The model 'prediction' does not exist")),
    ("two that a provider lacks", 400, error("groq does not support parameters: ['prediction', 'n']")),
    ("what a prompt says", 400, error("Flagged: you should not include prediction of the future")),
    ("a quoted prompt", 400, error("Invalid message: 'property prediction is unsupported' is too long")),
    (
        "a quoted input",
        422,
        {"detail": [{**extra("body", "seed"), "input": "Unknown parameter: prediction"}]},
    ),
    (
        "content policy",
        400,
        error("The prompt 'prediction' was filtered by our policy", code="content_filter"),
    ),
    (
        "context length",
        400,
        error("This model's context is 8192 tokens; prediction included", param="messages"),
    ),
    ("too long", 400, error("max_tokens is too large", param="max_tokens")),
    ("a longer name", 400, error("Unrecognized request argument supplied: prediction_window")),
    ("a longer name, dotted", 400, error("Unknown parameter: my.prediction_x")),
    ("model named so", 404, error("The model `prediction` does not exist")),
    ("model named so, as 400", 400, error("model 'prediction' is not available")),
    ("wrong status", 500, error("property 'prediction' is unsupported")),
    ("unauthorized", 401, error("Unrecognized request argument supplied: prediction")),
    ("rate limit", 429, error("prediction is not available", param="prediction")),
    ("empty", 400, {}),
    ("nothing", 400, None),
    ("empty text", 400, ""),
    ("html", 400, "<html>Bad Request: prediction</html>"),
    ("broken JSON", 400, '{"error": '),
    ("deep", 400, json.loads('{"error":' * 50 + "1" + "}" * 50)),
    ("a number", 400, 17),
]


@pytest.mark.parametrize(("status", "body"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_it_is_a_refusal(status: int, body: Any) -> None:
    assert refuses_prediction(status, body)


@pytest.mark.parametrize(("status", "body"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_it_is_the_callers(status: int, body: Any) -> None:
    assert not refuses_prediction(status, body)
