"""Copies of workspaces, made once and made anew when a run changed them."""
