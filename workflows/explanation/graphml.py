"""The shown part of the graph as GraphML, which igraph, networkx, Gephi and others read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as Xml

from workflows.explanation.model import Edge, Explanation, Node

Value = str | float | int | None

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_NODE_KEYS = {
    "kind": "string",
    "label": "string",
    "ref": "string",
    "mass": "double",
    "restart": "double",
    "number": "int",
    "type": "string",
}
_EDGE_KEYS = {
    "relation": "string",
    "link": "string",
    "predicates": "string",
    "weight": "double",
    "forward": "double",
    "backward": "double",
}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_graphml(explanation: Explanation) -> str:
    """Return the nodes and edges with their numbers at the run's own stop.

    Characters that XML cannot hold become U+FFFD. What a node or an edge does not have is left out.
    """
    root = Xml.Element("graphml", xmlns=_NAMESPACE)
    for name, keys in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for key, kind in keys.items():
            described = {"id": f"{name}_{key}", "for": name, "attr.name": key, "attr.type": kind}
            Xml.SubElement(root, "key", described)
    graph = Xml.SubElement(root, "graph", id="explanation", edgedefault="directed")
    for node in explanation.nodes:
        _add(graph, "node", {"id": node.id}, _of_node(node))
    for edge in explanation.edges:
        ends = {"id": edge.id, "source": edge.source, "target": edge.target}
        _add(graph, "edge", ends, _of_edge(edge))
    Xml.indent(root, " ")
    return Xml.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _of_node(node: Node) -> Mapping[str, Value]:
    return {
        "kind": node.kind,
        "label": node.label,
        "ref": node.ref,
        "mass": _last(node.mass),
        "restart": _last(node.restart),
        "number": node.number,
        "type": node.type or None,
    }


def _of_edge(edge: Edge) -> Mapping[str, Value]:
    return {
        "relation": edge.relation,
        "link": edge.link,
        "predicates": "; ".join(edge.predicates) or None,
        "weight": edge.weight,
        "forward": _last(edge.forward),
        "backward": _last(edge.backward),
    }


def _last(numbers: Iterable[float]) -> float | None:
    return list(numbers)[-1] if numbers else None


def _add(graph: Xml.Element, name: str, attributes: Mapping[str, str], values: Mapping[str, Value]) -> None:
    element = Xml.SubElement(graph, name, dict(attributes))
    for key, value in values.items():
        if value is not None:
            data = Xml.SubElement(element, "data", key=f"{name}_{key}")
            data.text = _NO_XML.sub("\ufffd", str(value))
