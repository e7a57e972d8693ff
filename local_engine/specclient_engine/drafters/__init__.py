"""Drafts that a model makes: a separate small model, or a head on the target's own hidden states."""
