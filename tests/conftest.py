import pytest
from opsproject import Project, import_everything

pytest_plugins = "pytester"

END_TO_END = {
    "test_agent_confirmation.py",
    "test_command_line_agent.py",
    "test_agent_transports.py",
    "test_demo_cluster.py",
    "test_docs.py",
    "test_github_serve.py",
    "test_github_transports.py",
    "test_guard_report.py",
    "test_hosts.py",
    "test_http_server.py",
    "test_http_transport.py",
    "test_inspector.py",
    "test_kubectl_tools.py",
    "test_mutation.py",
    "test_operators.py",
    "test_plugin_injection.py",
    "test_plugin_live.py",
    "test_plugin_mutation.py",
    "test_plugin_redaction.py",
    "test_plugin_report_detail.py",
    "test_plugin_results.py",
    "test_plugin_traces.py",
    "test_plugin_variants.py",
    "test_plugin_wheel.py",
    "test_plugin_witnesses.py",
    "test_plugin_xdist.py",
    "test_second_wall.py",
}
"""Files whose tests take seconds each."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in END_TO_END or item.path.parent.name in ("fuzz", "real_k8s"):
            item.add_marker("e2e")


@pytest.fixture(scope="session")
def _everything_imported() -> None:
    import_everything()


@pytest.fixture
def project(_everything_imported: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Somebody's repository with scenarios, and pytest to run there."""
    return Project(pytester, monkeypatch)
