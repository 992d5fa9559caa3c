"""Comparing what was expected with what was seen: values, calls, and calls in an order."""
