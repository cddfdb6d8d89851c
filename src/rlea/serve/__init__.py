"""A web service that reconciles names with the entities of a graph, by the Reconciliation Service API 0.2."""
