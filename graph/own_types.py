"""A user's own relation and entity types: what they mean, and the words and shapes that tell them.

A workspace keeps them in its record, so that asking needs no file; a generation keeps those that its facts and names
have. A type that nothing has takes part in nothing: no prompt, no β, no edge. Cues and shapes are made into patterns
that cost no more than their text is long.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from graph.relations import DEFINITIONS, LONGEST_TYPE_NAME, RESERVED_NAMES, RelationType
from graph.schema import stable_id
from graph.text import has_controls, is_unspaced, normalise_name

LONGEST_CUE = 60
"""Characters of a cue or a shape."""

_FEWEST_LETTERS_OF_STEM = 2
_MOST_STARS = 2
_LONGEST_STAR = 40
_BETWEEN_WORDS = r"[\s_-]+"
_LETTER = r"[^\W_]"
_NOT_BEHIND, _NOT_BEFORE = rf"(?<!{_LETTER})", rf"(?!{_LETTER})"
_SHAPE_SIGNS = {"#": r"[0-9]", "@": r"[A-Z]", "*": rf"{_LETTER}{{1,{_LONGEST_STAR}}}"}
_NEVER = re.compile(r"(?!)")


def cue_pattern(cue: str) -> str:
    """Return the fragment that finds a cue: whole words in any case; a word that ends in ``*`` is the start of one.

    Raises:
        ValueError: it has no letter or digit, is too long, or has a ``*`` elsewhere.
    """
    _check_length(cue)
    words = re.split(_BETWEEN_WORDS, unicodedata.normalize("NFC", cue).strip())
    if not any(letter.isalnum() for letter in cue):
        raise ValueError("it has no letter and no digit")
    before, after = _boundaries(words)
    return f"{before}{_BETWEEN_WORDS.join(map(_word_pattern, words))}{after}"


def shape_pattern(shape: str) -> str:
    """Return the fragment that finds a shape: ``#`` a digit, ``@`` a capital, ``*`` letters and digits, else itself.

    Raises:
        ValueError: it says nothing of its own, is too long, or has several ``*`` or two signs of which one is ``*`` in
            a row.
    """
    _check_length(shape)
    if not re.search(r"[^\W_]|[#@]", shape):
        raise ValueError("beside * it needs a letter, a digit, # or @")
    if shape.count("*") > _MOST_STARS or re.search(r"\*[\w#@*]|[#@*]\*", shape):
        raise ValueError(f"* stands {_MOST_STARS} times at most, and not beside another sign or before a letter")
    body = "".join(_SHAPE_SIGNS.get(sign) or (r"\s+" if sign.isspace() else re.escape(sign)) for sign in shape.strip())
    return f"{_NOT_BEHIND}{body}{_NOT_BEFORE}"


def any_cue(cues: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that finds any of some cues, the longest first; of none, it finds nothing."""
    fragments = [cue_pattern(cue) for cue in sorted(cues, key=lambda cue: (-len(cue), cue))]
    return re.compile("|".join(fragments), re.IGNORECASE) if fragments else _NEVER


