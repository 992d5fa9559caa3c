"""What the pages of this package have in common: templates that let no text act, and one style that the page allows.

What a template prints goes through `clean`, then through escaping, whatever it is. A page has no script; its content
security policy allows the hash of its own style and nothing else.
"""

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mcp_ops.text import one_line
from mcp_ops.trace.markup import counted, inert


def environment(package: str) -> Environment:
    """Return the environment of the templates in the folder `templates` of a package, and of those of this one.

    `head.html` wants `title`, `style` and `style_hash`.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("mcp_ops.trace")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
        auto_reload=False,
    )
    made.filters.update(short=one_line, counted=counted)
    return made


def _finalize(value: Any) -> Any:
    """What is markup was made by this package or is its style; every other text came from outside."""
    if type(value) is Markup:
        return value
    return inert(value) if isinstance(value, str) else value


@cache
def packed_style(*sheets: str) -> Markup:
    """Return style sheets, packed. Each is named by its package and file: `mcp_ops.trace/page.css`."""
    source = "".join(_sheet(*sheet.split("/")) for sheet in sheets)
    packed = re.sub(r"\s*([{}:;,>])\s+|\s+(?=[{}>])", r"\1", re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL))
    return Markup(packed.strip())  # noqa: S704 -- files of this package


def _sheet(package: str, name: str) -> str:
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


@cache
def style_hash(style: str) -> str:
    """Return the hash by which a content security policy allows a style."""
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
