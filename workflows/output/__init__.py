"""Text and pictures for a reader: printable text, Markdown, plots."""
