import pytest
from opsproject import Project, line

pytestmark = pytest.mark.covers("H14")


@pytest.mark.parametrize("content", ["", "\n\n", "// nothing yet\n"])
def test_a_file_without_a_scenario_is_no_success(project: Project, content: str) -> None:
    project.file("scenarios.jsonl", content)
    assert project.run().code == 5
    assert project.run("scenarios.jsonl").code == 5


def test_a_folder_with_the_name_of_a_scenario_file_is_no_success(project: Project) -> None:
    (project.path / "scenarios.jsonl").mkdir()
    assert project.run().code == 5


def test_a_scenario_file_that_is_not_there_is_a_usage_error(project: Project) -> None:
    assert project.run("scenarios.jsonl").code == 4


def test_a_filter_that_selects_nothing_is_no_success(project: Project) -> None:
    project.write(line("one"))
    assert project.run("-k", "nothing").code == 5
    # Newer pytests refuse a marker that nobody registered.
    assert project.run("-m", "nothing").code in (4, 5)
