"""Judges files, offline: evidence in, verdict out."""

__version__ = "0.1.0"

CODE = ("schema", "compass", "grader")
"""The packages whose code decides a verdict."""
