"""How much is tried: little and always the same in CI, much and always something else by `make fuzz`."""

import pytest
from hypothesis import HealthCheck, settings

UNHURRIED = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)

settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=UNHURRIED
)
settings.register_profile(
    "fuzz", max_examples=2000, deadline=None, derandomize=False, print_blob=True, suppress_health_check=UNHURRIED
)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("hypothesis_profile", None) is None:
        settings.load_profile("ci")
