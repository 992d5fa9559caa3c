"""`python -m mcp_ops.cli` is `mcp-ops`, where the script is not on PATH."""

import sys

from mcp_ops.cli import main

sys.exit(main())
