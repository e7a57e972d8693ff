"""Was it worth it: a baseline for what a prediction saves, and a gate that acts on it."""

from specclient.economics.options import EconomicsOptions
from specclient.economics.workload import workload

__all__ = ["EconomicsOptions", "workload"]
