import pytest
from opsproject import Project, import_everything

pytest_plugins = "pytester"


@pytest.fixture(scope="session")
def _everything_imported() -> None:
    import_everything()


@pytest.fixture
def project(_everything_imported: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Somebody's repository with scenarios, and pytest to run there."""
    return Project(pytester, monkeypatch)
