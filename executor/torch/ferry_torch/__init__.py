"""PyTorch and ferry: record a training step, follow a plan."""
from .errors import Refused
from .follow import follow
from .record import record

__all__ = ["Refused", "follow", "record"]
