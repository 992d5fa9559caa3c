"""The rules of files, search and cluster. Those of the shell stand beside their guard."""

from mcp_ops.gate import Rule, State

PATH_OUTSIDE = Rule(
    "path.outside",
    State.DENIED,
    "The path leads outside the workspace: absolute, `..`, `~`, /proc, a link that leads out, or an embedded NUL.",
    "Name a path relative to the workspace root, without '..' and without '~'.",
    stands_for=(
        "Confinement by prefix, by looks or by a path that was resolved earlier: [cli-mcp-server "
        "#21](https://github.com/MladenSU/cli-mcp-server/issues/21) (CVE-2026-25871: `ls ..`), [servers "
        "#1845](https://github.com/modelcontextprotocol/servers/issues/1845) (GHSA-q66q-fx2p-7w4m: links), "
        "[DesktopCommanderMCP #219](https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/219)."
    ),
    limits=(
        "A mount or a bind mount inside the workspace, and hard links (`path.hardlink`). `..` is refused "
        "where it would stay inside, too. Between the check and the start of a child a folder can be "
        "exchanged: there the second wall counts."
    ),
)
PATH_SECRET = Rule(
    "path.secret",
    State.DENIED,
    "The path, as given or once its links are resolved, has the name of a secret file or lies in a secret folder.",
    "Secret files cannot be opened; listing their names with ls or find is allowed.",
    stands_for=(
        "An assistant that reads `.env` because it stands in the workspace; a recursion or a glob that names "
        "no file and reads all of them."
    ),
    limits=(
        "A secret under an ordinary name, such as a password in `notes.md`, or `.docker/config.json`. Names, "
        "sizes and times of secret files can be listed."
    ),
)
PATH_SPECIAL = Rule(
    "path.special",
    State.DENIED,
    "The path is a FIFO, a device or a socket.",
    "Only regular files can be read.",
    stands_for="A FIFO that never answers, a device that never ends.",
    limits="A regular file that grows while it is read: that is cut by the limits of time and output.",
)
PATH_HARDLINK = Rule(
    "path.hardlink",
    State.DENIED,
    "The file has a second name (a hard link), which may lie outside the workspace.",
    "Read another file, or ask the operator to start the server with allow_hardlinks.",
    stands_for="A second name for an outside file, which no look at the path can tell from an inside one.",
    limits="Files that the operator lets through with `allow_hardlinks`.",
)
PATH_TOO_LARGE = Rule(
    "path.too_large",
    State.DENIED,
    "The file is over 64 MB and the program would read all of it.",
    "Read a part of it with head, tail, grep or read_file.",
    stands_for="A sparse file of gigabytes that fills memory or time.",
    limits="Many files below the limit; the limits of time, memory and output count there.",
)
PATH_NOT_FOUND = Rule(
    "path.not_found",
    State.FAILED,
    "There is no such file in the workspace, or the server may not read it.",
    "List the folder with run_shell `ls` or look for the name with `find . -name 'NAME'`.",
)
PATH_IS_DIRECTORY = Rule(
    "path.is_directory",
    State.FAILED,
    "The path is a folder where a file is needed.",
    "List it with run_shell `ls FOLDER`, then name a file in it.",
)
PATH_BINARY = Rule(
    "path.binary",
    State.FAILED,
    "The file is not text.",
    "Use run_shell `stat FILE` for its size and times; its content cannot be shown.",
)

SEARCH_PATTERN = Rule(
    "search.pattern",
    State.DENIED,
    "The regular expression is not valid RE2, or too large.",
    "RE2 syntax: no back-references and no look-around; escape a literal bracket as `\\[`.",
    stands_for=(
        "A model's pattern in a backtracking engine: [code-index-mcp "
        "#84](https://github.com/johnhuang316/code-index-mcp/issues/84)."
    ),
    limits="A valid pattern that fits too much: the reply is cut.",
)
SEARCH_GLOB = Rule(
    "search.glob",
    State.DENIED,
    "The glob is absolute, holds `..` or `~`, or is malformed.",
    "Name files relative to the workspace root, such as `**/*.md` or `logs/*.log`.",
    stands_for="Glob functions that walk out of their root: Python's `Path.glob('../x')` does.",
    limits="Which names the glob shows inside: secret files are left out by `path.secret`.",
)

