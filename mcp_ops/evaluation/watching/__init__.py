"""Proof from the world's side: witnesses, canaries, and the network of this process."""
