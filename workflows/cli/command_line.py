"""The command line before it is read: options of every command in front, and earlier names in those of today."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

_EVERYWHERE = {"--json": False, "--workspace": True, "-w": True}
"""The options of every command, and whether a value follows."""

_COMMANDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("stats",): ("show", "contents"),
    ("edges",): ("show", "edges"),
    ("provenance",): ("show", "passage"),
    ("versions",): ("show", "document"),
    ("reembed",): ("doctor", "--reembed"),
    ("record", "join"): ("doctor", "--join-record"),
    ("record", "move"): ("doctor", "--move-record"),
    ("mcp",): ("serve", "mcp"),
    ("key",): ("serve", "key"),
    ("forget",): ("history", "forget"),
    ("feedback",): ("tune", "mark"),
    ("compare",): ("eval", "compare"),
    ("export", "matrices"): ("graph", "export", "--format", "matrices"),
    ("review",): ("correct", "review"),
    ("correct", "apart"): ("correct", "split"),
    ("correct", "change"): ("correct", "fact"),
    ("correct", "drop"): ("correct", "fact", "--drop"),
    ("correct", "pin"): ("correct", "fact"),
    ("correct", "export"): ("correct", "list", "--out"),
    ("discover",): ("graph", "documents", "--next"),
    ("graph", "search"): ("graph", "documents"),
    ("graph", "evaluate"): ("graph", "prune"),
    ("graph", "restore"): ("graph", "prune", "--restore"),
    ("graph", "publish"): ("graph", "export"),
}
"""Commands of the release before, which work for one more."""

_OPTIONS: Mapping[tuple[str, ...], Mapping[str, str | None]] = {
    ("correct", "pin"): {"--passage": "--pin"},
}
"""Options of earlier commands that have another name, or none where the value alone is meant."""

_SETTINGS = {
    **{
        f"--{name.replace('_', '-')}": name
        for name in (
            "preset",
            "engine",
            "alpha",
            "n",
            "question_s",
            "max_model_calls",
            "max_model_tokens",
            "chunk_tokens",
            "chunk_overlap",
            "concurrency",
            "requests_per_minute",
            "passage_classes",
            "price_in",
            "price_out",
            "dated",
        )
    },
    "--source": "provenance.source",
    "--newer-than": "provenance.newer_than",
}
_SWITCHES = {
    "--check-claims": "check_claims=true",
    "--no-check-claims": "check_claims=false",
    "--personalise": "personalise=true",
    "--impersonal": "personalise=false",
    "--cited-before": "provenance.cited_before=true",
    "--keep-versions": "keep_versions=true",
    "--no-versions": "keep_versions=false",
    "--relationships": "relationships=true",
    "--no-relationships": "relationships=false",
}
_OF_SETTINGS = {"ask", "chat", "batch", "index", "sync"}
"""Commands whose earlier options are settings."""

_KEPT = {"batch": {"--concurrency"}}
"""Options of a command that no setting replaced."""


def options_first(args: Sequence[str]) -> list[str]:
    """Return a command line with the options of every command in front; what follows "--" stays where it is."""
    first: list[str] = []
    rest: list[str] = []
    words = iter(args)
    for word in words:
        name, has_value, _ = word.partition("=")
        if word == "--":
            return [*first, *rest, word, *words]
        if name not in _EVERYWHERE and not (word.startswith("-w") and not word.startswith("--")):
            rest.append(word)
            continue
        first.append(word)
        if _EVERYWHERE.get(name, False) and not has_value:
            first += [value for value in (next(words, None),) if value is not None]
    return [*first, *rest]


def in_present_names(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line in the names of today, and what to tell of each earlier name in it."""
    ordered = options_first(args)
    start = _first_word(ordered)
    notices: list[str] = []
    for length in (2, 1):
        earlier = tuple(ordered[start : start + length])
        if len(earlier) == length and (present := _COMMANDS.get(earlier)):
            renamed = _OPTIONS.get(earlier, {})
            behind = [name for word in ordered[start + length :] if (name := renamed.get(word, word)) is not None]
            if earlier[0] == "record" and behind and not behind[0].startswith("-"):
                behind.insert(0, "--record")
            ordered[start:] = [*present, *behind]
            notices.append(f"`mara {' '.join(earlier)}` is now `mara {' '.join(present)}`")
            break
    if start < len(ordered) and ordered[start] in _OF_SETTINGS:
        ordered, more = _with_settings(ordered, ordered[start])
        notices += more
    lines = [f"{line}; the earlier name goes with the next release" for line in dict.fromkeys(notices)]
    return ordered, lines


def _first_word(args: Sequence[str]) -> int:
    """Return the place of the command behind the options of every command."""
    place = 0
    while place < len(args) and args[place].startswith("-") and args[place] != "--":
        name, has_value, _ = args[place].partition("=")
        place += 2 if _EVERYWHERE.get(name, False) and not has_value else 1
    return place


def _with_settings(args: Sequence[str], command: str) -> tuple[list[str], list[str]]:
    arguments: list[str] = []
    notices: list[str] = []
    remembered: list[str] = []
    words = iter(args)
    for word in words:
        name, has_value, value = word.partition("=")
        if word == "--":
            return [*arguments, word, *words], notices
        if name == "--remember":
            part = value if has_value else next(words, "")
            remembered += [part] if part != "nothing" else []
            setting = f"remember={json.dumps(remembered)}"
        elif name in _SWITCHES:
            setting = _SWITCHES[name]
        elif name in _SETTINGS and name not in _KEPT.get(command, frozenset()):
            setting = f"{_SETTINGS[name]}={value if has_value else next(words, '')}"
        else:
            arguments.append(word)
            continue
        arguments += ["--set", setting]
        notices.append(f"`{name}` is now `--set {setting.partition('=')[0]}=...`")
    return arguments, notices
