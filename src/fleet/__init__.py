"""Fleet: one control plane for fleets of coding agents."""

__version__ = "0.1.0"
