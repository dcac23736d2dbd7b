"""The prompts: one Markdown file each, loaded once."""
