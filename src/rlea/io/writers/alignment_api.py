"""Links in the RDF/XML format of the Alignment API, which the ontology matching campaigns exchange."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

from rlea.io.writers.iris import strict_iri
from rlea.io.writers.rows import LinkRows

ALIGNMENT = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_XSD = "http://www.w3.org/2001/XMLSchema#"


def put_links_alignment(path: Path, rows: LinkRows) -> None:
    """Write one Cell per link, with the relation `=` and the confidence as its measure."""
    one_to_one = len(set(rows.sources)) == len(rows) == len(set(rows.targets))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n')
        file.write(f'<rdf:RDF xmlns="{ALIGNMENT}" xmlns:rdf="{_RDF}">\n')
        # Level 0: entities are named by IRIs. The type 11 is one-to-one, ** any-to-any.
        file.write(f"<Alignment>\n<xml>yes</xml>\n<level>0</level>\n<type>{'11' if one_to_one else '**'}</type>\n")
        for first, second, confidence in zip(rows.sources, rows.targets, rows.printed_confidences(), strict=True):
            file.write(
                f"<map><Cell>\n<entity1 rdf:resource={_attribute(first)}/>\n"
                f"<entity2 rdf:resource={_attribute(second)}/>\n"
                f'<relation>=</relation>\n<measure rdf:datatype="{_XSD}float">{confidence}</measure>\n</Cell></map>\n'
            )
        file.write("</Alignment>\n</rdf:RDF>\n")


def _attribute(identifier: str) -> str:
    return quoteattr(strict_iri(identifier))
