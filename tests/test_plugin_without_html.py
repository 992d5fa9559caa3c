import pytest
from opsproject import Project, denied, line, wrong

ABSENT = [
    ["html"],
    ["html", "metadata"],
    ["html", "metadata", "xdist", "rerunfailures", "junitxml"],
    ["tmpdir", "junitxml"],
    ["terminalreporter"],
    ["capturemanager"],
    ["cacheprovider", "stepwise"],
]


@pytest.mark.covers("H30")
@pytest.mark.parametrize("names", ABSENT, ids="-".join)
def test_the_plugin_works_without_the_plugins_that_it_can_serve(names: list[str], project: Project) -> None:
    project.write(line(), denied(), wrong())
    run = project.run(*(part for name in names for part in ("-p", f"no:{name}")))
    assert (run.code, "INTERNALERROR" in run.out + run.err) == (1, False), run.out
    if "terminalreporter" not in names:
        assert run.counts == {"passed": 2, "failed": 1}
    assert run.err == ""
