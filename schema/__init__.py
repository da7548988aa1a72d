"""What things are: the models that cross every boundary, and the hashes that name them.

Nothing here reads an engine, a network or a clock. Every other package imports this one; it imports none.
"""

__version__ = "0.1.0"

SCHEMA_VERSION = "1.0.0"
"""Version of the record, evidence and manifest formats (Standard §8)."""

SUITE_VERSION = "1.1.0"
"""Version of the tasks, fixtures and vocabulary; any change to one of them raises it (Standard §8)."""
