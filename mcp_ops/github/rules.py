"""The rules of the github server: name, state, meaning, what to do instead."""

from collections.abc import Mapping

from mcp_ops.gate import RESOURCE_RULES, Rule, State

WATCHLIST = Rule(
    "github.watchlist",
    State.DENIED,
    "The repository is not on the watch list, or bears another name by now that is not.",
    "Take a repository of devops://watchlist. The operator adds one in GITHUB_REPOS.",
    stands_for=(
        "A token that reads more than the task needs: [servers "
        "#3751](https://github.com/modelcontextprotocol/servers/issues/3751). A listed name that was given up and "
        "now leads to somebody else's repository."
    ),
    limits="What stands inside a watched repository, and a watched name that its owner gave to a new repository.",
)
WRITE_REPOS = Rule(
    "github.write_repos",
    State.DENIED,
    "The repository is not one that may be written to, or bears another name by now that is not.",
    "Say what the issue would hold and let a person open it. The operator allows a repository in GITHUB_WRITE_REPOS.",
    stands_for="A token that may write everywhere, in the hands of whoever wrote the text that the model reads.",
    limits="What is written: any title and body goes into a repository that is listed.",
)
PRIVATE_TO_PUBLIC = Rule(
    "github.private_to_public",
    State.DENIED,
    "A private repository was read since the server started, and the target is public or its visibility is unknown.",
    "Say what the issue would hold and let a person open it, or write to a private repository that is listed.",
    stands_for=(
        "A text in a public repository that has a private one read and its content written to the public one: "
        "[github-mcp-server #844](https://github.com/github/github-mcp-server/issues/844)."
    ),
    limits=(
        "Content that goes into another private repository, out through another server, or into an answer. The names "
        "on the watch list do not count as read. Over HTTP one server has many callers and remembers for all of them."
    ),
)
TOKEN_IN_TEXT = Rule(
    "github.token_in_text",
    State.DENIED,
    "The title, the body or a label holds the server's own credential, or a part of it.",
    "Leave the credential out.",
    stands_for="A credential that an error or a log showed, on its way into an issue that others read.",
    limits="Another secret, and a spelling that no encoding explains.",
)

NO_TOKEN = Rule(
    "github.no_token",
    State.UNAVAILABLE,
    "The server was started without a credential for GitHub.",
    "Go on without GitHub and say that the operator has to set GITHUB_TOKEN. Ask nobody for a token.",
)
RATE_LIMITED = Rule(
    "github.rate_limited",
    State.UNAVAILABLE,
    "The credential's requests of this hour are used up.",
    "Finish with what you know and say when GitHub answers again.",
)
SECONDARY_LIMIT = Rule(
    "github.secondary_limit",
    State.UNAVAILABLE,
    "GitHub slows down a burst of requests (its secondary limit or its check for abuse).",
    "Finish with what you know and say when GitHub answers again.",
)
SERVER_ERROR = Rule(
    "github.server_error",
    State.UNAVAILABLE,
    "GitHub answered with an error of its own (5xx).",
    "Go on without GitHub and say that it has trouble.",
)
TIMEOUT = Rule(
    "github.timeout",
    State.UNAVAILABLE,
    "GitHub did not answer in time.",
    "Ask for less, or go on without GitHub and say so.",
)
NETWORK = Rule(
    "github.network",
    State.UNAVAILABLE,
    "GitHub could not be reached.",
    "Go on without GitHub and say that it could not be reached.",
)
UNAUTHORIZED = Rule(
    "github.unauthorized",
    State.FAILED,
    "GitHub does not accept the credential (401), for instance an expired token.",
    "Say that the credential was refused; no tool can renew it.",
)
FORBIDDEN = Rule(
    "github.forbidden",
    State.FAILED,
    "GitHub knows the credential and does not let it do this (403).",
    "Say which permission is missing.",
)
SSO_REQUIRED = Rule(
    "github.sso_required",
    State.FAILED,
    "The organisation wants the token authorised for single sign-on.",
    "Say that the operator has to authorise the token for the organisation.",
)
NOT_FOUND = Rule(
    "github.not_found",
    State.FAILED,
    "There is no such thing, or it is private and the credential may not see it (404).",
    "Look at what is there with the listing tools.",
)
GONE = Rule(
    "github.gone",
    State.FAILED,
    "It was there and is no more (410), as a log after its time or issues that were turned off.",
    "Go on without it.",
)
INVALID = Rule(
    "github.invalid",
    State.FAILED,
    "GitHub does not take the request as it is (422), for instance a label or a cursor that it does not know.",
    "Change what the reason names.",
)
REDIRECTED = Rule(
    "github.redirected",
    State.FAILED,
    "GitHub's answer leads somewhere where the credential may not go.",
    "Take the repository's present name.",
)
UNREADABLE = Rule(
    "github.unreadable",
    State.FAILED,
    "GitHub's answer does not have the form that was agreed, or is too large.",
    "Ask for less, or go on without it.",
)
OUTCOME_UNKNOWN = Rule(
    "github.outcome_unknown",
    State.FAILED,
    "The issue was sent and no usable answer came: it may be there.",
    "Look with list_issues before you say anything about it. Do not send it again.",
)

OF_KIND: Mapping[str, Rule] = {
    "unauthorized": UNAUTHORIZED,
    "forbidden": FORBIDDEN,
    "sso_required": SSO_REQUIRED,
    "not_found": NOT_FOUND,
    "gone": GONE,
    "invalid": INVALID,
    "rate_limited": RATE_LIMITED,
    "secondary_limit": SECONDARY_LIMIT,
    "server": SERVER_ERROR,
    "timeout": TIMEOUT,
    "network": NETWORK,
    "redirected": REDIRECTED,
    "unreadable": UNREADABLE,
}
"""The rule of each kind of `GitHubError`."""

GUARD_RULES = (WATCHLIST, WRITE_REPOS, PRIVATE_TO_PUBLIC, TOKEN_IN_TEXT)
RULES = (*GUARD_RULES, NO_TOKEN, *OF_KIND.values(), OUTCOME_UNKNOWN, *RESOURCE_RULES)
"""Every rule of the server besides those that every server has."""
