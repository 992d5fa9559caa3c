from pathlib import Path

import pytest
from calls import SECRET, ask, context_of, make_lab

from mcp_ops.ops.guards.secret_names import DEFAULT, SecretNames
from mcp_ops.ops.tools.read_file import READ_FILE
from mcp_ops.ops.tools.run_shell import RUN_SHELL
from mcp_ops.ops.workspace import Workspace

SECRETS = [
    *(".env", ".ENV", ".env.local", ".env.production", "prod.env", "prod.Env", "staging.env", "tls.pem", "tls.KEY"),
    *("server.p12", "store.pfx", "keystore.jks", "id_rsa", "id_rsa.old", "id_dsa", "id_ecdsa", "id_ed25519"),
    *(".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", "credentials", "credentials.json"),
    *("Credentials.json", "credentials.yaml", "kubeconfig", "admin.kubeconfig", "SECRETS.yaml", "my-secret.txt"),
    *("secret", "db_secrets.tf", "staging.env.bak", "staging.env~", "tls.key.orig", "credentials.old", ".env.bak~"),
    *("certs/ca.pem", "public.pem", "secrets/README.md", "secrets/notes.txt", "Secrets/x", "a/secrets/b/c.md"),
    *(".env/x", "ſecret.txt", "id_rsa/x", ".kube/config", "home/.kube/cache/x", ".dockercfg"),
]
HARMLESS = [
    *("README.md", "env", "env.staging", "environment.ts", ".env.example", ".env.sample", ".env.template"),
    *(".ENV.Example", ".env.example.bak", "id_rsa.pub", "id_ed25519.pub", "id_rsa.pub.bak", "keys.md", "monkey"),
    *("runbooks/secrets-rotation.md", "docs/secret-management.md", "secret.rst", "Secrets.ADOC", "secret.md~"),
    *("pem", "a.pem.txt", "credential", "aws_credentials", "token", "passwords.txt", "kubeconfig.md", "notes.bak"),
    *(".docker/config.json", "kube/config", ".kubernetes/config", ".bak", "~", "api.keys"),
]


@pytest.mark.covers("A12")
@pytest.mark.parametrize("path", SECRETS)
def test_a_secret_name_is_one_in_any_case_and_copy_and_in_any_component(path: str) -> None:
    assert DEFAULT.pattern_for(path)


@pytest.mark.covers("A12")
@pytest.mark.parametrize("path", HARMLESS)
def test_a_name_that_only_resembles_one_is_none(path: str) -> None:
    assert DEFAULT.pattern_for(path) is None


def test_the_pattern_that_fits_is_told() -> None:
    assert DEFAULT.pattern_for("a/TLS.Key.bak") == "*.key"


def test_the_list_can_be_extended_and_the_default_stays() -> None:
    more = DEFAULT.extended(["*.Kdbx", "vault-*"])
    assert more.pattern_for("a/passwords.KDBX") == "*.Kdbx"
    assert more.pattern_for("vault-token.bak") == "vault-*"
    assert more.pattern_for(".env")
    assert DEFAULT.pattern_for("a/passwords.kdbx") is None
    assert SecretNames(()).pattern_for(".env") is None


@pytest.mark.covers("A12", "A13")
@pytest.mark.parametrize("path", ["secrets/staging.env", ".ENV", "innocent.txt", "certs/tls.key", "secrets/README.md"])
async def test_reading_a_secret_file_by_any_name_is_denied_and_shows_nothing_of_it(tmp_path: Path, path: str) -> None:
    reply = await ask(READ_FILE, context_of(make_lab(tmp_path)), {"path": path})
    assert reply.verdict == "path.secret"
    assert SECRET not in reply.text
    assert "its name, or its folder's, fits '" in reply.text


@pytest.mark.covers("A12")
async def test_an_operators_own_secret_name_is_refused(tmp_path: Path) -> None:
    ws = make_lab(tmp_path)
    context = context_of(ws, secret_names=DEFAULT.extended(["restart*"]))
    assert (await ask(READ_FILE, context, {"path": "link_ok"})).verdict == "path.secret"
    assert (await ask(READ_FILE, context_of(ws), {"path": "link_ok"})).verdict == "executed"


def test_the_folder_above_the_workspace_may_have_any_name(tmp_path: Path) -> None:
    ws = tmp_path / "secrets.env"
    ws.mkdir()
    (ws / "notes.md").write_text("x")
    assert Workspace(ws).secret_names.pattern_for("notes.md") is None


@pytest.mark.covers("A12")
@pytest.mark.parametrize(
    "command",
    [
        "wc --files0-from=secrets/staging.env",
        "du --files0-from=secrets/staging.env",
        "sort --files0-from secrets/staging.env",
        "find -files0-from secrets/staging.env",
        "date -f secrets/staging.env",
    ],
)
async def test_a_secret_file_cannot_be_read_through_error_messages(tmp_path: Path, command: str) -> None:
    reply = await ask(RUN_SHELL, context_of(make_lab(tmp_path)), {"command": command})
    assert reply.reading.state == "denied"
    assert SECRET not in reply.text
