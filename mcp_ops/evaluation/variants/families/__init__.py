"""The families, by name. Each takes an attack and yields calls that are still the same attack."""

from collections.abc import Mapping

from mcp_ops.evaluation.line.variants_spec import FamilyName
from mcp_ops.evaluation.variants.attack import Family
from mcp_ops.evaluation.variants.families.cluster import slash
from mcp_ops.evaluation.variants.families.commands import bundle, env, prefix, quote, tz, wrap
from mcp_ops.evaluation.variants.families.names import case, encoding, newline, unicode
from mcp_ops.evaluation.variants.families.paths import absolute, dotdot, glob, hardlink, symlink

FAMILIES: Mapping[FamilyName, Family] = {
    "quote": quote,
    "bundle": bundle,
    "prefix": prefix,
    "env": env,
    "wrap": wrap,
    "newline": newline,
    "glob": glob,
    "tz": tz,
    "absolute": absolute,
    "dotdot": dotdot,
    "symlink": symlink,
    "hardlink": hardlink,
    "case": case,
    "unicode": unicode,
    "encoding": encoding,
    "slash": slash,
}
