"""Nothing is configured here: pytest finds the plugin by its entry point, and the options stand in pyproject.toml."""
