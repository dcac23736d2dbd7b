"""A page to talk to a workspace: its conversations, its answers as they come, and what is behind them."""
