"""What a server offers for reading by address. A read takes the road of a call; a refusal is an MCP error."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import mcp_types

from mcp_ops.gate.choke import decide_and_run
from mcp_ops.gate.failure import failure
from mcp_ops.gate.reply import Hide, Result, shown, stopped
from mcp_ops.gate.rules import RESOURCE_UNKNOWN, TOOL_ERROR, Refuse
from mcp_ops.gate.tool import A, C, Guarded, P
from mcp_ops.text import clean_value, one_line

MAX_RESOURCE_BYTES = 65536
"""Most bytes of UTF-8 in a resource's text. JSON that is too long fails whole: a part of it is no JSON."""

K = TypeVar("K")

_SLOT = re.compile(r"\{([a-z_]+)\}")


def _nothing(_: Any) -> Sequence[Mapping[str, str]]:
    return ()


@dataclass(frozen=True)
class Resource(Guarded[A, C, P]):
    """One address, or all addresses of one form. Its runner's `data` is sent as JSON, and nothing of its text."""

    uri: str = ""
    """`devops://watchlist`, or a form with slots, `github://repo/{owner}/{repo}`. The slots are the arguments."""
    listed: Callable[[C], Sequence[Mapping[str, str]]] = _nothing
    """What to fill into the slots for those addresses that are listed one by one."""

    @property
    def is_template(self) -> bool:
        """Whether it stands for several addresses."""
        return _SLOT.search(self.uri) is not None

    def slots_of(self, uri: str) -> dict[str, str] | None:
        """Return what stands in the slots of an address, as it is written; None for an address of another form."""
        found = self._form.fullmatch(uri)
        return None if found is None else found.groupdict()

    def addresses(self, context: C) -> Sequence[str]:
        """Return the addresses that are listed one by one."""
        if not self.is_template:
            return (self.uri,)
        return [self.uri.format_map(slots) for slots in self.listed(context)]

    @cached_property
    def _form(self) -> re.Pattern[str]:
        parts = _SLOT.split(self.uri)
        return re.compile("".join(f"(?P<{part}>[^/]*)" if at % 2 else re.escape(part) for at, part in enumerate(parts)))


def list_resources(resources: Sequence[Resource[Any, K, Any]], context: K) -> mcp_types.ListResourcesResult:
    """Return every address that is listed one by one."""
    listed = [
        mcp_types.Resource(
            name=resource.name if uri == resource.uri else uri.partition("://")[2],
            uri=uri,
            description=resource.description,
            mime_type="application/json",
        )
        for resource in resources
        for uri in resource.addresses(context)
    ]
    return mcp_types.ListResourcesResult(resources=listed)


def list_templates(resources: Sequence[Resource[Any, Any, Any]]) -> mcp_types.ListResourceTemplatesResult:
    """Return every form of addresses."""
    templates = [
        mcp_types.ResourceTemplate(
            name=resource.name,
            uri_template=resource.uri,
            description=resource.description,
            mime_type="application/json",
        )
        for resource in resources
        if resource.is_template
    ]
    return mcp_types.ListResourceTemplatesResult(resource_templates=templates)


async def read_resource(
    resources: Sequence[Resource[Any, K, Any]], uri: str, context: K, *, refuse: Refuse, hide: Hide
) -> mcp_types.ReadResourceResult:
    """Answer one read.

    Raises:
        MCPError: It was refused or failed; the message is the sentence that a call would say.
    """
    for resource in resources:
        slots = resource.slots_of(uri)
        if slots is not None:
            result = await decide_and_run(resource, slots, context, refuse)
            break
    else:
        known = ", ".join(resource.uri for resource in resources)
        result = stopped(RESOURCE_UNKNOWN, f"there is no resource {one_line(uri, 80)!r}; there are {known}")
    if result.rule is not None:
        raise failure(result, result.rule, hide)
    text = _as_json(result, hide)
    if len(text.encode()) > MAX_RESOURCE_BYTES:
        raise failure(stopped(TOOL_ERROR, f"the resource is over {MAX_RESOURCE_BYTES} bytes"), TOOL_ERROR, hide)
    contents = mcp_types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
    return mcp_types.ReadResourceResult(contents=[contents])


def _as_json(result: Result, hide: Hide) -> str:
    data = hide(clean_value(result.data)) if result.data else {"note": shown(result, MAX_RESOURCE_BYTES, hide).text}
    return json.dumps(data, ensure_ascii=False)
