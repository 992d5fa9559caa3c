"""A GitHub in memory that answers REST requests as the real one does, as far as the client here asks it."""
