"""The prompts: one Markdown file each, loaded once."""

from __future__ import annotations

from functools import cache
from importlib import resources
from string import Template


@cache
def load_prompt(name: str) -> Template:
    """Return the prompt ``<name>.md``; its placeholders are written ``$name``.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    return Template(resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8"))


def fill(name: str, **values: object) -> str:
    """Return the text of a prompt with each placeholder replaced; a ``$`` within a value stays as it is.

    Raises:
        KeyError: the values are not exactly the prompt's placeholders.
    """
    template = load_prompt(name)
    placeholders = set(template.get_identifiers())
    if placeholders != values.keys():
        wrong = ", ".join(sorted(placeholders ^ values.keys()))
        raise KeyError(f"prompt {name!r}: placeholders and values differ in {wrong}")
    return template.substitute(values)
