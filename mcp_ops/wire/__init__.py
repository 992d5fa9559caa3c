"""What every HTTP client here has to get right: where a credential may go, and how long it is asked to wait.

This package knows no other part of the project.
"""

from mcp_ops.wire.address import base_address, is_loopback
from mcp_ops.wire.waits import retry_after

__all__ = ["base_address", "is_loopback", "retry_after"]
