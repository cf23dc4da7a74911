"""Label differential privacy without a trusted server."""

__version__ = "0.1.0"
