"""Runs the model: the fused path where the architecture allows it, else any model of transformers."""
