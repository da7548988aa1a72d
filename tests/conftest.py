"""What all tests share: generated cases are never judged by time, and in CI they are the same each time."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "copperbench",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # New cases are found by those who work on the code, not by whoever's change is being tested.
    derandomize="CI" in os.environ,
)
settings.load_profile("copperbench")
