"""Graphs on disk (`.rlea`), as `rlea.io.readers.graph_files` opens them."""

from __future__ import annotations

from pathlib import Path

from rlea.graph import KnowledgeGraph
from rlea.graph.texts import Texts
from rlea.io.array_files import content_hash, put_safetensors
from rlea.io.readers.graph_files import FORMAT, VERSION

GRAPH_FORMAT = "rlea"


def put_graph_file(temporary: Path, graph: KnowledgeGraph) -> None:
    """Write a graph to `temporary`; the same graph with the same notes gives the same bytes."""
    literals = graph.literals
    texts = {
        "entities": graph.entities,
        "relations": Texts.of(graph.relations),
        "attributes": Texts.of(graph.attributes),
        "names": graph.names,
        "values": literals.values,
        "datatypes": Texts.of(literals.datatypes.levels),
        "languages": Texts.of(literals.languages.levels),
    }
    arrays = {
        "triples": graph.triples,
        "entity_ids": literals.entity_ids,
        "attribute_ids": literals.attribute_ids,
        "datatype_ids": literals.datatypes.codes,
        "language_ids": literals.languages.codes,
    }
    for name, column in texts.items():
        arrays |= {name: column.joined, f"{name} starts": column.starts}
    about = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": graph.fingerprint,
        "notes": list(graph.notes),
        "columns": list(graph.columns),
    }
    put_safetensors(temporary, arrays, {**about, "sha256": content_hash(arrays, about)}, sort_keys=True)
