"""The documented path of `workflows.access.identity`."""

from workflows.access.identity import Identity, Keyring

__all__ = ["Identity", "Keyring"]
