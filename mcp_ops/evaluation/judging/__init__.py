"""From a scenario and what was observed to the problems that a report shows."""
