"""The servers of `mcp-ops serve`: each name, and how its server is made from arguments and environment."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.lowlevel import Server

from mcp_ops.cli import complain
from mcp_ops.cli.errors import CommandError


@dataclass(frozen=True)
class Served:
    """A server, and what its operator is told of it."""

    server: Server[Any]
    about: str
    """What it works on, in words: `/srv/notes`."""
    credentials: str = ""
    """What it holds that its callers do not have, in words: `a GitHub token`; empty for nothing."""


def make_server(args: argparse.Namespace, environ: Mapping[str, str]) -> Served:
    """Return the server that was asked for.

    Raises:
        CommandError: Arguments or environment are wrong.
    """
    return SERVERS[args.server](args, environ)


def _ops(args: argparse.Namespace, _: Mapping[str, str]) -> Served:
    from mcp_ops.servers.ops import create_server, load_extension

    try:
        server = create_server(
            args.workspace,
            kubeconfig=args.kubeconfig,
            kube_context=args.kube_context,
            require_second_wall=args.require_second_wall,
            extension=None if args.guards is None else load_extension(args.guards),
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    return Served(server, str(args.workspace), "the credentials of a kubeconfig" if args.kubeconfig else "")


def _github(args: argparse.Namespace, environ: Mapping[str, str]) -> Served:
    from mcp_ops.github.environment import read_environment
    from mcp_ops.servers.github import create_server

    try:
        settings = read_environment(environ)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if settings.client is None:
        complain("GITHUB_TOKEN is not set: every tool of the github server will answer that it has no token")
    if not settings.watchlist and not args.extended:
        complain("GITHUB_REPOS names no repository, so none can be read; write GITHUB_REPOS=owner/repo,owner/other")
    server = create_server(
        settings.client, settings.watchlist, write_repos=settings.write_repos, extended=args.extended
    )
    about = "every repository that the token sees" if args.extended else str(settings.watchlist)
    return Served(server, about, "a GitHub token" if settings.client else "")


SERVERS: Mapping[str, Callable[[argparse.Namespace, Mapping[str, str]], Served]] = {"ops": _ops, "github": _github}
