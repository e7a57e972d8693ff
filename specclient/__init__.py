"""One `prediction` argument for every LLM endpoint, and the truth about what it did."""

from specclient._version import __version__

__all__ = ["__version__"]
