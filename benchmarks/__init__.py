"""Speed and quality, each one command."""
