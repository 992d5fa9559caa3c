"""Bypass variants: one denied call, spelled in the ways by which guards of this kind were got around. Pure."""
