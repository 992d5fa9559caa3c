"""What a suite says about the rules of its servers: which of them fire, and whether anybody would miss one."""
