"""The shown part of the graph as GraphML, which igraph, networkx, Gephi and others read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

from workflows.explanation.model import Explanation

_Values = Mapping[str, tuple[str, Callable[[Any], str | float | int | None]]]

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_NODE: _Values = {
    "kind": ("string", lambda node: node.kind),
    "label": ("string", lambda node: node.label),
    "ref": ("string", lambda node: node.ref),
    "mass": ("double", lambda node: _last(node.mass)),
    "restart": ("double", lambda node: _last(node.restart)),
    "number": ("int", lambda node: node.number),
    "type": ("string", lambda node: node.type or None),
}
_EDGE: _Values = {
    "relation": ("string", lambda edge: edge.relation),
    "link": ("string", lambda edge: edge.link),
    "predicates": ("string", lambda edge: "; ".join(edge.predicates) or None),
    "weight": ("double", lambda edge: edge.weight),
    "forward": ("double", lambda edge: _last(edge.forward)),
    "backward": ("double", lambda edge: _last(edge.backward)),
}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_graphml(explanation: Explanation) -> str:
    """Return the nodes and edges with their numbers at the run's own stop.

    Characters that XML cannot hold become U+FFFD. What a node or an edge does not have is left out.
    """
    root = Xml.Element("graphml", xmlns=_NAMESPACE)
    for name, values in (("node", _NODE), ("edge", _EDGE)):
        for key, (kind, _) in values.items():
            described = {"id": f"{name}_{key}", "for": name, "attr.name": key, "attr.type": kind}
            Xml.SubElement(root, "key", described)
    graph = Xml.SubElement(root, "graph", id="explanation", edgedefault="directed")
    for node in explanation.nodes:
        _add(Xml.SubElement(graph, "node", id=node.id), node, _NODE)
    for edge in explanation.edges:
        _add(Xml.SubElement(graph, "edge", id=edge.id, source=edge.source, target=edge.target), edge, _EDGE)
    Xml.indent(root, " ")
    return Xml.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _last(numbers: Sequence[float]) -> float | None:
    return numbers[-1] if numbers else None


def _add(element: Xml.Element, told: object, values: _Values) -> None:
    for key, (_, value_of) in values.items():
        value = value_of(told)
        if value is not None:
            data = Xml.SubElement(element, "data", key=f"{element.tag}_{key}")
            data.text = _NO_XML.sub("\ufffd", str(value))
