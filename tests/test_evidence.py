"""Evidence: from results files to what shows each rule, and the gaps."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import open_browser, reason_without_browser

from mcp_ops.cli import main
from mcp_ops.evaluation.session.rules import RULES as HARNESS_RULES
from mcp_ops.evidence.checkout import commit_of
from mcp_ops.evidence.matrix import Evidence, RuleEvidence, Source, build
from mcp_ops.evidence.page import MOST, render
from mcp_ops.evidence.provenance import kubectl_version, versions
from mcp_ops.evidence.results import ResultsError, as_json, read_results
from mcp_ops.servers.rules import all_rules

pytestmark = pytest.mark.covers("H40")

REASON = reason_without_browser()
HOSTILE = (
    "</script><img src=x onerror=alert(1)></style></title><svg onload=alert(1)> {{7*7}} \" ' `javascript:alert(1)`"
    " \x1b[31mred \x1b]8;;http://example.invalid\x07link\x07 \u202egpj.exe \ud800 \x00 \U000e0041 C:\\N\n::error::x"
)
COMMIT, OTHER = "0123456789abcdef0123456789abcdef01234567", "f" * 40
NOW = "2026-11-30T12:00:00Z"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def record(scenario: str, **keys: Any) -> dict[str, Any]:
    """A record of a scenario that passed."""
    made = {
        "nodeid": f"scenarios.jsonl::{scenario}",
        "location": "scenarios.jsonl:1",
        "scenario": scenario,
        "status": "ran",
        "outcome": "passed",
        "mode": "mock",
        "model": "mock",
        "calls": 1,
        "runs": [f"r-20261130-120000-{digest(scenario)[:4]}"],
        "line_sha256": digest(scenario),
    }
    return made | keys


def attack(scenario: str = "attack", rule: str = "shell.binary", **keys: Any) -> dict[str, Any]:
    return record(scenario, **({"rules_seen": [rule], "rules_wanted": [rule]} | keys))


def twin(scenario: str = "twin", of: str = "attack", **keys: Any) -> dict[str, Any]:
    return record(scenario, twin_of=of, **keys)


def document(*records: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
    made = {"v": 1, "written": "2026-11-30T11:00:00Z", "mode": "mock", "versions": {"mcp": "2.3.0"}}
    return made | {"machine": {"kernel": "Linux"}, "commit": COMMIT, "records": list(records)} | keys


def source(*records: Mapping[str, Any], name: str = "results.json", folder: Path, **keys: Any) -> Source:
    path = folder / name
    path.write_text(json.dumps(document(*records, **keys)), "utf-8")
    results, sha256 = read_results(path)
    return Source(name, sha256, results)


def rule(evidence: Evidence, name: str = "shell.binary") -> RuleEvidence:
    (found,) = (each for each in evidence.rules if each.rule == name)
    return found


class TestTheRules:
    def test_every_rule_that_ships_is_there_once_and_without_results_all_are_gaps(self) -> None:
        evidence = build([])
        shipped = [each.name for each in (*all_rules(), *HARNESS_RULES)]
        assert sorted(each.rule for each in evidence.rules) == sorted(shipped)
        assert {each.standing for each in evidence.gaps} == {"no evidence"}
        assert len(evidence.gaps) == len(evidence.rules)

    def test_a_rule_is_shown_by_a_scenario_that_expects_it_and_a_harmless_twin_that_passed(
        self, tmp_path: Path
    ) -> None:
        evidence = build([source(attack(), twin(), folder=tmp_path)])
        found = rule(evidence)
        assert (found.standing, found.is_gap) == ("shown", False)
        (shown,) = found.shown_by
        assert (shown.nodeid, shown.date, shown.source) == ("scenarios.jsonl::attack", "2026-11-30T11:00:00Z", 1)
        assert shown.runs[0].startswith("r-20261130-")
        assert shown.line_sha256 == digest("attack")
        assert [each.scenario for each in found.neighbours] == ["twin"]

    @pytest.mark.parametrize(
        ("records", "standing"),
        [
            ([attack()], "one-sided"),
            ([attack(), twin(outcome="failed")], "one-sided"),
            ([attack(outcome="failed", safety_held=False), attack(), twin()], "failing"),
            ([attack(), twin(of="other")], "one-sided"),
            ([attack(), twin(rules_seen=["shell.binary"])], "one-sided"),
            ([attack(), twin(calls=0)], "one-sided"),
            ([attack(), twin(calls=2, denials=2)], "one-sided"),
            ([attack(), record("shell.binary-harmless", tags=["harmless"])], "shown"),
            ([attack(), record("shell.binary-harmless")], "one-sided"),
            ([attack(rules_wanted=[]), twin()], "not expected"),
            ([attack(outcome="failed"), twin()], "failing"),
            ([attack(), twin(), attack("second", outcome="failed")], "failing"),
            ([attack(), twin(), attack("second", outcome="failed", rules_seen=[])], "failing"),
            ([attack(), twin(), attack("second", outcome="xfailed", known="x")], "known failure"),
            ([attack(), twin(), record("attack[env]", outcome="failed", guard_blamed=["shell.binary"])], "failing"),
            ([attack(), twin(), twin("second", outcome="failed", guard_blamed=["shell.binary"])], "failing"),
            ([attack(), twin(), record("attack[env]", outcome="failed", guard_blamed=["shell.glob"])], "shown"),
            ([attack(status="not_proven", outcome="skipped", rules_seen=[]), twin()], "no evidence"),
            ([attack(status="not_proven")], "no evidence"),
            ([attack(status="other_mode", outcome="skipped", rules_seen=[])], "no evidence"),
            ([attack("path", "path.not_found")], "no evidence"),
        ],
    )  # fmt: skip
    def test_what_is_missing_is_a_gap_and_the_worst_counts(
        self, records: list[dict[str, Any]], standing: str, tmp_path: Path
    ) -> None:
        assert rule(build([source(*records, folder=tmp_path)])).standing == standing

    def test_a_rule_that_denies_nothing_needs_no_neighbour(self, tmp_path: Path) -> None:
        evidence = build([source(attack(rule="path.not_found"), folder=tmp_path)])
        assert rule(evidence, "path.not_found").standing == "shown"

    def test_gaps_come_first_and_the_worst_of_them_before_the_others(self, tmp_path: Path) -> None:
        records = [attack(), twin(), attack("bad", "shell.glob", outcome="failed"), attack("alone", "path.outside")]
        evidence = build([source(*records, folder=tmp_path)])
        standings = [each.standing for each in evidence.rules]
        assert evidence.rules[0].rule == "shell.glob"
        assert standings[-1] == "shown"
        assert standings == sorted(standings, key=["failing", "no evidence", "one-sided", "shown"].index)

    def test_a_scenario_that_waits_for_something_is_named_beside_the_rule_it_would_show(self, tmp_path: Path) -> None:
        waits = attack(
            "needy", "kubectl.secret", status="not_proven", outcome="skipped", reasons=["cluster"], rules_seen=[]
        )
        found = rule(build([source(waits, folder=tmp_path)]), "kubectl.secret")
        assert [(each.scenario, each.why) for each in found.not_run] == [("needy", "not proven: cluster")]
        assert found.shown_by == found.failed == ()

    def test_a_rule_that_this_version_does_not_know_is_listed_too(self, tmp_path: Path) -> None:
        found = rule(build([source(attack(rule="mine.own"), folder=tmp_path)]), "mine.own")
        assert found.meaning == "Not a rule of this version."


class TestSeveralFiles:
    def test_mock_and_live_results_are_told_apart(self, tmp_path: Path) -> None:
        live = source(attack(mode="live", model="some/model"), mode="live", name="live.json", folder=tmp_path)
        found = rule(build([source(attack(), twin(), folder=tmp_path), live]))
        assert [(each.source, each.mode, each.model) for each in found.shown_by] == [
            (1, "mock", "mock"),
            (2, "live", "some/model"),
        ]

    def test_a_failure_in_one_file_is_not_cleared_by_a_pass_in_another(self, tmp_path: Path) -> None:
        bad = source(attack(outcome="failed", message="no"), name="live.json", folder=tmp_path)
        evidence = build([source(attack(), twin(), folder=tmp_path), bad])
        assert rule(evidence).standing == "failing"
        assert [(each.source, each.why) for each in evidence.not_green] == [(2, "failed: no")]

    def test_an_attack_and_its_twin_may_lie_in_different_shards(self, tmp_path: Path) -> None:
        shards = [source(attack(), folder=tmp_path), source(twin(), name="second.json", folder=tmp_path)]
        assert rule(build(shards)).standing == "shown"

    def test_a_file_that_is_named_twice_counts_once(self, tmp_path: Path) -> None:
        once = source(attack(), folder=tmp_path)
        evidence = build([once, once])
        assert len(evidence.sources) == len(rule(evidence).shown_by) == 1

    def test_the_last_run_of_an_item_counts_and_how_often_it_was_run_before_is_said(self, tmp_path: Path) -> None:
        evidence = build([source(attack(outcome="failed"), attack(), twin(), folder=tmp_path)])
        (shown,) = rule(evidence).shown_by
        assert shown.reruns == 1
        assert evidence.not_green == ()
        assert "run again 1 time" in render(evidence, NOW)

    def test_what_was_not_proven_is_not_green_and_neither_is_a_known_failure(self, tmp_path: Path) -> None:
        records = [
            attack("known", outcome="xfailed", known="slow", known_until="2026-12-31", safety_held=False),
            record("needy", status="not_proven", outcome="skipped", reasons=["cluster"]),
            record("live-only", status="other_mode", outcome="skipped"),
            record("fine"),
        ]
        evidence = build([source(*records, folder=tmp_path)])
        assert [each.why for each in evidence.not_green] == [
            "known safety failure until 2026-12-31: slow",
            "not proven: cluster",
        ]


class TestReading:
    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (
                json.dumps(document(record("a")))[:-9],
                "is not whole JSON: it was cut off or changed; write it anew with",
            ),
            ("", "is not whole JSON"),
            ('{"v": NaN, "records": []}', "is not whole JSON"),
            ("[" * 100_000, "is not whole JSON"),
            ("\ufeff{}", "is not whole JSON"),
            ("[]", "holds no results of a run; write it anew with pytest --ops-results=FILE"),
            ('{"records": []}', "holds no results of a run"),
            (json.dumps(document(v=2)), 'has "v": 2, and this mcp-ops reads 1; use the version that wrote it'),
            (json.dumps(document(v="1")), 'has "v": "1", and this mcp-ops reads 1'),
            (json.dumps(document(v=True)), 'has "v": true, and this mcp-ops reads 1'),
            (json.dumps(document({"nodeid": "a"})), "records.0.location: Field required"),
            (json.dumps(document(written=1)), "written: "),
        ],
    )
    def test_a_file_that_is_no_results_is_refused_in_one_sentence(
        self, text: str, sentence: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "results.json"
        path.write_text(text, "utf-8")
        with pytest.raises(ResultsError) as refused:
            read_results(path)
        assert sentence in str(refused.value)
        assert str(path) in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_a_field_that_this_version_does_not_know_is_passed_over(self, tmp_path: Path) -> None:
        newer = source(record("a", brand_new=1), folder=tmp_path, brand_new=2)
        assert newer.results.records[0].scenario == "a"


class Seen(HTMLParser):
    """What a parser finds in a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, "elements are nested properly"

    def handle_data(self, data: str) -> None:
        self.text += data


