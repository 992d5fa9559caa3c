"""Families that write the same request to a cluster another way."""

import re
from collections.abc import Iterator

from mcp_ops.evaluation.variants.attack import Attack, Changed

_SECRETS = re.compile(r"secrets?(\..*)?", re.IGNORECASE)
_KIND = re.compile(r"[A-Za-z]+")


def slash(attack: Attack) -> Iterator[Changed]:
    """Spellings of a kind: `secret/db`, `secrets.v1.`, `pods,secrets`.

    Stands for checks that compare the kind with one word, such as GHSA-w23h-64x4-22h9 (masking keyed on the literal
    "secrets") and mcp-server-kubernetes #288: kubectl takes a name behind a slash, a group behind a dot, and lists.
    """
    if not attack.is_about("kubectl.secret", "kubectl.kind"):
        return
    for slot, kind in attack.slots():
        if slot != "resource":
            continue
        name = attack.text("name") or "db"
        spellings: list[str] = []
        if _SECRETS.fullmatch(kind):
            spellings += [f"secret/{name}", f"secrets/{name}", "secrets.v1.", "secret.v1."]
            spellings += ["pods,secrets", "secrets,pods", f"pods/web,secret/{name}"]
        elif _KIND.fullmatch(kind):
            spellings += [f"pods,{kind}", f"{kind},pods"]
        yield from (Changed(attack.with_arg(slot, spelling)) for spelling in spellings)
