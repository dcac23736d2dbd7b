"""The words around an answer: labels, refusals and remarks, in the language of the question where it is one of four."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.roles import REFUSAL
from graph.errors import BudgetSpent, SlowReply
from graph.text import tokens
from workflows.states.records import CUT_ANSWER, DROPPED_CITATIONS, MALFORMED, UNREAD_FILES


@dataclass(frozen=True, slots=True)
class Words:
    """The words around an answer in one language.

    Attributes:
        quotes: the label of quotes, without a model.
        instead: the label of quotes in place of an answer that a model failed to give; its braces stand for why.
        related: over what also bears on a question.
        sources: over the sources of an answer.
        not_found: the whole of a refusal, without its full stop.
        failed: why a model's answer is none, in a sentence; its braces stand for one of ``failures``.
        failures: why, by `failure_of`.
        lacking: that the passages lack names; its braces stand for them.
        too_little: that the passages do not tell enough.
        closest: over the closest passages.
        advice: what to try.
        wider: what to try beside, where a filter is set.
        cut: that an answer stops at its limit.
        dropped: that citations were left out.
    """

    quotes: str
    instead: str
    related: str
    sources: str
    not_found: str
    failed: str
    failures: Mapping[str, str]
    lacking: str
    too_little: str
    closest: str
    advice: str
    wider: str
    cut: str
    dropped: str


WORDS: Mapping[str, Words] = {
    "en": Words(
        quotes="Quotes from your documents (not checked by a model)",
        instead="Quotes from your documents (the model gave no usable answer: {})",
        related="Also related",
        sources="Sources",
        not_found="Not found in the documents",
        failed="The model gave no usable answer: {}.",
        failures={
            "cut": "it reached its length limit before it named a source",
            "empty": "it wrote nothing",
            "slow": "it took too long",
            "spent": "no time or calls were left for it",
            "unsourced": "it did not keep to the documents",
        },
        lacking="The passages found do not mention {}.",
        too_little="The passages found say too little about it.",
        closest="Closest passages",
        advice="Try other words, or add documents about it.",
        wider="A filter is set: a wider one may find more.",
        cut="The answer stops here: the model reached its length limit.",
        dropped="Some citations led to no source and were left out.",
    ),
    "de": Words(
        quotes="Zitate aus Ihren Dokumenten (nicht von einem Modell geprüft)",
        instead="Zitate aus Ihren Dokumenten (das Modell gab keine brauchbare Antwort: {})",
        related="Auch dazu",
        sources="Quellen",
        not_found="In den Dokumenten nicht gefunden",
        failed="Das Modell gab keine brauchbare Antwort: {}.",
        failures={
            "cut": "seine Längengrenze war erreicht, bevor es eine Quelle nannte",
            "empty": "es schrieb nichts",
            "slow": "es brauchte zu lange",
            "spent": "dafür waren keine Zeit oder keine Aufrufe mehr übrig",
            "unsourced": "es hielt sich nicht an die Dokumente",
        },
        lacking="Die gefundenen Stellen erwähnen {} nicht.",
        too_little="Die gefundenen Stellen sagen zu wenig darüber.",
        closest="Nächstliegende Stellen",
        advice="Versuchen Sie es mit anderen Worten, oder fügen Sie Dokumente dazu hinzu.",
        wider="Ein Filter ist gesetzt: Ein weiterer findet vielleicht mehr.",
        cut="Die Antwort endet hier: Das Modell hat seine Längengrenze erreicht.",
        dropped="Einige Verweise führten zu keiner Quelle und wurden weggelassen.",
    ),
    "fr": Words(
        quotes="Citations de vos documents (non vérifiées par un modèle)",
        instead="Citations de vos documents (le modèle n’a pas donné de réponse utilisable : {})",
        related="À ce sujet également",
        sources="Sources",
        not_found="Introuvable dans les documents",
        failed="Le modèle n’a pas donné de réponse utilisable : {}.",
        failures={
            "cut": "il a atteint sa limite de longueur avant de citer une source",
            "empty": "il n’a rien écrit",
            "slow": "il a mis trop de temps",
            "spent": "il ne restait ni temps ni appels pour lui",
            "unsourced": "il ne s’en est pas tenu aux documents",
        },
        lacking="Les passages trouvés ne mentionnent pas {}.",
        too_little="Les passages trouvés en disent trop peu.",
        closest="Passages les plus proches",
        advice="Essayez d’autres mots, ou ajoutez des documents à ce sujet.",
        wider="Un filtre est actif : un filtre plus large peut trouver davantage.",
        cut="La réponse s’arrête ici : le modèle a atteint sa limite de longueur.",
        dropped="Certains renvois ne menaient à aucune source et ont été retirés.",
    ),
    "es": Words(
        quotes="Citas de sus documentos (no verificadas por un modelo)",
        instead="Citas de sus documentos (el modelo no dio una respuesta utilizable: {})",
        related="También relacionado",
        sources="Fuentes",
        not_found="No se encontró en los documentos",
        failed="El modelo no dio una respuesta utilizable: {}.",
        failures={
            "cut": "llegó a su límite de longitud antes de citar una fuente",
            "empty": "no escribió nada",
            "slow": "tardó demasiado",
            "spent": "no le quedaban tiempo ni llamadas",
            "unsourced": "no se ciñó a los documentos",
        },
        lacking="Los pasajes encontrados no mencionan {}.",
        too_little="Los pasajes encontrados dicen muy poco al respecto.",
        closest="Pasajes más cercanos",
        advice="Pruebe con otras palabras o añada documentos sobre el tema.",
        wider="Hay un filtro activo: uno más amplio puede encontrar más.",
        cut="La respuesta termina aquí: el modelo llegó a su límite de longitud.",
        dropped="Algunas citas no llevaban a ninguna fuente y se omitieron.",
    ),
}
"""The words by language, as its code of ISO 639-1."""

_ASKING = {
    "en": "who what when where which how why whose is are does did",
    "de": "wer wann wo welche welcher welches wie warum wieviel wem wen ist wurde",
    "fr": "qui quand où quel quelle quels quelles comment pourquoi combien est qu",
    "es": "quién quiénes qué cuándo dónde cuál cuáles cómo cuánto cuántos cuántas",
}
"""The words that questions of a language ask with: each counts double."""

_FUNCTION = {
    "en": "the of and in to was were it its his her from by do for with that this",
    "de": "der die das und ein eine im von mit für den dem des hat war was zu nicht sind es in",
    "fr": "le la les des du un une et dans par pour a ont été sont il elle sur au aux que en",
    "es": "el la los las un una del de y en por para fue fueron es son se con su al",
}
_WEIGHTS = {
    each: {**dict.fromkeys(tokens(_FUNCTION[each]), 1), **dict.fromkeys(tokens(_ASKING[each]), 2)} for each in WORDS
}
_LEAST = 2

_AROUND = re.compile(
    "|".join(
        rf"\*?(?:{'|'.join(map(re.escape, (words.cut, words.dropped)))})\*?"
        rf"|\*(?:{re.escape(words.quotes)}|{re.escape(words.instead.partition('{}')[0])}.*)\*"
        for words in WORDS.values()
    )
)
_FALLBACK = ("Fallback", "quote_passages")
_NO_EVIDENCE = re.compile(r"No evidence for .*: (.+)", re.DOTALL)
_LACKING = re.compile(r"the (?:passages|rows) found do not (?:hold|tell) (.+)", re.DOTALL)
TOLD_OF_REFUSALS = ("UnknownKeys", "NothingSelected", "Evidence", UNREAD_FILES)
"""The kinds of notes that refusals tell."""

_NOTHING = "no passage was found"


def language_of(text: str) -> str:
    """Return the language of a question where its function words tell it among the four; English where in doubt."""
    words = tokens(text)
    scores = {each: sum(weights.get(word, 0) for word in words) for each, weights in _WEIGHTS.items()}
    best = max(scores, key=lambda each: scores[each])
    is_told = scores[best] >= _LEAST and list(scores.values()).count(scores[best]) == 1
    return best if is_told else "en"


def words_for(question: str) -> Words:
    """Return the words around an answer to this question."""
    return WORDS[language_of(question)]


def without_words(shown: str) -> str:
    """Return an answer as an agent gave it, of one that was shown with labels and remarks behind it."""
    if any(shown.startswith(f"{words.not_found}.") for words in WORDS.values()):
        return REFUSAL
    parts = shown.split("\n\n")
    while len(parts) > 1 and _AROUND.fullmatch(parts[-1]):
        parts.pop()
    return "\n\n".join(parts)


def failure_of(result: Mapping[str, Any]) -> str:
    """Return why the answer of a model that was asked is none, a key of ``failures``; empty where it is one."""
    notes = result["errors"]
    if not any((note["kind"], note["node"]) == _FALLBACK for note in notes):
        return ""
    faults = [note for note in notes if note["node"] == "write_answer"]
    kinds = [note for note in faults if note["kind"] in (MALFORMED, SlowReply.__name__, BudgetSpent.__name__)]
    last = kinds[-1] if kinds else {"kind": "", "message": ""}
    if last["kind"] != MALFORMED:
        return {SlowReply.__name__: "slow", BudgetSpent.__name__: "spent"}.get(last["kind"], "unsourced")
    return "cut" if "cut at" in last["message"] else "empty" if "is empty" in last["message"] else "unsourced"


def reasons_of(result: Mapping[str, Any], words: Words) -> list[str]:
    """Return why a question is not answered, in sentences: those of its notes that a reader can act on."""
    reasons = [words.failed.format(words.failures[failure])] if (failure := failure_of(result)) else []
    for note in result["errors"]:
        if note["kind"] in TOLD_OF_REFUSALS:
            told = _NO_EVIDENCE.fullmatch(note["message"])
            asked = result.get("question", "")
            reasons.append(_lacking(told[1], words, asked) if told else f"{note['message'].rstrip('.')}.")
    return list(dict.fromkeys(filter(None, reasons)))


def _lacking(told: str, words: Words, question: str) -> str:
    if told == _NOTHING:
        return ""
    if named := _LACKING.fullmatch(told):
        spelt = (re.search(re.escape(name), question, re.IGNORECASE) for name in named[1].split(", "))
        names = [found[0] if found else name for found, name in zip(spelt, named[1].split(", "), strict=True)]
        return words.lacking.format(", ".join(names))
    return f"{told[0].upper()}{told[1:]}." if words is WORDS["en"] else words.too_little


def remarks_of(result: Mapping[str, Any], words: Words) -> list[str]:
    """Return what stands below an answer: that it was cut, and that citations were left out."""
    kinds = {note["kind"] for note in result["errors"]}
    is_cut = result.get("cut") and CUT_ANSWER in kinds
    return [words.cut] * bool(is_cut) + [words.dropped] * (DROPPED_CITATIONS in kinds)
