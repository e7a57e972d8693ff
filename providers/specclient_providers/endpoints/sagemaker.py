"""Amazon SageMaker: EAGLE speculation from an optimisation job; requests are signed, not keyed."""

from datetime import date

from specclient_providers.endpoint import Claim, Endpoint, SpeculationRule

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="sagemaker",
    title="Amazon SageMaker",
    base_url=None,
    speaks_openai=False,
    telemetry_name="aws.sagemaker",
    no_prediction=Claim("undocumented", "botocore 1.44.8, data/sagemaker-runtime", CHECKED),
    speculation=SpeculationRule(
        Claim(
            "documented",
            "botocore 1.44.8, data/sagemaker",
            CHECKED,
            note="ModelSpeculativeDecodingConfig of an optimisation job.",
        ),
        methods=("eagle",),
    ),
    restrictions=(
        "Requests are signed and have a wire format of the container's: this is not called. Name the server "
        "in the container (vllm, tgi, …) as the provider, with a base_url that reaches it.",
    ),
)
