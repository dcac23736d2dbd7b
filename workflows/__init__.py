"""The LangGraph state machines and the ways to run them."""
