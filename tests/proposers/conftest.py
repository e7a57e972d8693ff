"""No deadlines for generated examples: how long one takes is the machine's affair, not the code's."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
