"""A model on loopback for the real coders: it does what the prompt's script says, and fails as its address says."""

from __future__ import annotations

from tests.support.model_server.server import Asked, ModelServer
from tests.support.model_server.steps import script

__all__ = ["Asked", "ModelServer", "script"]
