"""`mcp-ops schema`."""

import argparse
import json
import sys

from mcp_ops.evaluation.line.scenario import json_schema


def run(_: argparse.Namespace) -> int:
    """Print the JSON Schema of a scenario line."""
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
    return 0
