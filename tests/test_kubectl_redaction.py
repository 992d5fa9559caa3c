import json
import time

import pytest

from mcp_ops.ops.redaction import REDACTED, redact_described, redact_object, redact_text
from mcp_ops.ops.yaml import to_yaml

CANARY = "CANARY-9f2b"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.covers("A12")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026 token=CANARY-9f2b next", "2026 token=<redacted> next"),
        ("DB_PASSWORD=CANARY-9f2b", "DB_PASSWORD=<redacted>"),
        ("password: CANARY-9f2b with spaces\nnext: 1", "password: <redacted>\nnext: 1"),
        ("level=info password='CANARY-9f2b x' user=bob", "level=info password='<redacted>' user=bob"),
        ('{"user":"bob","password":"CANARY-9f2b \\" x","n":1}', '{"user":"bob","password":"<redacted>","n":1}'),
        ('msg="{\\"apiKey\\":\\"CANARY-9f2b\\"}"', 'msg="{\\"apiKey\\":\\"<redacted>\\"}"'),
        ("dbPass=CANARY-9f2b SMTP_PASS=CANARY-9f2b", "dbPass=<redacted> SMTP_PASS=<redacted>"),
        ("export AWS_SECRET_ACCESS_KEY=CANARY-9f2b/+x", "export AWS_SECRET_ACCESS_KEY=<redacted>"),
        ("run --password CANARY-9f2b --user bob", "run --password <redacted> --user bob"),
        ("run --auth-token=CANARY-9f2b x", "run --auth-token=<redacted> x"),
        ("GET /x?a=1&token=CANARY-9f2b&b=2", "GET /x?a=1&token=<redacted>&b=2"),
        ("postgres://bob:CANARY-9f2b@db:5432/x", "postgres://<redacted>@db:5432/x"),
        ("https://CANARY-9f2b@git.example/x", "https://<redacted>@git.example/x"),
        ("Authorization: Bearer CANARY-9f2b", "Authorization: <redacted>"),
        ("authorization: Basic Q0FOQVJZLTlmMmI= rest", "authorization: <redacted>"),
        ("sent bearer CANARY-9f2b to x", "sent bearer <redacted> to x"),
        ("Set-Cookie: sid=CANARY-9f2b; Path=/", "Set-Cookie: <redacted>"),
        ("Server=x;User Id=y;Password=CANARY-9f2b;Timeout=3", "Server=x;User Id=y;Password=<redacted>;Timeout=3"),
        (f"got {JWT} there", "got <redacted> there"),
        ("key AKIAABCDEFGHIJKLMNOP used", "key <redacted> used"),
        ("ghp_" + "a1" * 12, "<redacted>"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMII\nEC9\n-----END RSA PRIVATE KEY----- b", "a <redacted> b"),
        ("x" * 64 + "\n" + "y" * 64 + "\nz==\n-----END PRIVATE KEY-----\nready", "<redacted>\nready"),
        ("-----BEGIN PRIVATE KEY-----\ncut off in the mid", "<redacted>"),
        ("secret: |\n  CANARY-9f2b\n  more\nnext: 1", "secret: |\n  <redacted>\nnext: 1"),
        ("token:CANARY-9f2b", "token:<redacted>"),
        ("pass: CANARY-9f2b", "pass: <redacted>"),
        ('{"pass":"CANARY-9f2b","jwt":"CANARY-9f2b"}', '{"pass":"<redacted>","jwt":"<redacted>"}'),
        ("map[Authorization:[Bearer CANARY-9f2b]]", "map[Authorization:<redacted> <redacted>"),
        ('"Cookie":["sid=CANARY-9f2b; x=CANARY-9f2b"]', '"Cookie":<redacted>'),
        ("postgres://bob:p@CANARY-9f2b@db/x", "postgres://<redacted>@db/x"),
        ("    client-key-data: CANARY-9f2b", "    client-key-data: <redacted>"),
        ("GET /x?X-Amz-Signature=CANARY-9f2b&b=2", "GET /x?X-Amz-Signature=<redacted>&b=2"),
        ("key sk_live_" + "a1" * 8, "key <redacted>"),
        ("post https://hooks.slack.com/services/T0/B0/CANARY", "post https://<redacted>"),
        ("client_secret => CANARY-9f2b", "client_secret => <redacted>"),
        ("+ mysql -u root -pCANARY-9f2b shop", "+ mysql -u root -p<redacted> shop"),
        ("curl -sS --user 'bob:CANARY-9f2b' https://x", "curl -sS --user 'bob:<redacted>' https://x"),
        ("curl -u bob:CANARY-9f2b x", "curl -u bob:<redacted> x"),
        ("redis-cli -h db -a CANARY-9f2b ping", "redis-cli -h db -a <redacted> ping"),
        ("sshpass -p CANARY-9f2b ssh x", "sshpass -p <redacted> ssh x"),
        ("+ mysql -p'CANARY 9f2b' -h db", "+ mysql -p<redacted> -h db"),
        ('sshpass -p "CANARY 9f2b" ssh x', "sshpass -p <redacted> ssh x"),
        ("redis-cli -a 'CANARY-9f2b'", "redis-cli -a <redacted>"),
        ("curl -sSu bob:CANARY-9f2b x", "curl -sSu bob:<redacted> x"),
        ("the password is CANARY-9f2b.", "the password is <redacted>."),
        ("password was 'correct horse', reset it", "password was <redacted>, reset it"),
    ],
)
def test_a_credential_in_text_is_hidden_and_the_rest_stays(text: str, shown: str) -> None:
    assert redact_text(text) == shown
    assert redact_text(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Failed password for root from 10.0.0.1",
        "invalid token: expired",
        "error: password: incorrect, try again",
        "secret: not found",
        "password is required",
        "kubectl logs mysql-0 -previous",
        "cat: token.md: No such file or directory",
        "grep: credentials: Is a directory",
        "grep: secret-plan.md: Permission denied",
        "the password is 8 characters long, the token is 24h old",
        "mysql -P3306 -h db; mysql -p shop; curl -sS https://x/health",
        "PWD=/ ; USER=root ; COMMAND=/bin/ls",
        "basic authentication failed",
        "llm usage max_tokens: 4096 tokens=1234",
        "tokenizer: bpe",
        "TokenExpirationSeconds:  3607",
        "SecretName:  db-credentials-name",
        "DB_PASSWORD:  <set to the key 'password' in secret 'db'>  Optional: false",
        "password:  <unset>",
        "PASSWORD_FILE=/run/secrets/db",
        "PASSWORD=$(FROM_VAULT)",
        "Image: registry.example/token-service:1.4.2",
        "image secret-store:8080 pulled",
        "automountServiceAccountToken: false",
        "bypass=1 compass=2",
        "--- PASS: TestLogin (0.01s)",
        "cmd=run pwd=/srv/app",
        "https://example.com/x?b=a, mail bob@example.com",
        "passwd:\n",
    ],
)
def test_what_only_mentions_a_credential_stays_readable(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.covers("A12")
@pytest.mark.parametrize(
    "text",
    [
        *("a" * 200_000, "password " * 25_000, "token:" * 40_000, "x-" * 100_000, "://" * 70_000, "{" * 200_000),
        *('secret\\"' * 30_000, "'" * 200_000 + "password='", "-----BEGIN PRIVATE KEY-----" * 8_000),
        *("secret: |\n" * 20_000, "secret: |\n" + "  x\n" * 60_000, "--token\n" * 25_000),
    ],
)
def test_redaction_is_linear_on_hostile_text(text: str) -> None:
    start = time.process_time()
    redact_text(text)
    redact_described(text)
    assert time.process_time() - start < 2


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": f'{{"env":"{CANARY}"}}',
            "other/applied": json.dumps({"kind": "Secret", "data": {"plain": CANARY}}),
            "note": f"token={CANARY}",
        },
    },
    "spec": {
        "volumes": [{"name": "s", "secret": {"secretName": "db", "items": [{"key": "password", "path": "p"}]}}],
        "imagePullSecrets": [{"name": "registry"}],
        "containers": [
            {
                "name": "app",
                "image": "token-service:1.2",
                "args": [f"--password={CANARY}", "--token", CANARY, "--port", "80"],
                "command": ["sh", "-c", f"SECRET={CANARY} exec app"],
                "env": [
                    {"name": "DB_PASSWORD", "value": CANARY},
                    {"name": "LOG_LEVEL", "value": "debug"},
                    {"name": "URL", "value": f"amqp://u:{CANARY}@mq"},
                    {"name": "OPAQUE", "value": "aB3" * 10},
                    {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                ],
            }
        ],
    },
}


