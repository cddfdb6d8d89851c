"""Graphs, links between them, and what is derived from a graph alone: names, neighbourhoods, schema."""

from rlea.graph.knowledge_graph import LITERAL_COLUMNS, GraphPair, Ids, KnowledgeGraph, Links, Literals, choose_pool

__all__ = ["LITERAL_COLUMNS", "GraphPair", "Ids", "KnowledgeGraph", "Links", "Literals", "choose_pool"]
