"""The attack suite: each attack a real run of a hostile agent, from launch to record."""