def test_a_pair_of_name_and_value_is_a_variable_wherever_it_stands() -> None:
    headers = [{"name": "X-Api-Key", "value": CANARY}, {"name": "Accept", "value": "text/plain"}]
    shown = redact_object({"httpGet": {"httpHeaders": headers}})
    assert shown == {"httpGet": {"httpHeaders": [{"name": "X-Api-Key", "value": REDACTED}, headers[1]]}}


@pytest.mark.covers("A12")
def test_a_pods_values_are_hidden_and_its_shape_stays() -> None:
    shown = redact_object(POD)
    assert CANARY not in json.dumps(shown)
    assert isinstance(shown, dict)
    assert list(shown["metadata"]["annotations"]) == ["other/applied", "note"]
    container = shown["spec"]["containers"][0]
    assert container["args"] == ["--password=<redacted>", "--token", REDACTED, "--port", "80"]
    assert container["image"] == "token-service:1.2"
    assert [variable.get("value") for variable in container["env"]] == [
        REDACTED,
        "debug",
        "amqp://<redacted>@mq",
        REDACTED,
        None,
    ]
    assert container["env"][4] == POD["spec"]["containers"][0]["env"][4]  # type: ignore[index]
    assert shown["spec"]["volumes"] == POD["spec"]["volumes"]  # type: ignore[index]


