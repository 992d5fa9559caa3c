"""What an agent may do beside asking its model: each a policy by itself."""
