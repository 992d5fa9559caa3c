"""Importing what the configuration names as `module:attribute`."""

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp_ops.text import one_line


class SetupError(Exception):
    """The run cannot begin. The message is one sentence that names the setting.

    Args:
        message: The sentence.
        plain: The sentence without what somebody else's code or server said, if it says something of that.
    """

    def __init__(self, message: str, *, plain: str | None = None) -> None:
        super().__init__(message)
        self.plain = message if plain is None else plain


def load(setting: str, named: str, rootdir: Path) -> Callable[..., Any]:
    """Return the callable that `module:attribute` names; modules are also looked for in the root folder.

    Args:
        setting: What the sentence of an error begins with, such as `server 'web'`.
        named: `module:attribute`.
        rootdir: Searched after everything else that Python searches.

    Raises:
        SetupError: There is no such module or attribute, or the module cannot be imported.
    """
    module_name, _, attribute = named.partition(":")
    if not module_name or not attribute:
        raise SetupError(f"{setting}: {named!r} is not of the form module:callable")
    if str(rootdir) not in sys.path:
        sys.path.append(str(rootdir))
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        plain = f"{setting}: {named} cannot be loaded"
        raise SetupError(f"{plain}: {described(error)}", plain=plain) from error
    if not callable(found):
        raise SetupError(f"{setting}: {named} is not callable")
    return found  # type: ignore[no-any-return]


async def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, and await what it returns if that can be awaited."""
    result = function(*arguments)
    return await result if inspect.isawaitable(result) else result


def described(error: BaseException) -> str:
    """Return an exception as half a sentence on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = one_line(str(error), 300)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
