"""``where``: conditions on the metadata of passages, checked, applied to a value, and as the command line has them.

Values compare by type: text with text, numbers with numbers. Numbers and dates compare by size.
"""

from __future__ import annotations

import json
import math
import re
from calendar import isleap, monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import ge, gt, le, lt
from typing import Any

from graph.errors import BadInput
from graph.schema import MetadataValue, Passage
from graph.text import is_unicode

MAX_CONDITIONS = 50
"""Conditions that a filter may have."""

MAX_VALUES = 1_000
"""Values that the lists of a filter may hold together."""

MAX_CHARACTERS = 1_000
"""Characters of a key or a value."""

_RESERVED = "mara_fingerprint"
_RESERVED_PREFIXES = ("#", "$", "chroma:", "mara_date:")
_EQUALITIES, _LISTS, RANGES = ("$eq", "$ne"), ("$in", "$nin"), ("$gt", "$gte", "$lt", "$lte")
_OPERATORS = (*_EQUALITIES, *_LISTS, *RANGES)
_LEAST_INTEGER, _GREATEST_INTEGER = -(2**63), 2**63 - 1
_ALLOWED = (
    f"Give a text of at most {MAX_CHARACTERS:,} characters, a finite number of 64 bits, true or false; or an object of"
    ' {"$eq" or "$ne": such a value}, {"$in" or "$nin": a list of them},'
    ' {"$gt", "$gte", "$lt" or "$lte": a number, or a date such as "2020-05-31"}'
)

_ISO_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})"
    r"([T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400.0

_SIGN = re.compile(r"!=|<=|>=|=|<|>")
_RANGE_OF_SIGN = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on one key; the operand of ``$in`` and ``$nin`` is a tuple."""

    key: str
    operator: str
    operand: MetadataValue | tuple[MetadataValue, ...]


def read_conditions(where: object) -> tuple[Condition, ...]:
    """Return the conditions of a filter such as ``{"tenant": "a", "year": {"$gte": 2000, "$lt": 2010}}``.

    Raises:
        BadInput: something in it is no condition, or there is too much of it; the message names the key, the hint says
            what may stand there.
    """
    if not isinstance(where, Mapping):
        raise BadInput(f"`where` is of type {type(where).__name__}", "Give an object of keys and conditions")
    conditions = [condition for key, wanted in where.items() for condition in _read_key(key, wanted)]
    values = sum(len(each.operand) for each in conditions if isinstance(each.operand, tuple))
    if len(conditions) > MAX_CONDITIONS or values > MAX_VALUES:
        raise BadInput(
            f"`where` has {len(conditions):,} conditions, and {values:,} values in lists",
            f"Give {MAX_CONDITIONS} conditions and {MAX_VALUES:,} values at most",
        )
    return tuple(conditions)


def narrowed(fixed: Mapping[str, Any], where: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the filter that a server's own and a client's make together: it selects no more than the server's.

    A key takes one condition per operator, and all hold; the client may repeat one of the server's, not replace it.

    Raises:
        BadInput: the client would replace one, a filter holds something else than conditions, or there are too many.
    """
    both: dict[str, dict[str, Any]] = {}
    for condition in (*read_conditions(fixed), *read_conditions(where)):
        operand = list(condition.operand) if isinstance(condition.operand, tuple) else condition.operand
        wanted = both.setdefault(condition.key, {})
        if json.dumps(wanted.setdefault(condition.operator, operand)) != json.dumps(operand):
            raise BadInput(
                f"The server has a condition with {condition.operator} on {condition.key!a} itself",
                "Use another operator on that key, or leave it out",
            )
    read_conditions(both)
    return both


