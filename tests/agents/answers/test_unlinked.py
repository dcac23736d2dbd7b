"""Answers name nothing that an interface would load, and link to sources alone, however their pieces are cut."""

from __future__ import annotations

import random
import re
from functools import partial

from markdown_it import MarkdownIt

from agents.answers.unlinked import NO_ADDRESSES, Addresses, Unlinking, addresses_of, unlinked
from agents.roles import NumberedPassage
from tests.growth import grows_with_length_alone

SOURCE = "https://wiki.example/handbook"
PORTAL = "https://hr.example/portal?a=1"
PASSAGE = NumberedPassage(1, "p", "Travel", f"Trips are booked at {PORTAL}.", SOURCE)
KNOWN = addresses_of([PASSAGE])
EVIL = "https://evil.example/log?q=secret"

IMAGES = (
    "<details open ontoggle=\"location='//evil.example'\">",
    f"![chart]({EVIL})",
    f"![chart]({SOURCE})",
    f"[![the chart]({EVIL})]({EVIL})",
    f"![a [b] \\] c]({EVIL})",
    f"![chart][c]\n\n[c]: {EVIL}\n",
    "![1]\n\n[1]: //evil.example/x.png 'title'\n",
    f"![c]\n\n> [c]:\n> {EVIL}\n",
    f"<img src='{EVIL}' alt=\"a > b\">",
    f"<picture><source srcset='{EVIL}'><img src='{EVIL}'></picture>",
    f'<b style="background: u\\72l({EVIL})"></b>',
    f"<style>body {{ background: url({EVIL}) }}</style>",
    f"<svg><image href='{EVIL}'/><rect fill='url({EVIL})'/></svg>",
    f"<im<img src=x>g src='{EVIL}'>",
    "![a]https://(//evil.example/x.png)",
    f"<img src=x> [1]: {EVIL}\n\nGreat![1]",
    f"<!-- <img src='{EVIL}'> -->",
    f"<div {'x ' * 1500} style='background:url({EVIL})'>",
)


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


def test_no_image_is_loaded_of_a_text_or_of_any_part_of_a_stream() -> None:
    for image in IMAGES:
        text = f"It rose {image} by 3 % [1]."
        left = unlinked(text, KNOWN)
        assert "<img" not in rendered(left), image
        assert not named_in(left), image
        assert "https://" not in left
        assert left.startswith("It rose ")
        assert "by 3 % [1]." in left
        for size in (1, 7) if len(text) < 1_000 else (3,):
            assert in_pieces(text, size) == left, image


def test_a_link_is_its_text_unless_it_is_of_a_source() -> None:
    for text, left in (
        (f"See [the portal]({EVIL}) [1].", "See the portal [1]."),
        ("See [the guide](guide.md) [1].", "See the guide [1]."),
        (f"See <a href='{EVIL}'>the portal</a> [1].", "See the portal [1]."),
        (f"See <{EVIL}> and {EVIL} [1].", "See evil.example/log?q=secret and evil.example/log?q=secret [1]."),
        (f"It is so [1]({EVIL}), [1].", "It is so [1], [1]."),
        ("See www.evil.example [1].", "See evil.example [1]."),
        ("See <someone@example.com> [1].", "See someone@example.com [1]."),
        ("Term\n: [1]: //evil.example\n~ [2]: //evil.example", "Term\n: \n~ "),
    ):
        assert unlinked(text, KNOWN) == left
    for text in (
        f"See [the handbook]({SOURCE}) [1].",
        f"Trips are booked at {PORTAL}. [1] ({PORTAL}), **{PORTAL}**, [{PORTAL}]",
        "Great [1][2]. [1-3] says so, [2024] too [unsupported].",
        "1. `a[0]` <br> H<sub>2</sub>O, Map<String, List<int>> and <your-name> if 1 < 2 > 0\n\n- [x] done",
        "x" * 3_000 + " [" + "y " * 1_500,
        "",
    ):
        assert unlinked(text, KNOWN) == in_pieces(text, 50 if len(text) > 1_000 else 5) == text


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
    for _ in range(600):
        text = "".join(at_random.choices(signs, k=at_random.randint(1, 25)))
        left = unlinked(text, KNOWN)
        assert "<img" not in rendered(left), text
        assert not re.findall(r'(?:href|src)="(?!https://wiki)', rendered(left)), text
        assert in_pieces(text, 3) == left, text


def test_a_text_of_beginnings_takes_linear_time() -> None:
    def unlink(part: str, length: int) -> None:
        unlinked(part * length, Addresses())

    for part in ("[", "[a](x", "![a](b/", "[x ", "<a ", "<!--", "http://", "](", "<a b='", "[[a]"):
        assert grows_with_length_alone(partial(unlink, part), 800, 5_000), part
