from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from importlib import resources
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from graph.relations import relation_words
from tests.workflows.explanation.made_up import explanation, without_walk
from tests.workflows.explanation.page_colours import page_colours
from workflows.explanation.page import dashes, render_page

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '<img src=x onerror="alert(1)">',
    "]]>'\"`${alert(1)}",
    "{{data}}{{script}}",
    "\u2028\u2029\u202e\u2066\x00\x1b\ufeff\ud800",
    "&lt;b&gt;&amp;",
)
CYTOSCAPE_SHA256 = "081591ab735b2b6a3b31a3c60f8f3a3e2fee8c92939e0c7820ad1208571b6cd8"
ASSETS = resources.files("workflows.explanation")


class Parts(HTMLParser):
    """The parts of a page to a browser: its tags with their attributes, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data

    @property
    def data(self) -> dict[str, Any]:
        return dict(json.loads(self.scripts[0]))


def embedded(page: str) -> str:
    """Return the data as the page holds it."""
    _, _, rest = page.partition('<script type="application/json" id="data">')
    return rest.partition("</script>")[0]


def hostile(text: str) -> dict[str, Any]:
    """Return an explanation in which every string that comes from people, documents or models is that text."""
    data = copy.deepcopy(explanation())
    data |= {"question": text, "answer": f"{text} [1]", "workspace": text, "fact_outcome": text}
    data["models"] = dict.fromkeys(data["models"], text)
    for node in data["nodes"]:
        node |= {"label": text, "text": text, "source": text, "ref": f"{text}{node['id']}"}
    for edge in data["edges"]:
        edge |= {"predicates": [text], "link": text}
    for fact in data["facts"]:
        fact |= {"subject": text, "predicate": text, "object": text, "relation": text}
    for path in data["paths"]:
        path["words"] = text
        path["steps"][0]["predicate"] = text
    return data


def test_the_page_holds_the_explanation_as_it_is_and_a_place_for_each_node() -> None:
    data = explanation()
    shown = Parts(render_page(data)).data
    assert shown.pop("positions").keys() == {node["id"] for node in data["nodes"]}
    assert shown.pop("dashes") == dashes()
    assert shown.pop("words") == {relation: relation_words(relation) for relation in dashes()}
    assert shown == data


def test_no_text_changes_the_parts_of_the_page() -> None:
    tame = Parts(render_page(hostile("tame")))
    for text in ("".join(HOSTILE), *HOSTILE[1:]):
        page = Parts(render_page(hostile(text)))
        assert page.tags == tame.tags, text
        assert page.attributes == tame.attributes
        assert page.scripts[1:] == tame.scripts[1:]
        assert page.data["question"] == text
    written = embedded(render_page(hostile("".join(HOSTILE))))
    assert re.fullmatch(r"[ -%'-;=?-~]+", written), "no sign that HTML or a script could read"


@examples(max_examples=12)
@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_question_stands_in_the_page(text: str) -> None:
    page = render_page({**without_walk(), "question": text})
    assert json.loads(embedded(page))["question"] == text
    page.encode()


def test_the_page_may_run_its_own_scripts_alone_and_load_nothing() -> None:
    page = Parts(render_page(explanation()))
    ((_, _, policy),) = [
        entry for entry in page.attributes if entry[1] == "content" and "default-src" in (entry[2] or "")
    ]
    rules = {rule.split()[0]: rule.split()[1:] for rule in (policy or "").split("; ")}
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in page.scripts[1:]]
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == [f"'sha256-{digest}'" for digest in hashes]
    assert rules.keys() == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    assert rules["img-src"] == ["data:"]


def test_nothing_in_the_page_points_outside_and_no_script_writes_markup() -> None:
    page = Parts(render_page(explanation()))
    addresses = [value for _, name, value in page.attributes if name in ("src", "href", "srcset", "action")]
    assert addresses == ["data:,"]
    assert not re.search(r"url\(|@import", (ASSETS / "page.css").read_text(encoding="utf-8"))
    for name in ("page.js", "drawing.js", "elements.js", "reasons.js"):
        script = (ASSETS / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)


def test_the_drawing_library_is_the_published_file_with_its_licence() -> None:
    library = (ASSETS / "cytoscape.min.js").read_bytes()
    licence = (ASSETS / "cytoscape-license.txt").read_text(encoding="utf-8")
    assert hashlib.sha256(library).hexdigest() == CYTOSCAPE_SHA256
    assert "Permission is hereby granted, free of charge" in licence
    assert "The Cytoscape Consortium" in render_page(without_walk())


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        render_page({**explanation(), "damping": float("nan")})


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, as WCAG 2 defines it."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


TEXTS = (
    *product(("ink", "quiet", "accent"), ("paper", "card", "soft")),
    ("label", "canvas"),
    ("quiet", "halo"),
    ("on-cited", "cited"),
    ("on-mark", "mark"),
)
RELATIONS = ("HIERARCHICAL", "TEMPORAL", "SPATIAL", "CAUSALITY", "ATTRIBUTION", "SYNONYMY")
PASSAGE_RELATIONS = ("PRIMARY", "SECONDARY", "PERIPHERAL")


def test_text_and_lines_stand_out_from_their_background() -> None:
    lines = (*RELATIONS, *PASSAGE_RELATIONS, "seed-line", "entity-line", "passage-line", "cited-line", "strong-line")
    for name, palette in page_colours().items():
        low = {(text, back) for text, back in TEXTS if contrast(palette[text], palette[back]) < 4.5}
        faint = {line for line in lines if contrast(palette[line], palette["canvas"]) < 3}
        assert (low, faint) == (set(), set()), name
