"""How often each property is tried, in shares of what the profile allows."""

from hypothesis import settings


def share(of_profile: float) -> settings:
    """Return the settings of a test that gets this multiple of the profile's examples."""
    return settings(max_examples=max(1, round(settings.default.max_examples * of_profile)))


def thorough() -> bool:
    """Whether `make fuzz` runs, and minutes may be spent."""
    return settings.default.max_examples > 1000
