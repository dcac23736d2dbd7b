"""The relationship graph as GraphML, which igraph, networkx, Gephi and others read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from xml.sax.saxutils import escape, quoteattr

from graph.relationships.exchange.lines import Part
from graph.relationships.schema import EDGES, NODES, Node, Property, PropertyKind, PropertyValue

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KINDS = {PropertyKind.INTEGER: "long", PropertyKind.REAL: "double"}


def to_graphml(parts: Iterable[Part], counts: Mapping[str, int] = MappingProxyType({})) -> Iterator[str]:
    """Yield the lines of a GraphML file of some nodes and of the edges between them, nodes first.

    ``counts`` are numbers of the graph as a whole. A node has its type as ``kind`` and its id as ``ref``, an edge its
    type as ``kind``. Characters that XML cannot hold become U+FFFD. What a node or an edge does not have is left out.
    """
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name, keys in (("graph", dict.fromkeys(counts, "long")), ("node", _node_keys()), ("edge", _edge_keys())):
        for key, kind in keys.items():
            yield f'<key id="{name}_{key}" for="{name}" attr.name="{key}" attr.type="{kind}"/>\n'
    yield '<graph id="relationships" edgedefault="directed">\n'
    yield f"{_data('graph', counts)}\n" if counts else ""
    numbers: dict[tuple[str, str], int] = {}
    for part in parts:
        if isinstance(part, Node):
            number = numbers.setdefault((part.type, part.id), len(numbers))
            values = _data("node", {"kind": part.type, "ref": part.id, **part.properties})
            yield f'<node id="n{number}">{values}</node>\n'
            continue
        ends = [numbers.get(end) for end in (part.source, part.target)]
        if None not in ends:
            values = _data("edge", {"kind": part.type, **part.properties})
            yield f'<edge source="n{ends[0]}" target="n{ends[1]}">{values}</edge>\n'
    yield "</graph>\n</graphml>\n"


def _data(name: str, values: Mapping[str, PropertyValue]) -> str:
    return "".join(
        f"<data key={quoteattr(f'{name}_{key}')}>{escape(_NO_XML.sub(chr(0xFFFD), str(value)))}</data>"
        for key, value in values.items()
        if value is not None
    )


def _node_keys() -> dict[str, str]:
    return {"kind": "string", "ref": "string", **_kinds(NODES.values())}


def _edge_keys() -> dict[str, str]:
    return {"kind": "string", **_kinds(schema.properties for schema in EDGES.values())}


def _kinds(declared: Iterable[Mapping[str, Property]]) -> dict[str, str]:
    return {name: _KINDS.get(each.kind, "string") for properties in declared for name, each in properties.items()}
