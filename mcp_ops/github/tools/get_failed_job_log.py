"""`get_failed_job_log`: the end of the log of a failed job of a pull request."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from mcp_ops.gate import Output, Refuse, Result, Tool, ToolClass, executed, stopped
from mcp_ops.github.api import GitHub, Job, Log, RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.guards.reading import guard_read
from mcp_ops.github.rules import NOT_FOUND
from mcp_ops.github.tools.arguments import PullRequestArguments
from mcp_ops.github.tools.asking import read
from mcp_ops.github.tools.entries import Part
from mcp_ops.github.tools.wording import DATA, block, noted, short
from mcp_ops.text import clean

MAX_JOBS = 30
"""Most failed jobs that are listed."""
MAX_CHARACTERS = 20_000


class LogArguments(PullRequestArguments):
    """Arguments of `get_failed_job_log`."""

    job: int | None = Field(
        default=None,
        description="Id of one failed job, as this tool lists them; without it the first one.",
        examples=[4001],
        ge=1,
        le=2**53,
    )
    characters: int = Field(
        default=4000, description="Most characters of the log; its end is shown.", ge=1, le=MAX_CHARACTERS
    )


class JobEntry(Part):
    """One failed job."""

    id: int = Field(description="Id of the job.")
    name: str = Field(description="Name of the job.")
    conclusion: str = Field(description="GitHub's word for how it ended.")


class JobLog(Output):
    """What `get_failed_job_log` returns."""

    repository: str = Field(description="owner/name.")
    number: int = Field(description="Number of the pull request.")
    failed_jobs: list[JobEntry] = Field(description="Failed jobs of the latest commit, the first ones.")
    job: JobEntry | None = Field(description="The job whose log this is; null when no job failed.")
    log: str = Field(description="The end of its log.")
    notes: list[str] = Field(description="What is cut. Pass it on.")


@dataclass(frozen=True)
class LogPlan:
    """What the guard allowed."""

    repo: RepoName
    number: int
    job: int | None
    characters: int


def guard(arguments: LogArguments, context: GitHubContext, refuse: Refuse) -> LogPlan:
    """Allow a watched repository."""
    repo = guard_read(arguments.owner, arguments.repo, context, refuse)
    return LogPlan(repo, arguments.number, arguments.job, arguments.characters)


async def run(plan: LogPlan, context: GitHubContext, refuse: Refuse) -> Result:
    """Find the failed jobs of the latest commit, and read the end of one log."""

    async def ask(client: GitHub, repository: Repository) -> Result:
        name = repository.name
        pull = await client.pull_request(name, plan.number)
        jobs = await client.failed_jobs(name, pull.head_sha)
        job = next((job for job in jobs if plan.job in (None, job.id)), None)
        if job is None and plan.job is not None:
            known = ", ".join(f"{each.id} ({short(each.name)})" for each in jobs[:MAX_JOBS]) or "none"
            return stopped(NOT_FOUND, f"job {plan.job} is no failed job of #{plan.number}; failed are: {known}")
        log = Log("", 0) if job is None else await client.job_log(name, job.id, max_bytes=4 * plan.characters)
        return _result(name, plan, jobs, job, log)

    return await read(plan.repo, context, refuse, ask)


def _result(repo: RepoName, plan: LogPlan, jobs: Sequence[Job], job: Job | None, log: Log) -> Result:
    entries = [_typed(each) for each in jobs[:MAX_JOBS]]
    text = clean(log.text)
    tail = text[-plan.characters :]
    notes = []
    if len(tail) < len(text) or len(log.text.encode("utf-8", "replace")) < log.full_length:
        notes.append(f"only the end of the log is shown: {len(tail)} characters of a log of {log.full_length} bytes")
    if len(jobs) > MAX_JOBS:
        notes.append(f"{len(jobs)} jobs failed; only the first {MAX_JOBS} are listed")
    if job is None:
        notes.append("no job of a workflow failed for the latest commit; checks from outside GitHub have no log here")
    lines = [f"{repo} pull request #{plan.number}: {len(jobs)} failed jobs of the latest commit. {DATA}"]
    lines += [f"- job {entry.id}: {entry.name} ({entry.conclusion})" for entry in entries]
    lines += [f"End of the log of job {job.id}:", block(tail)] if job else []
    return executed(
        noted(lines, notes),
        keep="ends",
        repository=str(repo),
        number=plan.number,
        failed_jobs=[entry.model_dump() for entry in entries],
        job=_typed(job).model_dump() if job else None,
        log=tail,
        notes=notes,
    )


def _typed(job: Job) -> JobEntry:
    return JobEntry(id=job.id, name=short(job.name), conclusion=short(job.conclusion or "none"))


GET_FAILED_JOB_LOG = Tool(
    name="get_failed_job_log",
    description=(
        "The end of the log of a failed job (GitHub Actions) of a pull request's latest commit, 4000 characters by "
        "default and 20000 at most, with a list of all failed jobs."
    ),
    arguments=LogArguments,
    guard=guard,
    run=run,
    classification=ToolClass.READ_ONLY,
    open_world=True,
    max_reply_bytes=128 * 1024,
    output=JobLog,
)