def filled() -> dict[str, Any]:
    """Results with a hostile text in every place that takes one."""
    texts = ("nodeid", "location", "scenario", "mode", "model", "cluster", "message", "line_sha256", "known_until")
    lists = ("reasons", "rules_seen", "rules_wanted", "runs", "tags")
    fields = {name: f"{name} {HOSTILE}" for name in texts} | {name: [f"{name} {HOSTILE}"] for name in lists}
    records = [
        attack(**fields),
        attack(**fields | {"outcome": "failed", "nodeid": "b" + HOSTILE}),
        attack(**fields | {"outcome": "xfailed", "nodeid": "c" + HOSTILE, "known": HOSTILE}),
        attack(**fields | {"outcome": HOSTILE, "status": HOSTILE, "nodeid": "d" + HOSTILE}),
        attack(), twin(),
    ]  # fmt: skip
    return document(
        *records, written=HOSTILE, mode="live", versions={HOSTILE: HOSTILE}, machine={HOSTILE: HOSTILE}, commit=HOSTILE
    )


class TestThePage:
    @pytest.mark.covers("A26")
    def test_hostile_text_in_every_field_stays_text(self, tmp_path: Path) -> None:
        (tmp_path / "results.json").write_text(json.dumps(filled()), "utf-8")
        results, sha256 = read_results(tmp_path / "results.json")
        html = render(build([Source(HOSTILE, sha256, results)]), NOW)
        seen = Seen(html)
        assert not {"script", "img", "svg", "a", "iframe", "form", "link"} & set(seen.tags)
        assert {name for name, _ in seen.attributes} <= {
            *("charset", "class", "content", "dir", "http-equiv", "lang", "name"),
        }
        for name, value in seen.attributes:
            if name in ("class", "dir", "name", "lang", "charset"):
                assert re.fullmatch(r"[a-zA-Z0-9 _-]+", value), (name, value)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\ud800-\udfff\U000e0041]", html)
        for piece in ("</script><img src=x onerror=alert(1)>", "{{7*7}}", "<U+202E>gpj.exe"):
            assert piece in seen.text
        assert "http://example.invalid" not in html

    def test_the_page_allows_its_own_style_and_nothing_else(self) -> None:
        html = render(build([]), NOW)
        (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
        allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
        assert f'content="{policy}"' in html
        assert "style=" not in html.replace("<style>", "")

    def test_gaps_stand_before_what_is_shown_and_versions_and_commits_are_named(self, tmp_path: Path) -> None:
        text = Seen(render(build([source(attack(), twin(), folder=tmp_path, interrupted=True)]), NOW)).text
        gaps, shown = text.split("Rules that are shown")
        assert "shell.glob" in gaps
        assert "shell.binary" not in gaps
        assert "scenarios.jsonl::attack" in shown
        for piece in ("2.3.0", COMMIT, "Linux", "interrupted", NOW):
            assert piece in text

    def test_a_list_of_scenarios_is_bounded_and_says_what_it_leaves_out(self, tmp_path: Path) -> None:
        records = [attack(f"attack-{number}") for number in range(MOST + 7)]
        evidence = build([source(*records, folder=tmp_path)])
        assert "and 7 more, in the JSON file" in render(evidence, NOW)
        assert len(rule(evidence).shown_by) == MOST + 7


@pytest.mark.browser
@pytest.mark.skipif(REASON is not None, reason=f"no browser: {REASON}")
def test_in_a_browser_nothing_acts_nothing_is_loaded_and_a_telephone_shows_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(filled()).replace("alert(1)", "document.title=1"), "utf-8")
    results, sha256 = read_results(tmp_path / "results.json")
    page = tmp_path / "evidence.html"
    page.write_text(render(build([Source("x" * 400, sha256, results)]), NOW), "utf-8")
    with open_browser(390) as browser:
        browser.open(page)
        browser.run("document.querySelectorAll('details').forEach(each => { each.open = true })")
        assert browser.run("return document.title") == "Evidence for guard rules"
        assert browser.page_width() <= 390
        assert browser.requests() == [page.as_uri()]
        assert browser.console() == []


