"""The kinds of corrections that a user makes to the graph, each a plain value that JSON can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from graph.errors import BadInput
from graph.schema import ENTITY_RELATIONS, MAX_ID, RelationType
from graph.text import has_controls, is_unicode, normalise_name

MAX_NOTE = 2_000
"""Characters of the note on a correction."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as a user names it.

    Attributes:
        relation: the value of its relation type; empty for whichever it has.

    Raises:
        BadInput: an end is no name, a part cannot be kept, or no fact can have the relation type.
    """

    subject: str
    predicate: str
    object: str
    relation: str = ""

    def __post_init__(self) -> None:
        _check_names((self.subject, self.object))
        _check_text(self.predicate)
        if self.relation:
            _check_relation(self.relation)

    def __str__(self) -> str:
        relation = f" ({self.relation})" if self.relation else ""
        return f"{self.subject} | {self.predicate} | {self.object}{relation}"


@dataclass(frozen=True, slots=True)
class Merge:
    """Names that mean one entity.

    Attributes:
        names: two or more, of different normal forms.
        name: what the entity is called.

    Raises:
        BadInput: there are not two names, or one is none.
    """

    names: tuple[str, ...]
    name: str
    kind: Literal["merge"] = "merge"

    def __post_init__(self) -> None:
        _check_names((*self.names, self.name))
        if len({normalise_name(name) for name in (*self.names, self.name)}) < 2:
            raise BadInput(f"{self.name!r} is one name already", "Give two names or more that are spelled differently")


@dataclass(frozen=True, slots=True)
class Apart:
    """Names that mean different entities, however alike they are.

    Raises:
        BadInput: there are not two names, or one is none.
    """

    names: tuple[str, ...]
    kind: Literal["apart"] = "apart"

    def __post_init__(self) -> None:
        _check_names(self.names)
        if len({normalise_name(name) for name in self.names}) < max(2, len(self.names)):
            hint = "For one name that means two things, say where: `mara correct split NAME --in SOURCE`"
            raise BadInput("Names that are to be kept apart are one", hint)


@dataclass(frozen=True, slots=True)
class Split:
    """A name that means another entity in some places than elsewhere.

    Attributes:
        places: sources, documents or passages, as passages name them.
        into: what the entity is called that it means there.

    Raises:
        BadInput: a name is none, both are the same, or no place is given.
    """

    name: str
    places: tuple[str, ...]
    into: str
    kind: Literal["split"] = "split"

    def __post_init__(self) -> None:
        _check_names((self.name, self.into))
        _check_names(self.places)
        if not self.places:
            raise BadInput(f"Nothing says where {self.name!r} is another", "Give a source, a document or a passage")
        if normalise_name(self.name) == normalise_name(self.into):
            raise BadInput(f"{self.into!r} is the same name", "Give the other entity a name of its own")


@dataclass(frozen=True, slots=True)
class Change:
    """A wrong fact and the right one; an empty relation of the right one keeps the fact's own.

    Attributes:
        places: where it is wrong: sources, documents or passages; everywhere if empty.
    """

    fact: Statement
    to: Statement
    places: tuple[str, ...] = ()
    kind: Literal["change"] = "change"

    def __post_init__(self) -> None:
        _check_names(self.places)
        if self.fact == self.to:
            raise BadInput(f"{self.fact} would stay as it is", "Say what it should be instead")


@dataclass(frozen=True, slots=True)
class Drop:
    """A wrong fact.

    Attributes:
        places: where it is wrong: sources, documents or passages; everywhere if empty.
    """

    fact: Statement
    places: tuple[str, ...] = ()
    kind: Literal["drop"] = "drop"

    def __post_init__(self) -> None:
        _check_names(self.places)


@dataclass(frozen=True, slots=True)
class Pin:
    """A right fact of a passage, which stands whatever the extractor finds.

    Raises:
        BadInput: it has no relation type, or the passage's id cannot be one.
    """

    fact: Statement
    passage: str
    kind: Literal["pin"] = "pin"

    def __post_init__(self) -> None:
        _check_names((self.passage,))
        if not self.fact.relation:
            raise BadInput(f"{self.fact} has no relation type", "Give one: a pinned fact stands with it")


What = Merge | Apart | Split | Change | Drop | Pin
"""The change that a correction makes."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction as a record keeps it.

    Attributes:
        id: counts up; the later of two corrections has the last word.
        made_at, undone_at: times in ISO 8601, UTC; ``undone_at`` is empty while it stands.
    """

    id: int
    what: What
    note: str
    made_at: str
    undone_at: str = ""

    @property
    def stands(self) -> bool:
        """Whether it was not undone."""
        return not self.undone_at

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values, as it is listed and exported."""
        details = {"note": self.note, "made_at": self.made_at, "undone_at": self.undone_at}
        return {"id": self.id, **what_to_json(self.what), **details}


def what_to_json(what: What) -> dict[str, Any]:
    """Return what a correction says as plain values, its kind first."""
    return {"kind": what.kind, **{name: value for name, value in asdict(what).items() if name != "kind"}}


def what_from_json(value: Mapping[str, Any]) -> What:
    """Return what a correction says from plain values.

    Raises:
        BadInput: they are not those of one.
    """
    from pydantic import Discriminator, TypeAdapter, ValidationError

    adapter: TypeAdapter[What] = TypeAdapter(Annotated[What, Discriminator("kind")])
    try:
        return adapter.validate_python(value, extra="forbid")
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise BadInput(f"That is no correction: {place}: {first['msg']}", "See docs/corrections.md") from fault


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        _check_text(name)
        if not normalise_name(name):
            raise BadInput(f"{name!r} names nothing", "Give a name, a source, a document or a passage")


def _check_relation(name: str) -> None:
    with suppress(ValueError):
        if (relation := RelationType(name)) in ENTITY_RELATIONS or relation.is_own:
            return
    known = ", ".join(each.value for each in ENTITY_RELATIONS)
    raise BadInput(f"{name[:60]!r} is no relation type of a fact", f"Give {known} or one of your own")


def _check_text(text: str) -> None:
    if has_controls(text) or not is_unicode(text) or len(text) > MAX_ID:
        hint = f"Give {MAX_ID:,} characters at most, and no control characters"
        raise BadInput(f"{text[:60]!r} cannot be kept", hint)
