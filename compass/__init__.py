"""compass: offline detectors and labelled corpora for command and text safety."""

__version__ = "0.1.0"
