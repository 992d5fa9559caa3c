import pytest
from opsproject import Project, denied, line


@pytest.mark.covers("H30")
def test_the_plugin_works_with_autoload_off_and_named_by_hand(project: Project) -> None:
    project.write(line(), denied())
    off = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = project.start("-p", "pytest_opsagent.plugin", "-W", "error", "-v", env=off, quiet=())
    assert run.code == 0, run.out + run.err
    assert run.counts == {"passed": 2}
    assert project.start(env=off, quiet=()).code == 5


@pytest.mark.covers("H14")
def test_the_plugin_can_be_switched_off(project: Project) -> None:
    project.write(line())
    run = project.start("-p", "no:opsagent")
    assert (run.code, "opsagent" in run.out) == (5, False)