def where_schema() -> dict[str, Any]:
    """Return the JSON schema of a filter, as forms and other programs read it."""
    value = {"type": ["string", "number", "boolean"], "maxLength": MAX_CHARACTERS}
    number_or_date = {"type": ["number", "string"], "maxLength": MAX_CHARACTERS}
    values = {"type": "array", "items": value, "minItems": 1, "maxItems": MAX_VALUES}
    schemas = ((_EQUALITIES, value), (_LISTS, values), (RANGES, number_or_date))
    operands = {operator: schema for operators, schema in schemas for operator in operators}
    condition = {"type": "object", "properties": operands, "additionalProperties": False, "minProperties": 1}
    return {
        "type": "object",
        "additionalProperties": {"anyOf": [value, condition]},
        "propertyNames": {"minLength": 1, "maxLength": MAX_CHARACTERS},
        "maxProperties": MAX_CONDITIONS,
    }


def canonical(conditions: Sequence[Condition]) -> str:
    """Return a text that is the same for the same conditions, in whatever order they were given."""
    return json.dumps(sorted([each.key, each.operator, json.dumps(each.operand)] for each in conditions))


def askable_metadata(metadata: Mapping[str, MetadataValue]) -> dict[str, MetadataValue]:
    """Return the metadata for conditions: those whose keys are not reserved."""
    return {key: value for key, value in metadata.items() if not _is_reserved(key)}


def askable_keys(passage: Passage) -> set[str]:
    """Return the keys of a passage that conditions may ask for; its source has one, too."""
    return {"source", *(key for key in passage.metadata if not _is_reserved(key))}


def date_span(text: str) -> tuple[float, float] | None:
    """Return the first moment of an ISO 8601 date and the first after it, in seconds since 1970 UTC, if it is one.

    A year, a month or a day spans its length; a time of day is a moment, in UTC where it names no offset.
    """
    match = _ISO_DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, clock = match.groups()
    try:
        start = datetime.fromisoformat(f"{year}-{month or '01'}-{day or '01'}{clock or ''}")
    except ValueError:
        return None
    moment = (start if start.tzinfo else start.replace(tzinfo=UTC)) - _EPOCH
    first = moment / timedelta(seconds=1)
    if clock:
        return first, first
    days = 1 if day else monthrange(start.year, start.month)[1] if month else 365 + isleap(start.year)
    return first, first + days * _DAY_S


def json_number(text: str) -> int | float | None:
    """Return the number that a text is in JSON, if it can be stored; None where it is none."""
    if len(text) > MAX_CHARACTERS or not _JSON_NUMBER.fullmatch(text):
        return None
    number: int | float = json.loads(text)
    return number if is_storable(number) else None


def is_storable(number: int | float) -> bool:
    """Tell whether a number is finite and, as an integer, has no more than 64 bits."""
    return _LEAST_INTEGER <= number <= _GREATEST_INTEGER if isinstance(number, int) else math.isfinite(number)


