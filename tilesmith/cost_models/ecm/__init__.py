"""The execution-cache-memory model: `Ecm`."""

from tilesmith.cost_models.ecm.model import Ecm

__all__ = ["Ecm"]
