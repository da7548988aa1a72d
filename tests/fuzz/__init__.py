"""Fuzzing of every reader of hostile bytes: targets, invariants, and a corpus of what broke."""
