"""Text for a reader: printable text, quotes, Markdown."""
