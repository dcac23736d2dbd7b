"""Where sentences end: at a stop that is not that of an abbreviation, an initial or an ordinal number."""

from __future__ import annotations

from collections.abc import Iterator

import regex

_END = regex.compile(
    r"(?:(?<=[\p{L}\p{M}\p{N})\]\"'”’»%‰€$£°][.!?])|(?<=[。！？।؟…])|(?<=[.!?][\"'”’»)*_])|(?<=[.!?]\*\*))"
    r"(?:\s++(?:>[>\s]*+)?+(?=[\p{Lu}\p{Lo}\p{N}\"'“‘„«(\[*_])|(?<=[。！？।])\s*+)"
)
_WORD_AT_END = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}.\-/&]*\Z")
_NEXT_WORD = regex.compile(r"[\"'“‘„«(\[*_]*+([\p{L}\p{M}]*+)")
_WORD_BEFORE = regex.compile(r"([\p{L}\p{M}.]+)[ \t\u00a0]\Z")
_REST_OF_DATE = regex.compile(r"\p{L}+\.?[ \t]+[0-9]{3,4}\b")
_ROMAN = regex.compile(r"[IVXLC]+")
_FARTHEST = 40


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_LAST = _words(
    "Mr Mrs Ms Dr Prof Fr Hr Hrn Mme Mlle Sra Dra vs approx Approx ca Ca cf vgl Vgl bzw ggf Ggf inkl exkl zzgl abzgl "
    "sog evtl geb viz esp"
)
"""Abbreviations that something always follows."""

_RANKS = _words("St Ste Mt Ft Lt Col Gen Gov Capt Cmdr Adm Maj Sgt Rev Hon Sen Rep Dipl Ing Mag")
"""Abbreviations before names; they are names or words, too: "Amartya Sen. He was"."""

_BEFORE_NUMBERS = _words(
    "No Nos Nr Nrn Art Abs Ziff Kap Abb Tab Fig Figs Eq Ch Sec Vol Bd Anl Pos Tel Rn pp Op op "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Okt Nov Dec Dez Mrz núm pág"
)
"""Abbreviations that are such where a number follows; elsewhere "No." and "Art." end a sentence."""

_ENDINGS = _words("Inc Ltd Co Corp Cie Bros Jr Sr etc usw al Std Mio Mrd Tsd Jh Str Ave Blvd Rd max min")
"""Abbreviations that a sentence may end with."""

_DOTTED_ENDINGS = _words("u.a u.ä o.ä u.s.w p.a")
_OPENING_ARTICLES = _words(
    "the this these those it he she they we its his their der die das den dem des dies diese dieser er es sie wir ein "
    "eine"
)
"""Articles and pronouns: in capitals they open a sentence, and no name."""

_OPENERS = _OPENING_ARTICLES | _words(
    "a an that her our there in on at for from by after before when while during since however if as both all each not "
    "under upon with you your im am an auf bei nach für vor seit mit als wenn zum zur ab bis alle ihr kein keine einer "
    "le les un une il elle ils ce cette el los las una"
)
_BEFORE_REFERENCES = _words("gem lt")
_BEFORE_ORDINALS = _words("am vom zum im der des dem den ab bis seit beim und oder jeden jedes jeder")
_GERMAN_MONTHS = _words("januar jänner februar märz april mai juni juli august september oktober november dezember")


def sentence_ends(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (where a sentence ends, where the next begins) for a text from start to end, in order."""
    for match in _END.finditer(text, start, end):
        if text[match.start() - 1] != "." or not _is_abbreviated(text, start, match.start() - 1, match.end()):
            yield match.span()


def _is_abbreviated(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a stop belongs to the word before it, and the sentence goes on behind it.

    Args:
        text: all of it.
        start: where the sentence's block begins.
        stop: where the stop stands.
        after: where the next word begins.
    """
    found = _WORD_AT_END.search(text[max(start, stop - _FARTHEST) : stop])
    following = _NEXT_WORD.match(text, after)
    if found is None or following is None:
        return False
    word, next_word = found[0].rstrip("."), following[1]
    is_opener = next_word.lower() in _OPENERS
    if word.isdecimal():
        is_date = _REST_OF_DATE.match(text, after) is not None and not is_opener
        before = text[max(start, stop - _FARTHEST) : stop - len(found[0])]
        return len(word) <= 2 and (is_date or _is_ordinal(before, next_word))
    if "." in word and all(len(part) <= 3 and part.isalpha() for part in word.split(".")):
        return _is_dotted(word, is_opener)
    last = regex.split(r"[.\-/&]", word)[-1]
    if len(last) == 1:
        before = text[max(start, stop - _FARTHEST) : stop - 1]
        return _is_initial(last, before, next_word, text[after + 1 : after + 2])
    spelled = last.title() if last.isupper() else last
    if spelled in _NEVER_LAST:
        return True
    if spelled in _RANKS:
        return next_word.lower() not in _OPENING_ARTICLES
    if spelled in _BEFORE_NUMBERS:
        return text[after].isdigit()
    if spelled in _BEFORE_REFERENCES:
        return next_word in _BEFORE_NUMBERS
    if spelled in _ENDINGS or last.endswith("str"):
        return not is_opener
    return bool(_ROMAN.fullmatch(last)) and not is_opener


def _is_ordinal(before: str, next_word: str) -> bool:
    """Tell whether a number with a stop is one such as "am 3. Oktober", "im 19. Jahrhundert"."""
    if next_word.lower() in _GERMAN_MONTHS:
        return True
    word = _WORD_BEFORE.search(before)
    return word is not None and word[1].lower() in _BEFORE_ORDINALS and next_word.lower() not in _OPENERS


def _is_dotted(word: str, is_opener: bool) -> bool:
    """Tell whether the sentence goes on behind "z.B.", "e.g.", "U.S."; behind the latter not where one opens."""
    if word.lower() in ("a.m", "p.m"):
        return False
    may_end = word[0].isupper() or word.lower() in _DOTTED_ENDINGS
    return not (may_end and is_opener)


def _is_initial(letter: str, before: str, next_word: str, behind: str) -> bool:
    """Tell whether a letter with a stop is an initial ("J. Moor") or a part of "z. B." or "p. 12"."""
    if letter.isupper():
        return next_word.lower() not in _OPENING_ARTICLES
    if not letter.islower():
        return False
    is_second = regex.search(r"(?<!\p{L})\p{L}\.[ \u00a0]\Z", before) is not None
    return is_second or behind == "." or (letter == "p" and not next_word)