@pytest.mark.covers("A12")
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda secret: secret,
        lambda secret: {"kind": "List", "items": [secret]},
        lambda secret: {"kind": "List", "items": [{"kind": "List", "items": [secret]}]},
        lambda secret: {"kind": "SecretList", "items": [{k: v for k, v in secret.items() if k != "kind"}]},
        lambda secret: {"kind": "ConfigMap", "data": {"embedded": json.dumps(secret)}},
        lambda secret: [secret],
    ],
)
def test_a_secret_keeps_its_keys_and_loses_its_values_wherever_it_stands(wrapped: object) -> None:
    secret = {
        "kind": "Secret",
        "metadata": {"name": "db"},
        "data": {"harmless": CANARY},
        "stringData": {"also-harmless": CANARY},
    }
    shown = json.dumps(redact_object(wrapped(secret)))  # type: ignore[operator]
    assert CANARY not in shown
    assert "also-harmless" in shown


@pytest.mark.covers("A12")
def test_a_config_maps_values_are_hidden_where_key_or_value_looks_like_a_credential() -> None:
    shown = redact_object(
        {
            "kind": "ConfigMap",
            "data": {
                "LOG_LEVEL": "debug",
                "password": CANARY,
                "app.properties": f"a=b\ndb.password={CANARY}\nc=d\n",
                "tls.key": CANARY,
                "dsn": f"mysql://u:{CANARY}@h/db",
                "opaque": "Xy9" * 12,
                "empty_password": "",
            },
            "binaryData": {"blob": CANARY},
        }
    )
    assert shown == {
        "kind": "ConfigMap",
        "data": {
            "LOG_LEVEL": "debug",
            "password": REDACTED,
            "app.properties": "a=b\ndb.password=<redacted>\nc=d\n",
            "tls.key": REDACTED,
            "dsn": "mysql://<redacted>@h/db",
            "opaque": REDACTED,
            "empty_password": "",
        },
        "binaryData": {"blob": REDACTED},
    }


