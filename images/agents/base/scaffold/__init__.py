"""Prepares a workspace: documents, configuration and the baseline commit every agent starts from."""

VERSION = "2"
"""Part of every record's stamp: raise it when the same input would give another baseline."""
