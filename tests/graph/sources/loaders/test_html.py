from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.sources.loaders import load_file
from graph.sources.loaders.document import Document
from graph.sources.loaders.fields import FieldMap
from graph.sources.loaders.html import normalised_address, parse_html
from tests.graph.sources.loaders.files import epub, passage_of_file, write
from tests.growth import grows_with_length_alone


def page(body: str, head: str = "") -> Document:
    return parse_html(f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>", "page", "page.html")


class TestText:
    def test_it_is_what_a_browser_shows_in_paragraphs(self) -> None:
        for body, text in [
            ("<p>One <b>bo</b>ld\n  word.</p><p>Two", "One bold word.\n\nTwo"),
            ("a&nbsp;b &amp; c&eacute; &#x65e5;", "a b & cé 日"),
            ("<p>a<!-- x -->b</p>", "ab"),
            ("one<br>two<br/>three", "one\ntwo\nthree"),
            ("<ul><li><p>one</p><p>more</p><li><h3>two</h3></ul>", "- one\n\nmore\n\ntwo"),
            ("<dl><dt>Term<dd>two years<dt>Price<dt>Cost<dd>3</dl>", "Term: two years\nPrice\nCost: 3"),
            ("<p>a<span> b</span><i> </i>c</p>", "a b c"),
            ("a<script>x()</script><style>y</style><noscript>z</noscript>b", "ab"),
        ]:
            assert page(body).text == text, body

    def test_what_surrounds_the_main_text_is_dropped(self) -> None:
        for tag in ["nav", "header", "footer", "aside", "form", "script", "template", "button"]:
            assert (
                page(f"<p>before</p><{tag}><p>menu</p><div>more</div></{tag}><p>after</p>").text == "before\n\nafter"
            ), tag
        for attribute in ("hidden", "role=navigation", "role='banner'"):
            assert page(f"<p>a</p><div {attribute}><p>x<br>y</p></div><p>b</p>").text == "a\n\nb", attribute
        for body, text in [
            ("<article><header><h1>Nissan</h1></header>Text</article>", "Nissan\n\nText"),
            *((markup, "") for markup in ("", "  ", "<!-- -->", "<html></html>", "<script>x</script>")),
        ]:
            assert page(body).text == text, body

    def test_so_is_what_is_named_like_a_menu_and_holds_links_for_the_most_part(self) -> None:
        for named in ["id=nav", "class='left sidebar'", "id='breadcrumb-section'", "id=mw-navigation", "class=footer"]:
            menu = f"<div {named}>See: <ul><li><a href=/>Home</a><li><a href=/b>All spaces</a></ul></div>"
            assert page(f"{menu}<p>In <a href=/c>1933</a>.</p>").text == "In 1933.", named
        for named in ("id=menu", "class='page with-sidebar'", "class=navy"):
            soup = page(f"<div {named}><p>Soup of the day, <a href=/>3 EUR</a></p></div>")
            assert soup.text == "Soup of the day, 3 EUR", named
        assert page("<h1>A</h1><div class=no-sidebar><ul><li><a href=/>Pump</a></ul></div>").text == "A\n\n- Pump"
        assert page("<div class=menu><a href=/>Pumps</a></div>").text == "Pumps", "the page is one menu"

    def test_where_a_page_marks_its_main_part_that_is_the_text(self) -> None:
        for main in ["<main>{}</main>", "<div role=main>{}</div>", "<div role='main'><main>{}</main></div>"]:
            inner = "<header><h1>Nissan</h1></header><p>In 1933.</p><div>It <a href='http://b/'>grew</a>.</div>"
            document = page("<h1>Site</h1><a href='http://a/'>menu</a>" + main.format(inner) + "<p>imprint</p>")
            assert (document.title, document.text) == ("Nissan", "Nissan\n\nIn 1933.\n\nIt grew."), main
            assert [url for _, url in document.links] == ["http://b/"], main

    def test_each_carries_the_names_of_its_columns(self) -> None:
        for rows, text in [
            ("<tr><th>Term<td>two years<tr><th>Notice:<td>a month", "Term: two years\nNotice: a month"),
            ("<thead><tr><td>Part<td>Price<tbody><tr><td>bolt<td>3", "Part: bolt; Price: 3"),
            ("<tr><td><th>Oslo<th>Rome<tr><th>Rain<td>3<td>4", "Rain; Oslo: 3; Rome: 4"),
            ("<tr><th>Part<th>Made of<th>Price<tr><td>bolt<td colspan=2>3", "Part: bolt; Made of: 3"),
            ("<tr><td>Part<td>Made of<td>Price<tr><td>bolt<td>steel<td>3", "Part: bolt; Made of: steel; Price: 3"),
            ("<tr><td>Eva<td>Oslo<td>baker<tr><td>Bo<td>Rome<td>cook", "Eva | Oslo | baker\nBo | Rome | cook"),
        ]:
            assert page(f"<table>{rows}</table>").text == text, rows


class TestTitle:
    def test_it_is_the_first_main_heading_else_the_title_else_a_heading(self) -> None:
        for head, body, title in [
            ("<title>Nissan - Wiki</title>", "<h2>Top</h2><h1>Nissan\n Motor</h1>", "Nissan Motor"),
            ("<title> Nissan\n Motor </title>", "<h2>History</h2>", "Nissan Motor"),
            ("<title>Untitled Document</title>", "<h2>History</h2>", "History"),
            ("<title></title>", "<svg><title>Icon</title></svg>", ""),
            ("", "<nav><h1>Site</h1></nav><p>text", ""),
        ]:
            assert page(body, head).title == title, head


class TestAddress:
    def test_the_source_is_the_address_that_the_page_names(self) -> None:
        for head in [
            "<link rel='canonical' href='HTTPS://Ex.org:443/a?b=1#top'><meta property='og:url' content='http://no/'>",
            "<meta property='og:url' content='https://ex.org/a?b=1'>",
            "<!--\n Page saved with SingleFile \n url: https://ex.org/a?b=1 \n saved date: today -->",
        ]:
            assert page("x", head).source == "https://ex.org/a?b=1", head

    def test_what_is_no_web_address_is_none(self) -> None:
        for href in ["", "/a", "file:///etc/passwd", "javascript:x()", "https://[", "http://a:x/"]:
            assert page("x", f"<link rel=canonical href='{href}'>").source == "page.html", href

    def test_addresses_are_compared_in_their_normal_form(self) -> None:
        for url, base, normal in [
            ("HTTP://User:pw@EX.org:80/A/b?q#f", "", "http://ex.org/A/b?q"),
            ("../c", "https://ex.org/a/b", "https://ex.org/c"),
            ("//other.org", "https://ex.org/", "https://other.org/"),
            ("http://[::1]:80/x", "", "http://[::1]/x"),
            ("mailto:a@b", "https://ex.org/", ""),
        ]:
            assert normalised_address(url, base) == normal, url
            assert normalised_address(normal) == normal, url


class TestLinks:
    def test_they_are_those_of_the_main_text_resolved_without_fragments(self) -> None:
        body = (
            "<nav><a href='/menu'>x</a></nav><p>See <a href='/b#x'>b</a>, <a href='c'>c</a>,"
            "<a href='#here'>here</a> <a href='mailto:x@y'>mail</a> <a href='http://['>broken</a></p>"
        )
        document = page(body, "<link rel=canonical href='https://ex.org/d/a'>")
        assert [url for _, url in document.links] == ["https://ex.org/b", "https://ex.org/d/c"]
        assert document.text[document.links[0][0] :].lstrip().startswith("b, c")

    def test_a_base_is_obeyed_and_without_an_address_relative_links_lead_nowhere(self) -> None:
        body = "<p><a href='b'>b</a>"
        assert [url for _, url in page(body, "<base href='https://ex.org/x/'>").links] == ["https://ex.org/x/b"]
        assert page(body).links == []


class TestEncoding:
    @staticmethod
    def text(path: Path) -> str:
        (document,) = load_file(path, "a.html", FieldMap()).documents
        return document.text

    def test_a_declared_one_is_honoured_else_it_is_utf8(self, tmp_path: Path) -> None:
        for head, encoding in [
            ("", "utf-8"),
            ("", "utf-8-sig"),
            ("<meta charset='windows-1251'>", "cp1251"),
            ("<meta charset=Shift_JIS>", "shift_jis"),
            ("<meta charset='utf-16'>", "utf-8"),
        ]:
            text = {"cp1251": "Привет", "shift_jis": "日産"}.get(encoding, "Malmö 日産")
            content = f"<html><head>{head}</head><body>{text}".encode(encoding)
            assert self.text(write(tmp_path / "a.html", content)) == text, head
        content = "<?xml version='1.0' encoding='iso-8859-1'?><html><body>Malmö</body></html>".encode("latin-1")
        assert self.text(write(tmp_path / "a.html", content)) == "Malmö"


class TestHostile:
    def test_deep_nesting_is_refused_in_linear_time(self) -> None:
        def work(length: int) -> None:
            with pytest.raises(BadInput, match=r"page has elements nested over 2,048 deep"):
                parse_html(f"{'<table><tr><td>' * length}x", "page", "page.html")

        assert grows_with_length_alone(work, 3_000)

    @pytest.mark.parametrize(
        ("before", "unit", "after"), [("", "<!--", ""), ("", "<p>", "x"), ("<a ", "b=c ", ">x")], ids=str
    )
    def test_broken_markup_is_read_in_linear_time(self, before: str, unit: str, after: str) -> None:
        def work(length: int) -> None:
            parse_html(f"{before}{unit * length}{after}", "page", "page.html")

        assert grows_with_length_alone(work, 3_000)


PAGES = ("<h1>One</h1><p>Text&nbsp;of one.</p>", "<h1>Two</h1><table><tr><th>Year<th>Flow<tr><td>1900<td>3</table>")


class TestBook:
    def test_its_pages_stand_in_the_order_of_its_spine(self, tmp_path: Path) -> None:
        passage = passage_of_file(write(tmp_path / "a.epub", epub(*PAGES)))
        assert (passage.title, passage.text) == ("Pumps", "One\n\nText of one.\n\nTwo\n\nYear: 1900; Flow: 3")
        assert passage.metadata["creator"] == "Ida Berg"
