"""Words by which a question refers to what was said before: English, German, French and Spanish."""

from __future__ import annotations

import re

from agents.offline.language.words import word_set

HE = word_set("he him his himself er ihn ihm seine seinen seinem seiner seines il lui él")
SHE = word_set("she her hers herself elle ella")
PLACE = word_set("there dort allí")
DEMONSTRATIVES = word_set("this that these those")
ANYTHING = word_set("sie ihr ihre ihren ihrem ihrer ihres son sa ses su sus suyo suya")
"""Pronouns of somebody or of something."""

OWNERS = word_set("his its their")
THING = DEMONSTRATIVES | word_set(
    "it its itself they them their theirs both es davon dazu damit darin deren dessen ihr ihre ihren ihrem ihrer sie "
    "eso esto su sus suyo son sa ses leur leurs celui celle ils elles ellos ellas"
)
PRONOUNS = {
    "english": word_set("it its itself he him his himself she her hers herself they them their theirs themselves both"),
    "german": word_set(
        "er ihn ihm seine seinen seinem seiner seines sie ihr ihre ihren ihrem ihrer ihres es dort davon dazu damit "
        "daran darin danach deren dessen beide beiden"
    ),
    "french": word_set("il elle ils elles lui leur leurs son sa ses celui celle ceux celles"),
    "spanish": word_set("él ella ellos ellas su sus suyo suya allí eso esto"),
}
"""The pronouns that lean on what was said before, by language."""

POLITE = word_set("sie ihr ihre ihren ihrem ihrer")
"""German pronouns that mean the one who is spoken to where they have a capital within a sentence."""

ASKING = word_set(
    "is are was were do does did has have had can could will would who whom whose what which when where why how "
    "wer wen wem was welche welcher welches wann wo wie warum ist sind war hat haben wird wurde kann "
    "qui que quel quelle quand où pourquoi comment est sont était a ont "
    "quién qué cuál cuándo dónde cómo cuánto es son fue era tiene"
)
"""Words that make a question of a phrase."""


def any_of(words: str) -> str:
    """Return a pattern of several phrases, which are separated by commas."""
    return "(?:" + "|".join(re.escape(phrase.strip()).replace(r"\ ", r"\s+") for phrase in words.split(",")) + ")"


OPENERS = (
    "and, but, so, or, then, what about, how about, what if, why not, even, also, no, nope, yes, yeah, ok, okay, "
    "right, really, sorry, oops, hm, hmm, well, thanks, thank you, i see, got it, are you sure, are you certain, i "
    "don't believe, i mean, i meant, i thought, you said, you say, you mention, you mentioned, that is, that's, you "
    "mean, do you mean, did you mean, tell me more, go on, instead, same",
    "und, aber, also, dann, oder, was ist mit, wie ist es mit, nein, doch, ja, ich meine, ich meinte, bist du sicher, "
    "wirklich",
    "et, mais, ou, alors, donc, non, oui, je voulais dire, vraiment, tu es sûr",
    "y, e, pero, o, entonces, sí, quiero decir, quería decir, de verdad",
)
"""What begins a question that goes on from the last one, a text a language."""

JOINING = (
    "never mind, and then, and, but, so, or, then, also, well, no, nope, yes, ok, okay, sorry, oops, hm, hmm, thanks, "
    "i see, actually, rather, und, aber, et, mais, y, pero, nein, non"
)
"""What stands before the question proper, and says nothing of it."""

TURNING = (
    "what about, how about, i meant to ask, i mean, i meant, i thought, was ist mit, ich meinte, et pour, "
    "je voulais dire, qué hay de, quería decir"
)
"""What turns the last question to something else."""

QUESTION_WORDS = (
    "since when, until when, by whom, what for, how so, how come, how much, how many, why, when, where, how, who, "
    "whom, which, warum, wieso, weshalb, wann, wo, wer, seit wann, pourquoi, depuis quand, quand, où, qui, por qué, "
    "desde cuándo, cuándo, dónde, quién"
)
"""What may ask the last question anew all alone."""

DOUBTS = (
    "are you sure, are you certain, really, i thought, i don't believe, i doubt, that's wrong, that is wrong, not "
    "true, bist du sicher, vraiment"
)
"""What disagrees with the last answer."""
