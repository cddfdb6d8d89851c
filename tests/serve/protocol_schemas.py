"""JSON schemas of the answers of a service, by the text of the Reconciliation Service API 0.2."""

TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def listed(items):
    return {"type": "array", "items": items}


def record(required, optional=None, closed=True):
    properties = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": not closed,
    }


ENTRY = {"id": TEXT, "name": TEXT}
TYPE = record(ENTRY)
ADDRESS = {"type": "string", "pattern": "^https?://"}
WITH_ID = {"type": "string", "pattern": r"^https?://.*\{\{id\}\}"}
PATH = record({"service_url": ADDRESS, "service_path": {"type": "string", "pattern": "^/"}})
MANIFEST = record(
    {
        "versions": {**listed(TEXT), "contains": {"const": "0.2"}},
        "name": TEXT,
        "identifierSpace": {"type": "string", "pattern": "^[a-z]+:"},
        "schemaSpace": {"type": "string", "pattern": "^[a-z]+:"},
    },
    {
        "serviceVersion": TEXT,
        "defaultTypes": {**listed(TYPE), "uniqueItems": True},
        "view": record({"url": WITH_ID}),
        "preview": record({"url": WITH_ID, "width": {"type": "integer"}, "height": {"type": "integer"}}),
        "suggest": record({}, dict.fromkeys(("entity", "property", "type"), PATH)),
        "extend": record({}, {"propose_properties": PATH, "property_settings": listed(record({}, closed=False))}),
        "batchSize": {"type": "integer", "minimum": 1},
    },
)
CANDIDATE = record(
    {**ENTRY, "score": {**NUMBER, "minimum": 0, "maximum": 100}, "match": {"type": "boolean"}, "type": listed(TYPE)},
    {"description": TEXT, "features": listed(record({"id": TEXT, "value": {"type": ["number", "boolean"]}}))},
)
RESULTS = {"type": "object", "additionalProperties": record({"result": listed(CANDIDATE)})}
SUGGESTED = record({"result": listed(record(ENTRY, {"description": TEXT}))})
SUGGESTED_ENTITIES = record({"result": listed(record(ENTRY, {"description": TEXT, "notable": listed(TYPE)}))})
PROPOSED = record({"properties": listed(record(ENTRY))}, {"type": TEXT, "limit": NUMBER})
MOMENT = {"type": "string", "pattern": r"^-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$"}
CELL = {
    "oneOf": [
        record({}),
        record(ENTRY, {"description": TEXT}),
        record({"str": TEXT}),
        record({"float": NUMBER}),
        record({"int": {"type": "integer"}}),
        record({"date": MOMENT}),
    ]
}
EXTENDED = record(
    {
        "meta": listed(record(ENTRY, {"type": TYPE, "service": ADDRESS})),
        "rows": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": listed(CELL)},
        },
    }
)
ERROR = record({"status": {"const": "error"}, "message": {"type": "string", "pattern": r"^[A-Z].*\.$"}})
