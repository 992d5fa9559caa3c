"""The repositories of an in-memory GitHub while it runs: what the state says, and what was opened since."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from mcp_ops.github.memory.rendering import Renderer, made_up_sha
from mcp_ops.github.memory.state import (
    GitHubState,
    IssueState,
    JobState,
    PullRequestState,
    RepositoryState,
    WorkflowRunState,
)

_FIRST_REPOSITORY = 1_296_269
_FIRST_JOB, _FIRST_RUN, _FIRST_WORKFLOW = 1001, 30_001, 501


@dataclass(frozen=True)
class StoredJob:
    """A job with its id."""

    id: int
    state: JobState


@dataclass(frozen=True)
class StoredRun:
    """A workflow run with its ids."""

    id: int
    workflow_id: int
    sha: str
    state: WorkflowRunState
    jobs: tuple[StoredJob, ...]


@dataclass
class StoredRepository:
    """One repository."""

    id: int
    name: str
    """`owner/name`, as it was written."""
    state: RepositoryState
    begin: datetime
    created: dict[int, tuple[IssueState, datetime]]
    runs: tuple[StoredRun, ...] = ()

    @property
    def render(self) -> Renderer:
        """Renders it as it is now."""
        return Renderer(self.name, self.id, self.state, self.begin, self.created)

    def pull_request(self, number: int) -> PullRequestState | None:
        """Return a pull request, if there is one of this number."""
        return self.state.pull_requests.get(str(number))

    def of_commit(self, sha: str) -> PullRequestState | None:
        """Return the pull request whose latest commit this is."""
        pulls = ((int(number), pull) for number, pull in self.state.pull_requests.items())
        return next((pull for number, pull in pulls if self.render.head_sha(number, pull) == sha.lower()), None)

    def knows_commit(self, sha: str) -> bool:
        """Tell whether there is such a commit."""
        mine = {
            commit.sha or made_up_sha(self.name.casefold(), "commit", i) for i, commit in enumerate(self.state.commits)
        }
        return self.of_commit(sha) is not None or sha.lower() in mine

    def open_issue(self, issue: IssueState, now: datetime) -> int:
        """Keep a new issue and return its number."""
        taken = [*map(int, self.state.issues), *map(int, self.state.pull_requests), *self.created]
        number = max([*taken, 0]) + 1
        if self.state.next_number is not None:
            number = max(self.state.next_number, number) if self.created else self.state.next_number
        while number in taken:
            number += 1
        self.created[number] = (issue, now)
        return number

    def issues(self) -> Iterator[tuple[int, IssueState]]:
        """Yield all issues, those that were opened since too."""
        yield from ((int(number), issue) for number, issue in self.state.issues.items())
        yield from ((number, issue) for number, (issue, _) in self.created.items())


class Store:
    """All repositories, by name and by id."""

    def __init__(self, state: GitHubState, begin: datetime) -> None:
        """Number everything that has no number of its own."""
        numbers = _Numbers(state)
        self.repositories = tuple(
            StoredRepository(_FIRST_REPOSITORY + index, name, given, begin, {}, numbers.runs(name, given, begin))
            for index, (name, given) in enumerate(state.repositories.items())
        )

    def by_name(self, name: str) -> StoredRepository | None:
        """Return a repository by its name, which has no letter case to GitHub."""
        return self._by_name.get(name.casefold())

    def by_id(self, number: int) -> StoredRepository | None:
        """Return a repository by its id."""
        return next((each for each in self.repositories if each.id == number), None)

    def renamed(self, name: str) -> StoredRepository | None:
        """Return the repository that once had this name."""
        former = ((each, each.state.renamed_from) for each in self.repositories)
        return next((each for each, old in former if old and old.casefold() == name.casefold()), None)

    @cached_property
    def _by_name(self) -> Mapping[str, StoredRepository]:
        return {each.name.casefold(): each for each in self.repositories}


class _Numbers:
    """Numbers runs and jobs in the order in which they are written."""

    def __init__(self, state: GitHubState) -> None:
        runs = [
            run
            for repository in state.repositories.values()
            for pull in repository.pull_requests.values()
            for run in pull.workflow_runs
        ]
        self._taken = {job.id for run in runs for job in run.jobs}
        self._job, self._run = _FIRST_JOB, _FIRST_RUN
        self._workflows: dict[tuple[str, str], int] = {}

    def runs(self, name: str, state: RepositoryState, begin: datetime) -> tuple[StoredRun, ...]:
        render = Renderer(name, 0, state, begin)
        return tuple(
            self._numbered(name, render.head_sha(int(number), pull), run)
            for number, pull in state.pull_requests.items()
            for run in pull.workflow_runs
        )

    def _numbered(self, name: str, sha: str, run: WorkflowRunState) -> StoredRun:
        self._run += 1
        workflow = self._workflows.setdefault((name, run.workflow), _FIRST_WORKFLOW + len(self._workflows))
        jobs = tuple(StoredJob(job.id or self._next_job(), job) for job in run.jobs)
        return StoredRun(self._run - 1, workflow, sha, run, jobs)

    def _next_job(self) -> int:
        while self._job in self._taken:
            self._job += 1
        self._job += 1
        return self._job - 1
