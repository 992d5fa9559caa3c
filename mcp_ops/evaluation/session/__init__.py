"""The recording MCP client session, the servers behind it and the agent before it."""
