"""What an operator added to the guards of the ops server, read once a version of the file."""

from functools import lru_cache
from pathlib import Path

from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.session.loading import SetupError
from mcp_ops.servers.ops import BadExtension, Extension, load_extension


def extension_of(config: RunConfig) -> Extension | None:
    """Return what the configuration adds to the guards' tables, or None.

    Raises:
        SetupError: The file cannot be used.
    """
    if config.guards is None:
        return None
    try:
        status = config.guards.stat()
        return _loaded(config.guards, (status.st_mtime_ns, status.st_size))
    except (BadExtension, OSError) as error:
        sentence = error.strerror if isinstance(error, OSError) else None
        raise SetupError(f"{config.guards}: cannot be read: {sentence}" if sentence else str(error)) from None


@lru_cache(maxsize=8)
def _loaded(path: Path, _version: tuple[int, int]) -> Extension:
    return load_extension(path)