KUBECTL_KIND = Rule(
    "kubectl.kind",
    State.DENIED,
    "The resource is not one of the kinds that can be read, or is not one plain kind.",
    "Name one kind, such as pods, deployments, services, events, configmaps or nodes; a name goes into `name`.",
    stands_for="A free text in the place of a kind: a list, a path, a flag, `all`.",
    limits="What an allowed kind holds: values are redacted, and only where name or value looks like a credential.",
)
KUBECTL_SECRET = Rule(
    "kubectl.secret",
    State.DENIED,
    "The resource is Secrets, in any spelling and in any list; they cannot be read.",
    "Describe the pod or deployment to see which secret it refers to; the value stays hidden.",
    stands_for=(
        "Masking that depends on one spelling, or that one tool of several has: [mcp-server-kubernetes "
        "#330](https://github.com/Flux159/mcp-server-kubernetes/pull/330) (GHSA-w23h-64x4-22h9: "
        "`secret/name`), [mcp #2942](https://github.com/awslabs/mcp/issues/2942)."
    ),
    limits=(
        "A secret that somebody wrote into a ConfigMap, an argument or a log line under an innocent name. "
        "RBAC without `secrets` is the real wall."
    ),
)
KUBECTL_NAME = Rule(
    "kubectl.name",
    State.DENIED,
    "The name is not the name of one object (DNS-1123: lower case, digits, '-', '.', at most 253 characters).",
    "Take a name from kubectl_get, without a kind in front and without flags.",
    stands_for=(
        "Argument injection through a positional slot: [mcp-server-kubernetes "
        "#328](https://github.com/Flux159/mcp-server-kubernetes/issues/328) (a name `--server=…` sends the "
        "operator's token away)."
    ),
    limits="An object that exists and should not be read: that is RBAC's.",
)
KUBECTL_NAMESPACE = Rule(
    "kubectl.namespace",
    State.DENIED,
    "The namespace is not the name of one namespace (DNS-1123 label: lower case, digits, '-', at most 63 characters).",
    "Take a namespace from kubectl_get with resource=namespaces.",
    stands_for=(
        "A command line that is put together as text and split at spaces: [mcp-server-kubernetes "
        "#305](https://github.com/Flux159/mcp-server-kubernetes/pull/305)."
    ),
    limits="Another namespace that the account may read.",
)
KUBECTL_OUTPUT = Rule(
    "kubectl.output",
    State.DENIED,
    "The output format is not one of default, wide, name, json, yaml.",
    "Use default, wide, name, json or yaml.",
    stands_for=(
        "`-o go-template-file=PATH`, which prints a local file through kubectl, and templates that reach "
        "single secret values."
    ),
    limits="What the five allowed formats show.",
)

CLUSTER_UNAVAILABLE = Rule(
    "cluster.unavailable",
    State.UNAVAILABLE,
    "No cluster is configured, or its API server does not answer.",
    "Go on without the cluster and say that it could not be asked.",
)
CLUSTER_KUBECTL_MISSING = Rule(
    "cluster.kubectl_missing",
    State.UNAVAILABLE,
    "The kubectl program is not installed on the server's machine.",
    "Go on without the cluster and say that kubectl is missing.",
)
CLUSTER_KUBECONFIG_MISSING = Rule(
    "cluster.kubeconfig_missing",
    State.UNAVAILABLE,
    "The kubeconfig that the operator named is not there or is not a kubeconfig.",
    "Go on without the cluster and say that its configuration is missing.",
)
CLUSTER_CONTEXT_MISSING = Rule(
    "cluster.context_missing",
    State.UNAVAILABLE,
    "The kubeconfig has no such context, or names none.",
    "Go on without the cluster and say that its context is missing.",
)
CLUSTER_UNAUTHORIZED = Rule(
    "cluster.unauthorized",
    State.FAILED,
    "The API server does not accept the credential (401), for instance an expired token.",
    "Say that the credential was refused; no tool can renew it.",
)
CLUSTER_FORBIDDEN = Rule(
    "cluster.forbidden",
    State.FAILED,
    "The API server knows the account and does not let it read this (403).",
    "Ask for another kind or namespace, or say which permission is missing.",
)
CLUSTER_NOT_FOUND = Rule(
    "cluster.not_found",
    State.FAILED,
    "The cluster has no such object, kind or container (404).",
    "List what is there with kubectl_get, without a name.",
)
CLUSTER_TLS = Rule(
    "cluster.tls",
    State.FAILED,
    "The connection to the API server could not be trusted (TLS).",
    "Say that the server's certificate was refused; no tool can change that.",
)
CLUSTER_ERROR = Rule(
    "cluster.error",
    State.FAILED,
    "The API server itself failed at this request (500).",
    "Ask for one object by name, or for another kind; if that fails too, say that the API server is not well.",
)

PATH_RULES = (
    PATH_OUTSIDE,
    PATH_SECRET,
    PATH_SPECIAL,
    PATH_HARDLINK,
    PATH_TOO_LARGE,
    PATH_NOT_FOUND,
    PATH_IS_DIRECTORY,
    PATH_BINARY,
)
SEARCH_RULES = (SEARCH_PATTERN, SEARCH_GLOB)
KUBECTL_RULES = (KUBECTL_KIND, KUBECTL_SECRET, KUBECTL_NAME, KUBECTL_NAMESPACE, KUBECTL_OUTPUT)
CLUSTER_RULES = (
    CLUSTER_UNAVAILABLE,
    CLUSTER_KUBECTL_MISSING,
    CLUSTER_KUBECONFIG_MISSING,
    CLUSTER_CONTEXT_MISSING,
    CLUSTER_UNAUTHORIZED,
    CLUSTER_FORBIDDEN,
    CLUSTER_NOT_FOUND,
    CLUSTER_TLS,
    CLUSTER_ERROR,
)

RULES = (*PATH_RULES, *SEARCH_RULES, *KUBECTL_RULES, *CLUSTER_RULES)
"""Every rule of this module; the shell's are `mcp_ops.ops.guards.shell.rules.RULES`."""
