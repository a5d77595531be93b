"""The execution-cache-memory model: `Ecm`, and whether steps of a loop wait (`waits`)."""

from tilesmith.cost_models.ecm.model import Ecm, waits

__all__ = ["Ecm", "waits"]
