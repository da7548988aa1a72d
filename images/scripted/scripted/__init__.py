"""A provider that plays a script instead of asking a model. Standard library only."""