@pytest.mark.covers("A12")
def test_a_described_pod_hides_values_over_several_lines_and_flags_with_a_value_of_their_own() -> None:
    described = """\
Name:         web
Containers:
  app:
    Image:  token-service:1.2
    Args:
      --token
      CANARY-9f2b
      --port
      80
    Environment:
      DB_PASSWORD:  CANARY-9f2b
                    CANARY-9f2b second line
      PEM:          -----BEGIN PRIVATE KEY-----
                    CANARY-9f2b
                    -----END PRIVATE KEY-----
      LOG_LEVEL:    debug
      OPAQUE:       aB3aB3aB3aB3aB3aB3aB3aB3aB3
      LATE:         <set to the key 'password' in secret 'db'>  Optional: false
Events:
  Warning  BackOff  token=CANARY-9f2b  back-off restarting
"""
    shown = redact_described(described)
    assert CANARY not in shown
    assert "aB3aB3" not in shown
    for kept in (
        "Image:  token-service:1.2",
        "--token\n      <redacted>\n      --port\n      80",
        "LOG_LEVEL:    debug",
    ):
        assert kept in shown
    assert "secret 'db'>  Optional: false" in shown
    assert shown.endswith("back-off restarting\n")


@pytest.mark.covers("A12")
def test_a_described_config_map_hides_whole_entries() -> None:
    described = """\
Name:         app

Data
====
app.conf:
----
a=b
token=CANARY-9f2b

password:
----
CANARY-9f2b
Events:  CANARY-9f2b is still the value

tls.key:
----
CANARY-9f2b

zone:
----
eu

BinaryData
====
blob: 3 bytes

Events:  <none>
"""
    shown = redact_described(described)
    assert CANARY not in shown
    assert "a=b\ntoken=<redacted>" in shown
    assert "password:\n----\n<redacted>\ntls.key:\n----\n<redacted>\nzone:\n----\neu\n" in shown
    assert shown.endswith("blob: 3 bytes\n\nEvents:  <none>\n")


YAML_VALUES = [
    *("", "a", "yes", "No", "on", "1", "1.5", "1e3", "0x1f", "null", "~", "true", "2026-01-01", "12:30:45", ".inf"),
    *("a: b", "- x", "#c", "a #b", "=", "!x", "&a", "*b", "@x", "%y", "{", "<<", "-", "?", "a:", "true ", " a", "a  b"),
    *(
        "x\ny",
        "x\n",
        "\nx",
        "x\n\n",
        "  lead\nx",
        "a\n  b\n\nc",
        "x\n ",
        "tab\tx",
        "a\rb",
        "\x00",
        "\u2028x\ny",
        "\x85",
    ),
    *("é", "/x/y", "nginx:1.2", 'quote"d', "it's", "\ufeffx", "back\\slash"),
]


@pytest.mark.parametrize("value", YAML_VALUES)
def test_every_string_reads_back_from_yaml_unchanged(value: str) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML, which comes with langgraph, reads the YAML back")
    nested = {
        "key": value,
        value: [value, {"a": value, "b": [value]}, [value], []],
        "empty": {},
        "n": [1, 2.5, None, True],
    }
    assert yaml.safe_load(to_yaml(nested)) == nested
    assert yaml.safe_load(to_yaml([nested, value])) == [nested, value]
    assert yaml.safe_load(to_yaml(value)) == value


def test_yaml_looks_as_kubectl_writes_it() -> None:
    value = {"kind": "Pod", "spec": {"containers": [{"args": ["-c", "a\nb"], "name": "app"}], "x": "1", "labels": {}}}
    assert to_yaml(value) == (
        'kind: Pod\nspec:\n  containers:\n  - args:\n    - "-c"\n    - |-\n      a\n      b\n    name: app\n'
        '  x: "1"\n  labels: {}\n'
    )
