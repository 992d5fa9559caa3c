"""An answer as it came over the wire, in a form whose repr gives nothing of it away."""

from dataclasses import dataclass, field

import httpx


@dataclass(frozen=True)
class Answer:
    """One answer. What the other side wrote is kept out of the repr, since an error's frames may be shown."""

    status: int
    headers: httpx.Headers = field(repr=False)
    body: bytes = field(repr=False)
    """Everything, or the end of it when only the end was wanted."""
    length: int
    """Bytes that were read."""
    complete: bool
    """Whether it was read to its end."""

    @property
    def link(self) -> str:
        """The `Link` header."""
        return str(self.headers.get("link", ""))


async def read_answer(response: httpx.Response, *, max_bytes: int, keep: int | None = None) -> Answer:
    """Read a streamed answer.

    Args:
        response: Nothing of its body was read yet.
        max_bytes: No more is read.
        keep: Keep only so many bytes of its end; None for all.
    """
    data, length = bytearray(), 0
    async for chunk in response.aiter_raw():
        wanted = chunk[: max_bytes + 1 - length]
        length += len(wanted)
        data += wanted
        if keep is not None and len(data) > 2 * keep + 65536:
            del data[:-keep]
        if length > max_bytes:
            break
    body = bytes(data if keep is None else data[max(0, len(data) - keep) :])
    return Answer(response.status_code, response.headers, body, min(length, max_bytes), length <= max_bytes)