class TestTheCommand:
    def write(self, folder: Path, *records: Mapping[str, Any], name: str = "results.json") -> str:
        (folder / name).write_text(as_json(document(*records)), "utf-8")
        return str(folder / name)

    def test_it_writes_both_files_and_says_how_many_rules_have_a_gap(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        files = [self.write(tmp_path, attack()), self.write(tmp_path, twin(), name="second.json")]
        assert main(["evidence", *files, "--out", str(tmp_path / "out/deep")]) == 0
        assert sorted(path.name for path in (tmp_path / "out/deep").iterdir()) == ["evidence.html", "evidence.json"]
        said = capsys.readouterr().err
        rules = len(all_rules()) + len(HARNESS_RULES)
        assert f"{rules} rules, 1 shown, {rules - 1} with a gap, 0 scenarios not green" in said
        found = json.loads((tmp_path / "out/deep/evidence.json").read_text("utf-8"))
        assert (found["v"], len(found["rules"]), len(found["sources"])) == (1, rules, 2)
        assert found["rules"][-1]["rule"] == "shell.binary"
        assert found["rules"][-1]["shown_by"][0]["nodeid"] == "scenarios.jsonl::attack"
        assert found["sources"][0]["versions"] == {"mcp": "2.3.0"}
        assert found["sources"][1]["sha256"] == hashlib.sha256(Path(files[1]).read_bytes()).hexdigest()

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [(None, "cannot be read: no such file"), ("{", "is not whole JSON"), ('{"v": 2, "records": []}', 'has "v": 2')],
    )
    def test_a_file_that_is_no_results_ends_it_with_one_sentence_and_writes_nothing(
        self, text: str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if text is not None:
            (tmp_path / "bad.json").write_text(text, "utf-8")
        good = self.write(tmp_path, attack())
        assert main(["evidence", good, str(tmp_path / "bad.json"), "--out", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert said.startswith("mcp-ops: ")
        assert said.count("\n") == 1
        assert sentence in said
        assert not (tmp_path / "out").exists()

    def test_a_folder_that_cannot_be_made_is_one_sentence(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        good = self.write(tmp_path, attack())
        assert main(["evidence", good, "--out", f"{good}/out"]) == 2
        assert "evidence.json cannot be written: " in capsys.readouterr().err


class TestTheCheckout:
    def git(self, folder: Path, files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        return folder

    @pytest.mark.parametrize(
        "files",
        [
            {".git/HEAD": COMMIT + "\n"},
            {".git/HEAD": "ref: refs/heads/a/b\n", ".git/refs/heads/a/b": COMMIT + "\n"},
            {
                ".git/HEAD": "ref: refs/heads/main\n",
                ".git/packed-refs": f"# pack-refs with: peeled\n{OTHER} refs/b\n{COMMIT} refs/heads/main\n^{OTHER}\n",
            },
            {".git": "gitdir: real\n", "real/HEAD": COMMIT + "\n"},
            {
                ".git": "gitdir: main/worktrees/w\n",
                "main/worktrees/w/HEAD": "ref: refs/heads/main\n",
                "main/worktrees/w/commondir": "../..\n",
                "main/refs/heads/main": COMMIT + "\n",
            },
        ],
        ids=["detached", "branch", "packed", "gitfile", "worktree"],
    )  # fmt: skip
    def test_the_commit_is_read_from_every_layout_also_from_a_folder_inside(
        self, files: dict[str, str], tmp_path: Path
    ) -> None:
        self.git(tmp_path, files)
        (tmp_path / "sub/deep").mkdir(parents=True)
        assert commit_of(tmp_path) == commit_of(tmp_path / "sub/deep") == COMMIT

    @pytest.mark.parametrize(
        "files",
        [
            {},
            {".git/HEAD": "ref: refs/heads/main\n"},
            {".git/HEAD": "ref: refs/../../../etc/passwd\n"},
            {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": "<script>\n"},
            {".git": "gitdir: nowhere\n"},
            {".git/HEAD": ""},
        ],
        ids=["none", "unborn", "outside", "no-commit", "lost", "empty"],
    )
    def test_what_names_no_commit_is_none(self, files: dict[str, str], tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        assert commit_of(self.git(tmp_path / "sub", files)) is None


class TestTheVersions:
    def test_a_distribution_that_is_not_there_is_said(self) -> None:
        found = versions(("mcp", "no-such-distribution"))
        assert found.keys() == {"python", "mcp", "no-such-distribution"}
        assert found["no-such-distribution"] == "not installed"
        assert re.fullmatch(r"\d+\.\d+.*", found["mcp"])

    @pytest.mark.parametrize(
        ("program", "version"),
        [
            (None, "not installed"),
            ("""printf '{"clientVersion": {"gitVersion": "v1.2.3"}}'""", "v1.2.3"),
            ("""test "$KUBECONFIG" = /dev/null && printf '{"clientVersion": {"gitVersion": "%s"}}' "$*" """,
             "version --client --output=json"),
            ("printf nothing", "unknown"),
            ("exit 1", "unknown"),
        ],
        ids=["absent", "answers", "alone", "no-json", "fails"],
    )  # fmt: skip
    def test_kubectl_is_asked_for_its_own_version_and_for_no_cluster(
        self, program: str | None, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "bin").mkdir()
        if program is not None:
            (tmp_path / "bin/kubectl").write_text(f"#!/bin/sh\n{program}\n", "utf-8")
            (tmp_path / "bin/kubectl").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setenv("KUBECONFIG", "/somewhere/else")
        assert kubectl_version(tmp_path / "workspace") == version
