"""Hugging Face router, and TGI behind it: times in headers of plain answers."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.endpoints import tgi
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="huggingface",
    title="Hugging Face",
    base_url="https://router.huggingface.co/v1",
    key_env=("HF_TOKEN",),
    no_prediction=Claim(
        "undocumented", "huggingface_hub 2.4.0, inference/_generated/types/chat_completion.py", CHECKED
    ),
    answer=AnswerRule(
        figures=(*USAGE, *tgi.HEADERS),
        derived=tgi.DERIVED,
        timings=Claim(
            "documented",
            tgi.SERVER,
            CHECKED,
            note="In headers of plain answers of endpoints that TGI serves.",
        ),
    ),
)
