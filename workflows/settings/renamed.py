"""Settings by the names of the release before, which work for one more: no other place knows them."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

from graph.server_clients import serves_clients

_OURS = ("workflows", "pydantic", "langgraph", "contextlib")
_LOG = logging.getLogger(__name__)


class RenamedSetting(DeprecationWarning):
    """A setting was given by its earlier name."""


class SettingsForm(BaseModel):
    """Settings, some of them parts of an object; it takes paths such as ``walk.damping``, and earlier names.

    Attributes:
        earlier: the path of today of each earlier name.
    """

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    earlier: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def path_of(cls, name: str) -> str:
        """Return the path of a setting that a person typed: the last part of its path will do."""
        path = cls.earlier.get(name, name)
        if not path.endswith(name):
            _tell(name, path)
        return path

    @classmethod
    def known_names(cls) -> dict[str, str]:
        """Return the names that there are and were, each with the path of today."""
        paths = {path: path for path in cls.earlier.values()}
        return {name: name for name in cls.model_fields} | paths | dict(cls.earlier)

    @model_validator(mode="before")
    @classmethod
    def _in_present_names(cls, data: Any) -> Any:
        """Put the parts of an object into it. Raises ValueError for one that is given twice."""
        if not isinstance(data, Mapping):
            return data
        for name in data.keys() & cls.earlier.keys():
            _tell(name, cls.earlier[name])
        return _with_parts({cls.earlier.get(name, name): value for name, value in data.items()})

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the schema that forms are drawn from, by which a LangGraph server takes earlier names, too."""
        schema = super().model_json_schema(*args, **kwargs)
        schema["properties"] = _Properties(schema["properties"], cls.earlier)
        return schema


class _Properties(dict[str, Any]):
    """The properties of a schema; a server that asks whether it has an earlier name hears that it does.

    It would drop the setting unseen; and a form that listed earlier names would offer each setting twice.
    """

    def __init__(self, properties: Mapping[str, Any], earlier: Mapping[str, str]) -> None:
        super().__init__(properties)
        self._earlier = earlier

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._earlier


def _with_parts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those that are named by a path within their objects."""
    whole = {name: value for name, value in settings.items() if "." not in str(name)}
    for path in [name for name in settings if name not in whole]:
        name, _, part = path.partition(".")
        around = whole.get(name) or {}
        parts = around.model_dump(exclude_unset=True) if isinstance(around, BaseModel) else around
        if not isinstance(parts, Mapping):
            continue
        if part in parts:
            raise ValueError(f"{path} is given twice")
        whole[name] = {**parts, part: settings[path]}
    return whole


def _tell(name: str, path: str) -> None:
    """Warn the code outside of this package that gave a name; a server tells its log."""
    line = f"The setting {name} is now {path}; the earlier name goes with the next release"
    if serves_clients():
        _LOG.warning(line)
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(line, RenamedSetting, stacklevel=level)
