"""The gateway: the only way from an agent to its model. It pins, counts, caps and holds the key."""

VERSION = "1"
