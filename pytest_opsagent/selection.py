"""Keeps bad lines among the selected items when `-m` is given: nobody can mark a line that cannot be read."""

import pytest

from pytest_opsagent.collect import BadLineItem
from pytest_opsagent.state import STATE

HIDDEN = pytest.StashKey["dict[pytest.Item, int]"]()
"""Places of all items, while bad lines are kept out of the way of `-m`."""


def hide_bad_lines(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take bad lines out of `items` if there is an `-m` expression, after `-k` and `--deselect` had their say."""
    if not config.option.markexpr or not config.stash[STATE].bad_lines:
        return
    bad = [item for item in items if _is_bad(item)]
    _deselect_without_marks(config, bad)
    config.stash[HIDDEN] = {item: place for place, item in enumerate(items) if item in bad or not _is_bad(item)}
    items[:] = [item for item in items if not _is_bad(item)]


def _is_bad(item: pytest.Item) -> bool:
    return isinstance(item, BadLineItem)


def _deselect_without_marks(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let pytest's own hooks for `-k` and `--deselect` work on `items` alone."""
    expression, config.option.markexpr = config.option.markexpr, ""
    try:
        for name in ("mark", "main"):
            plugin = config.pluginmanager.get_plugin(name)
            if plugin is not None:
                plugin.pytest_collection_modifyitems(items=items, config=config)
    finally:
        config.option.markexpr = expression


def show_bad_lines(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the hidden bad lines back, each before the first item that stood behind it."""
    places = config.stash.get(HIDDEN, {})
    for bad in filter(_is_bad, places):
        behind = (at for at, item in enumerate(items) if places.get(item, -1) > places[bad])
        items.insert(next(behind, len(items)), bad)
    config.stash[HIDDEN] = {}