def any_shape(shapes: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that finds any of some shapes, the longest first; of none, it finds nothing."""
    fragments = [shape_pattern(shape) for shape in sorted(shapes, key=lambda shape: (-len(shape), shape))]
    return re.compile("|".join(fragments)) if fragments else _NEVER


def _check_length(text: str) -> None:
    if len(text) > LONGEST_CUE:
        raise ValueError(f"it has {len(text)} characters, more than {LONGEST_CUE}")


def _word_pattern(word: str) -> str:
    stem = word.removesuffix("*")
    if "*" in stem:
        raise ValueError("* stands at the end of a word alone")
    if stem != word and len(stem) < _FEWEST_LETTERS_OF_STEM and not any(map(is_unspaced, stem)):
        raise ValueError(f"* needs {_FEWEST_LETTERS_OF_STEM} letters before it")
    return re.escape(stem) + (f"{_LETTER}*" if stem != word else "")


def _boundaries(words: list[str]) -> tuple[str, str]:
    """Return what stands before and behind a cue: nothing in a script that has no spaces between words."""
    first, last = words[0][:1], words[-1][-1:]
    return "" if is_unspaced(first) else _NOT_BEHIND, "" if is_unspaced(last) else _NOT_BEFORE


OWN_TYPES = "own_types"
"""The note of the record that holds a workspace's own types."""

MOST_RELATIONS = 20
"""Own relation types of a workspace. Each has a share of at least 0.02 of β."""

MOST_ENTITIES = 40
"""Own entity types of a workspace."""

LONGEST_MEANING = 300
"""Characters of a meaning, which prompts repeat."""

ASKED = 4.0
"""How strongly a question asks for a type whose cue it holds. Of β the type then has as much as the five built-in ones
together, where these have no cue: its words are chosen by who knows the documents, theirs stand in many questions."""

LONGEST_EXAMPLE = 200
MOST_OF_A_LIST = 50

_BUILT_IN = frozenset({*RelationType, *RESERVED_NAMES})
_NAME = rf"^[A-Za-z][A-Za-z0-9_]{{0,{LONGEST_TYPE_NAME - 1}}}$"


def _plain(text: str) -> str:
    if has_controls(text):
        raise ValueError("it holds a line end or another control character")
    return text.strip()


def _cues(texts: tuple[str, ...]) -> tuple[str, ...]:
    any_cue(texts)
    return texts


def _shapes(texts: tuple[str, ...]) -> tuple[str, ...]:
    any_shape(texts)
    return texts


def _own_relation(name: str) -> RelationType:
    if name.upper() in _BUILT_IN:
        raise ValueError("it is the name of a built-in relation type: choose another")
    return RelationType(name.upper())


_Text = Annotated[str, Field(max_length=LONGEST_EXAMPLE), AfterValidator(_plain), Field(min_length=1)]
_Meaning = Annotated[str, Field(max_length=LONGEST_MEANING), AfterValidator(_plain)]
_Texts = Annotated[tuple[_Text, ...], Field(max_length=MOST_OF_A_LIST)]
_Cues = Annotated[_Texts, AfterValidator(_cues)]
_Shapes = Annotated[_Texts, AfterValidator(_shapes)]
_Name = Annotated[str, Field(pattern=_NAME)]


@dataclass(frozen=True, slots=True)
class OwnRelation:
    """A relation type of the user's own, between two entities.

    Attributes:
        name: in capitals.
        meaning: in one line, as prompts tell it.
        examples: statements of that type.
        cues: words of a statement that tell it, and of a question that asks for it; see `cue_pattern`.
        questions: more words of a question that ask for it.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: Annotated[RelationType, BeforeValidator(_own_relation)]
    meaning: _Meaning = ""
    examples: _Texts = ()
    cues: _Cues = ()
    questions: _Cues = ()


@dataclass(frozen=True, slots=True)
class OwnEntity:
    """An entity type of the user's own.

    Attributes:
        name: as it is shown.
        meaning: in one line, as prompts tell it.
        examples: names that have it, wherever they stand.
        cues: words that tell it within a name, right before one, or in what a name is said to be.
        shapes: forms of whole names, see `shape_pattern`.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: str
    meaning: _Meaning = ""
    examples: _Texts = ()
    cues: _Cues = ()
    shapes: _Shapes = ()


@dataclass(frozen=True)
class OwnTypes:
    """The own types of a workspace, or of a generation: each kind in the order of its names, whatever a file's order.

    Attributes:
        relations: between entities.
        entities: of names.
    """

    relations: tuple[OwnRelation, ...] = ()
    entities: tuple[OwnEntity, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.relations or self.entities)

    @cached_property
    def relation_types(self) -> tuple[RelationType, ...]:
        """The relation types' names."""
        return tuple(relation.name for relation in self.relations)

    @cached_property
    def entity_types(self) -> tuple[str, ...]:
        """The entity types' names."""
        return tuple(entity.name for entity in self.entities)

    @property
    def definitions(self) -> Mapping[RelationType, str]:
        """One line of meaning, with examples, for each relation type."""
        return {relation.name: _definition(relation) for relation in self.relations}

    @cached_property
    def rules(self) -> str:
        """Hash of what extraction by rule depends on; empty where no type has a rule."""
        parts = [
            *((r.name, r.cues) for r in self.relations if r.cues),
            *((e.name, e.examples, e.cues, e.shapes) for e in self.entities if e.examples or e.cues or e.shapes),
        ]
        return stable_id("rules", json.dumps(parts))[-8:] if parts else ""

    @property
    def names(self) -> list[str]:
        """The names of all types."""
        return [*map(str, self.relation_types), *self.entity_types]

    @property
    def unfound(self) -> list[str]:
        """The names of types that no rule can find: a model alone does."""
        return [r.name.value for r in self.relations if not r.cues] + [
            e.name for e in self.entities if not (e.examples or e.cues or e.shapes)
        ]

    def relation_named(self, name: str) -> RelationType | None:
        """Return the own relation type of that name, case-insensitively."""
        wanted = name.strip().upper()
        return next((relation for relation in self.relation_types if relation == wanted), None)

    def entity_type_named(self, name: str) -> str | None:
        """Return the own entity type of that name, case-insensitively."""
        wanted = name.strip().casefold()
        return next((entity for entity in self.entity_types if entity.casefold() == wanted), None)

    def relation_of(self, predicate: str) -> RelationType | None:
        """Return the relation type whose cue stands last in a predicate, which governs its object; None without one."""
        matches = [
            (match.start(), match.end(), -place, name)
            for place, (name, cues) in enumerate(self._relation_cues)
            for match in cues.finditer(predicate)
        ]
        return max(matches)[-1] if matches else None

    def cues_in(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield where cues of relation types stand in a part of a text, in order."""
        spans = {match.span() for _, cues in self._relation_cues for match in cues.finditer(text, start, end)}
        yield from sorted(spans)

    def asked_in(self, question: str) -> Mapping[RelationType, float]:
        """Return of each relation type how strongly the words of a question ask for it: `ASKED`, or 0."""
        return {name: ASKED if asks.search(question) else 0.0 for name, asks in self._question_cues}

    def entity_type_of(self, name: str, before: Sequence[str] = (), said: Sequence[str] = ()) -> str | None:
        """Return the entity type of a name by rule, None where no rule tells one.

        In order: the name is an example; it has a shape; it holds a cue; a cue stands right before it; what it is said
        to be ends with one.

        Args:
            name: the name as it stands in a text.
            before: texts that end where the name begins.
            said: phrases for what the name is.
        """
        normal = normalise_name(name)
        tests: tuple[Callable[[_EntityRules], object], ...] = (
            lambda rules: normal in rules.examples,
            lambda rules: rules.shapes.fullmatch(name.strip()),
            lambda rules: rules.cues.search(name),
            lambda rules: any(rules.is_before_name(text) for text in before),
            lambda rules: any(map(rules.ends_with_cue, said)),
        )
        return next((entity for test in tests for entity, rules in self._entity_rules if test(rules)), None)

    @cached_property
    def shapes(self) -> re.Pattern[str]:
        """The pattern that finds names by the shapes of entity types."""
        return any_shape(shape for entity in self.entities for shape in entity.shapes)

    def used(self, relations: Collection[RelationType], entities: Collection[str]) -> OwnTypes:
        """Return the types that facts and names have; one that is not declared any more has a name alone."""
        by_name = {relation.name: relation for relation in self.relations}
        by_entity = {entity.name: entity for entity in self.entities}
        return OwnTypes(
            tuple(by_name.get(name) or OwnRelation(name) for name in sorted(relations)),
            tuple(by_entity.get(name) or OwnEntity(name) for name in sorted(entities)),
        )

    def to_mapping(self) -> dict[str, Any]:
        """Return the types as a file holds them."""
        mapping: dict[str, Any] = {}
        for key, types in (("relations", self.relations), ("entities", self.entities)):
            if types:
                mapping[key] = {str(each.name): _without_name(asdict(each)) for each in types}
        return mapping

    def to_json(self) -> str:
        """Return the types as the record keeps them; empty for none."""
        return json.dumps(self.to_mapping(), ensure_ascii=False, sort_keys=True) if self else ""

    @staticmethod
    def from_json(text: str) -> OwnTypes:
        """Return what `to_json` gave. Raises ValueError where it is no such text."""
        return own_types_of(json.loads(text)) if text else NO_TYPES

    @cached_property
    def _relation_cues(self) -> Sequence[tuple[RelationType, re.Pattern[str]]]:
        return [(relation.name, any_cue(relation.cues)) for relation in self.relations]

    @cached_property
    def _question_cues(self) -> Sequence[tuple[RelationType, re.Pattern[str]]]:
        return [(relation.name, any_cue([*relation.cues, *relation.questions])) for relation in self.relations]

    @cached_property
    def _entity_rules(self) -> Sequence[tuple[str, _EntityRules]]:
        return [(entity.name, _EntityRules.of(entity)) for entity in self.entities]


@dataclass(frozen=True, slots=True)
class _EntityRules:
    """The rules of an entity type, compiled."""

    examples: frozenset[str]
    cues: re.Pattern[str]
    shapes: re.Pattern[str]

    @staticmethod
    def of(entity: OwnEntity) -> _EntityRules:
        return _EntityRules(
            frozenset(map(normalise_name, entity.examples)), any_cue(entity.cues), any_shape(entity.shapes)
        )

    def ends_with_cue(self, text: str) -> bool:
        """Whether a cue stands at a text's end."""
        return any(match.end() == len(text) for match in self.cues.finditer(text))

    def is_before_name(self, text: str) -> bool:
        """Whether a text ends with a cue and a space."""
        words = text.rstrip()
        return words != text and self.ends_with_cue(words)


NO_TYPES = OwnTypes()
"""A workspace without types of its own."""


def _named(tables: Any) -> Any:
    if not isinstance(tables, dict) or not all(isinstance(about, dict) for about in tables.values()):
        raise ValueError("it is no table")
    return {name: {**about, "name": name} for name, about in tables.items()}


@dataclass(frozen=True)
class _Stated:
    """The types of a file or a record, by their names."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    relations: Annotated[dict[_Name, OwnRelation], BeforeValidator(_named), Field(max_length=MOST_RELATIONS)] = field(
        default_factory=dict
    )
    entities: Annotated[dict[_Name, OwnEntity], BeforeValidator(_named), Field(max_length=MOST_ENTITIES)] = field(
        default_factory=dict
    )


def own_types_of(value: Any) -> OwnTypes:
    """Return the types that a file or a record states, once they are checked.

    Raises:
        ValueError: something in it is no such type; the message says what and where.
    """
    try:
        stated = _adapter().validate_python(value)
    except ValidationError as fault:
        first = fault.errors()[0]
        raise ValueError(
            f"[{'.'.join(str(each)[:60] for each in first['loc'])}]: {first['msg'].removeprefix('Value error, ')}"
        ) from None
    for names in (stated.relations, stated.entities):
        if len({name.upper() for name in names}) < len(names):
            raise ValueError("a type stands there twice, in capitals and in small letters")
    return OwnTypes(
        tuple(sorted(stated.relations.values(), key=lambda relation: relation.name)),
        tuple(sorted(stated.entities.values(), key=lambda entity: entity.name)),
    )


@cache
def _adapter() -> TypeAdapter[_Stated]:
    return TypeAdapter(_Stated)


def _definition(about: OwnRelation | OwnEntity) -> str:
    """Return a type's meaning with its examples, as `DEFINITIONS` does for the built-in ones."""
    examples = "; ".join(about.examples)
    return f"{about.meaning} ({examples})" if about.meaning and examples else about.meaning or examples


def definition_list(relations: Iterable[RelationType], own: OwnTypes) -> str:
    """Return relation types with their meanings and examples, one a line, as prompts list them."""
    definitions = {**DEFINITIONS, **own.definitions}
    return "\n".join(_listed(relation.value, definitions.get(relation, "")) for relation in relations)


def entity_list(own: OwnTypes) -> str:
    """Return the own entity types with their meanings and examples, one a line, as prompts list them."""
    return "\n".join(_listed(entity.name, _definition(entity)) for entity in own.entities)


def _listed(name: str, definition: str) -> str:
    return f"- {name}: {definition}" if definition else f"- {name}"


def _without_name(body: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in body.items() if key != "name"}
