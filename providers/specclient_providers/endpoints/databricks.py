"""Databricks foundation model APIs: three token counts, nothing else."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

DOCS = "https://docs.databricks.com/aws/en/machine-learning/foundation-model-apis/api-reference"

ENDPOINT = Endpoint(
    name="databricks",
    title="Databricks",
    base_url=None,
    hosts=("*.cloud.databricks.com", "*.azuredatabricks.net", "*.gcp.databricks.com"),
    key_env=("DATABRICKS_TOKEN",),
    api_prefix="/serving-endpoints",
    no_prediction=Claim(
        "undocumented",
        DOCS,
        CHECKED,
    ),
    answer=AnswerRule(figures=USAGE),
    restrictions=("The base URL is https://WORKSPACE/serving-endpoints.",),
)
