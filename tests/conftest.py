"""What all tests share: generated cases are never judged by how long they take."""

from hypothesis import HealthCheck, settings

settings.register_profile("copperbench", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("copperbench")
