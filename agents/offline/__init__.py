"""The deterministic agent of each role, used when no model is configured."""
