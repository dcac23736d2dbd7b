"""Serving a workspace to others: tools of the Model Context Protocol, and who may see what."""