def parse_where(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the filter of conditions such as ``tenant=a``, ``tenant!=b``, ``year>=2000``: all are to hold.

    A value that reads as a number, true or false in JSON is compared both as that and as text.

    Raises:
        BadInput: one is no condition, or asks the same of a key as another.
    """
    where: dict[str, dict[str, Any]] = {}
    for text in texts:
        key, sign, value = _split(text)
        wanted = where.setdefault(key, {})
        if sign == "!=":
            wanted.setdefault("$nin", []).extend(_readings(value))
            continue
        operator = _RANGE_OF_SIGN.get(sign, "$in")
        if operator in wanted:
            raise BadInput(
                f"{_shown(key)} is to be {sign} two values",
                "Give one; Python and a file of keys take several, with $in",
            )
        wanted[operator] = _readings(value) if sign == "=" else _bound(text, value)
    return where


def _read_key(key: object, wanted: Any) -> Iterator[Condition]:
    if not isinstance(key, str) or _is_reserved(key) or not _is_text(key):
        reserved = ", ".join((_RESERVED, *(f"{prefix}..." for prefix in _RESERVED_PREFIXES)))
        raise BadInput(
            f"`where` cannot ask for {_shown(str(key))}",
            f"Name metadata by a text of at most {MAX_CHARACTERS:,} characters; reserved are {reserved}",
        )
    operands: Mapping[Any, Any] = wanted if isinstance(wanted, Mapping) else {"$eq": wanted}
    if not operands or not all(_is_operand(operator, operand) for operator, operand in operands.items()):
        raise BadInput(f"The condition of `where` on {_shown(key)} cannot be used", _ALLOWED)
    for operator, operand in operands.items():
        yield Condition(key, operator, tuple(operand) if isinstance(operand, list | tuple) else operand)


def _is_operand(operator: object, operand: object) -> bool:
    if operator in _LISTS:
        return isinstance(operand, list | tuple) and len(operand) > 0 and all(map(_is_value, operand))
    if operator in RANGES and (isinstance(operand, bool) or (isinstance(operand, str) and not date_span(operand))):
        return False
    return operator in _OPERATORS and _is_value(operand)


def _is_value(value: object) -> bool:
    return _is_text(value) if isinstance(value, str) else isinstance(value, int | float) and is_storable(value)


def _is_text(text: str) -> bool:
    return len(text) <= MAX_CHARACTERS and is_unicode(text)


def _shown(text: str, limit: int = 60) -> str:
    return ascii(text if len(text) <= limit else f"{text[:limit]}...")


def _is_reserved(key: str) -> bool:
    return not key or key == _RESERVED or key.startswith(_RESERVED_PREFIXES)


def _split(text: str) -> tuple[str, str, str]:
    """Return key, sign and value of a condition of the command line."""
    sign = _SIGN.search(text)
    key = text[: sign.start()].strip() if sign else ""
    value = text[sign.end() :].strip() if sign else ""
    if not sign or not key or (sign[0] == "=" and value.startswith(("=", "<", ">"))):
        raise BadInput(f"{_shown(text)} is no condition", "Write KEY=VALUE, or one of != < <= > >= between the two")
    return key, sign[0], value


def _readings(value: str) -> list[MetadataValue]:
    """Return the value as text and, where JSON would read it so, as a number, true or false."""
    if value in ("true", "false"):
        return [value, value == "true"]
    number = json_number(value)
    return [value] if number is None else [value, number]


def _bound(text: str, value: str) -> str | int | float:
    """Return the value of a range: a date, which a year is too, or a number."""
    if date_span(value):
        return value
    number = json_number(value)
    if number is None:
        raise BadInput(f"{_shown(text)} compares with what has no size", "Give a number, or a date such as 2020-05-31")
    return number


_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
EXCLUDING = {"$ne": "$eq", "$nin": "$in"}
"""Operators that hold where another one does not, also of a passage without the key."""


def meets(conditions: Sequence[Condition], source: str, metadata: Mapping[str, MetadataValue]) -> bool:
    """Tell whether a passage of that source and metadata meets all conditions."""
    values = {**metadata, "source": source}
    return all(holds(condition, values.get(condition.key)) for condition in conditions)


def holds(condition: Condition, value: MetadataValue | None) -> bool:
    """Tell whether a condition holds of a passage with this value under its key; None where it has none."""
    operator, operand = condition.operator, condition.operand
    if operator in EXCLUDING:
        return not holds(replace(condition, operator=EXCLUDING[operator]), value)
    if isinstance(operand, tuple):
        return any(_is_equal(value, each) for each in operand)
    if operator == "$eq":
        return _is_equal(value, operand)
    if isinstance(value, str):
        return isinstance(operand, str) and _is_within(operator, value, operand)
    if value is None or isinstance(value, bool) or (isinstance(operand, str) and not operand.isdigit()):
        return False
    return _COMPARED[operator](value, int(operand) if isinstance(operand, str) else operand)


def _is_equal(value: MetadataValue | None, other: MetadataValue) -> bool:
    """Tell whether two values are equal: numbers by size, others by type, too."""
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (value, other))
    return value == other and (numbers or type(value) is type(other))


def _is_within(operator: str, text: str, date: str) -> bool:
    """Tell whether a text is a date whose first moment is before, or from its end on after, another date."""
    span, asked = date_span(text), date_span(date)
    if span is None or asked is None:
        return False
    first, following = asked
    if first < following and operator in ("$gt", "$lte"):
        return (span[0] >= following) is (operator == "$gt")
    return _COMPARED[operator](span[0], first)
