"""The paths that a line names: relative, in their plain form, and beneath a folder."""

from mcp_ops.evaluation.line.line_model import fault
from mcp_ops.evaluation.wording import shown

MAX_DEPTH = 40
"""Most parts of a path."""
MAX_NAME_BYTES = 255


def check_beneath(path: str) -> str | None:
    """Return why a path does not stay beneath its folder, as the rest of a sentence, or None."""
    if path.startswith("/") or path[1:3] in (":\\", ":/"):
        return "is an absolute path, and a line names none; write it relative"
    if ".." in path.split("/"):
        return "leads out by ..; write a path that stays inside"
    if "\x00" in path:
        return "holds a NUL character; leave it out"
    if path == "" or path != "/".join(part for part in path.split("/") if part not in ("", ".")):
        return "is not in its plain form; write it without empty parts, . or a slash at the end"
    if len(path.split("/")) > MAX_DEPTH:
        return f"has more than {MAX_DEPTH} parts; write a shorter path"
    if any(len(part.encode("utf-8", "replace")) > MAX_NAME_BYTES for part in path.split("/")):
        return f"has a part of more than {MAX_NAME_BYTES} bytes; write a shorter name"
    return None


def workspace_path(path: str) -> str:
    """Return the path of a workspace, which may be the folder itself.

    Raises:
        PydanticCustomError: It is none.
    """
    return path if path == "." else _looked_for(path, "a folder's")


def state_path(path: str) -> str:
    """Return the path of a JSON file.

    Raises:
        PydanticCustomError: It is none.
    """
    if not path.endswith(".json"):
        raise fault(f"{shown(path)} is no JSON file; write a name that ends in .json")
    return _looked_for(path, "a file's")


def planted_path(path: str) -> str:
    """Return the path of a planted file.

    Raises:
        PydanticCustomError: It is none.
    """
    reason = check_beneath(path)
    if reason is not None:
        raise fault(reason, at_key=True)
    return path


def _looked_for(path: str, whose: str) -> str:
    reason = check_beneath(path)
    if reason is None and (path.startswith("~") or "$" in path or "://" in path or "\\" in path):
        reason = f"is not {whose} relative path: a line names no home folder, environment variable or URL"
    if reason is not None:
        raise fault(f"{shown(path)} {reason}")
    return path
