"""The variables that the github server is set up by. No file is read but the private key's, and no `.env`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_ops.github.client import AppInstallation, Credentials, RestGitHub, Token
from mcp_ops.github.watchlist import Watchlist
from mcp_ops.text import one_line

API_URL = "https://api.github.com"

TOKEN = "GITHUB_TOKEN"  # noqa: S105 - a name
REPOS = "GITHUB_REPOS"
WRITE_REPOS = "GITHUB_WRITE_REPOS"
URL = "GITHUB_API_URL"
APP_ID = "GITHUB_APP_ID"
INSTALLATION = "GITHUB_APP_INSTALLATION_ID"
KEY = "GITHUB_APP_PRIVATE_KEY"
KEY_FILE = "GITHUB_APP_PRIVATE_KEY_FILE"

VARIABLES = (TOKEN, APP_ID, INSTALLATION, KEY, KEY_FILE, REPOS, WRITE_REPOS, URL)
"""Every variable that is read. An empty one counts as not set."""

_MAX_KEY_BYTES = 65536


@dataclass(frozen=True)
class Settings:
    """What the variables say."""

    client: RestGitHub | None
    """None: no credential is set."""
    watchlist: Watchlist
    write_repos: Watchlist


def read_environment(environ: Mapping[str, str]) -> Settings:
    """Read the variables.

    Raises:
        ValueError: One is wrong, or they do not go together. The message is one sentence that names the variable and
            repeats no secret.
    """
    given = {name: environ[name].strip() for name in VARIABLES if environ.get(name, "").strip()}
    credentials = _credentials(given)
    return Settings(
        client=None if credentials is None else _client(given.get(URL, API_URL), credentials),
        watchlist=Watchlist.parse(given.get(REPOS, ""), of=REPOS),
        write_repos=Watchlist.parse(given.get(WRITE_REPOS, ""), of=WRITE_REPOS),
    )


def _client(url: str, credentials: Credentials) -> RestGitHub:
    try:
        return RestGitHub(url, credentials)
    except ValueError as error:
        raise ValueError(f"{URL}: {error}") from None


def _credentials(given: Mapping[str, str]) -> Credentials | None:
    app = [name for name in (APP_ID, INSTALLATION, KEY, KEY_FILE) if name in given]
    if TOKEN in given and app:
        raise ValueError(f"{TOKEN} and {app[0]} are both set; leave out one of the two ways to authenticate")
    if TOKEN in given:
        try:
            return Token(given[TOKEN])
        except ValueError as error:
            raise ValueError(f"{TOKEN}: {error}") from None
    return _app(given) if app else None


def _app(given: Mapping[str, str]) -> AppInstallation:
    missing = [name for name in (APP_ID, INSTALLATION) if name not in given]
    if not (KEY in given or KEY_FILE in given):
        missing.append(f"{KEY} or {KEY_FILE}")
    if missing:
        raise ValueError(f"an App needs {', '.join(missing)} too")
    if KEY in given and KEY_FILE in given:
        raise ValueError(f"{KEY} and {KEY_FILE} are both set; leave out one")
    number = given[INSTALLATION]
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise ValueError(f"{INSTALLATION} is {one_line(number, 40)!r}; write the number of the installation")
    try:
        return AppInstallation(given[APP_ID], int(number), given[KEY] if KEY in given else _key(given[KEY_FILE]))
    except ValueError as error:
        raise ValueError(f"GITHUB_APP_*: {error}") from None


def _key(path: str) -> str:
    try:
        with Path(path).open("rb") as stream:
            return stream.read(_MAX_KEY_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise ValueError(f"{KEY_FILE} cannot be read ({error.strerror}); write the path of a PEM file") from None
