"""Scoring: each detector against its corpus, with floors that gate, intervals, and every failing case by
name."""
