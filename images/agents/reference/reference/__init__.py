"""A small tool-calling agent for KiCad projects: it reads, edits, checks, and commits or refuses.

It speaks OpenAI's chat protocol, has no shell, and writes the transcript contract (Standard §11).
"""

VERSION = "1"
