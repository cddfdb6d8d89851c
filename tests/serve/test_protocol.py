"""A client of the protocol: every answer is checked by schema, and says what was planted."""

import json
import urllib.parse

import pytest
from jsonschema import validate

from serve import protocol_schemas as schemas

X = "http://x.example/"


def test_the_manifest_says_what_there_is(client):
    answer = client.ask()
    validate(answer.json, schemas.MANIFEST)
    assert answer.json["name"] == "towns"
    assert answer.json["identifierSpace"] == X
    assert answer.json["defaultTypes"][0] == {"id": X + "Town", "name": "Town"}
    for service in (answer.json["extend"]["propose_properties"], *answer.json["suggest"].values()):
        path = service["service_url"].removeprefix(client.address) + service["service_path"]
        assert client.ask(path, prefix="a").status == 200
    for key in ("view", "preview"):
        page = client.ask(answer.json[key]["url"].removeprefix(client.address).replace("{{id}}", X + "t0"))
        assert "Alderbrook" in page.text


@pytest.mark.parametrize("is_post", [True, False])
def test_a_batch_is_answered_by_get_and_post(client, is_post):
    queries = {"q0": {"query": "Alderbrook"}, "another": {"query": "alderbrok", "limit": 2}, "none": {"query": "7 ¿?"}}
    given = {"queries": json.dumps(queries)}
    answer = client.ask(form=given) if is_post else client.ask(**given)
    validate(answer.json, schemas.RESULTS)
    assert list(answer.json) == list(queries)
    for key in ("q0", "another"):
        assert answer.json[key]["result"][0]["id"] == X + "t0"
    best = answer.json["q0"]["result"][0]
    assert best["match"]
    assert best["score"] >= 90
    assert best["type"] == [{"id": X + "Town", "name": "Town"}]
    assert len(answer.json["another"]["result"]) == 2
    assert answer.json["none"]["result"] == []
    scores = [one["score"] for one in answer.json["q0"]["result"]]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) <= 100.1


def test_an_identifier_and_other_names_are_found(client):
    for text in (X + "msk", "Moskva", "москва", "capital of the bears"):
        found = client.reconcile(query=text)
        assert (found[0]["id"], found[0]["name"]) == (X + "msk", "Москва")


def test_types_restrict_the_candidates(client):
    names = {one["name"] for one in client.reconcile(query="North Marland", type=X + "Town")}
    assert names
    assert "North Marland" not in names
    assert client.reconcile(query="North Marland", type=[X + "State"])[0]["name"] == "North Marland"
    assert client.reconcile(query="Alderbrook", type=X + "Unknown") == []
    assert client.reconcile(query="Alderbrook", type=[X + "Town", X + "State"], type_strict="all") == []
    both = client.reconcile(query="Alderbrook", type=[X + "Unknown"], type_strict="should")
    assert both[0]["name"] == "Alderbrook"


def test_namesakes_are_no_match_unless_a_property_tells_them_apart(client):
    alone = client.reconcile(query="Springvale")
    assert not alone[0]["match"]
    assert alone[0]["score"] == alone[1]["score"] <= 50
    for value in ({"id": X + "s1", "name": "South Marland"}, "south marland", ["Nowhere", "South Marland"]):
        told = client.reconcile(query="Springvale", properties=[{"pid": X + "state", "v": value}])
        assert told[0]["id"] == X + "twin1"
        assert told[0]["score"] > 2 * told[1]["score"]


def test_numbers_and_dates_count_as_text_does(client):
    for name, value in (("people", 1000), ("people", "1,000"), ("people", 1001.5), ("founded", "1600")):
        alone = client.reconcile(query="Alderbrok")[0]
        told = client.reconcile(query="Alderbrok", properties=[{"pid": X + name, "v": value}])[0]
        against = client.reconcile(query="Alderbrok", properties=[{"pid": X + name, "v": "1999"}])[0]
        assert told["id"] == X + "t0"
        assert told["score"] > alone["score"] > against["score"]
    unknown = client.reconcile(query="Alderbrok", properties=[{"pid": "nothing", "v": True}])
    assert unknown == client.reconcile(query="Alderbrok")


def test_properties_alone_find_entities_that_have_the_values(client):
    found = client.reconcile(properties=[{"pid": X + "people", "v": "1037"}, {"pid": X + "state", "v": "Ostrava"}])
    assert found[0]["name"] == "Alderfield"


def test_suggestions_begin_with_the_letters_and_go_on_at_the_cursor(client):
    first = client.ask("/suggest/entity", prefix="al").json
    validate(first, schemas.SUGGESTED_ENTITIES)
    assert [one["name"] for one in first["result"]] == sorted(f"Alder{end}" for end in
        ("brook", "field", "ford", "haven", "hill", "mouth", "port", "stead", "wick", "worth"))  # fmt: skip
    more = client.ask("/suggest/entity", prefix="al", cursor=7).json["result"]
    assert more == first["result"][7:]
    assert client.ask("/suggest/entity", prefix=X + "t3").json["result"][0]["name"] == "Alderhaven"
    assert client.ask("/suggest/entity", prefix="lderhavn").json["result"][0]["name"] == "Alderhaven"
    for kind, prefix, name in (("property", "peo", "people"), ("type", "to", "Town")):
        answer = client.ask(f"/suggest/{kind}", prefix=prefix).json
        validate(answer, schemas.SUGGESTED)
        assert answer["result"] == [{"id": X + name, "name": name}]


def test_values_are_fetched_with_their_kinds(client):
    names = ("state", "people", "since", "share", "motto")
    wanted = {"ids": [X + "t5", X + "bad", "nobody"], "properties": [{"id": X + name} for name in names]}
    answer = client.ask(form={"extend": json.dumps(wanted)}).json
    validate(answer, schemas.EXTENDED)
    assert answer["meta"][0] == {"id": X + "state", "name": "state"}
    town, bad, nobody = (answer["rows"][key] for key in wanted["ids"])
    assert town[X + "state"] == [{"id": X + "s1", "name": "South Marland"}]
    assert town[X + "people"] == [{"int": 1185}]
    assert bad[X + "since"] == [{"date": "2001-02-03T04:05:06Z"}]
    assert bad[X + "share"] == [{"float": 0.5}]
    assert bad[X + "motto"] == [{"str": "<img src=x onerror=alert(2)>"}]
    assert set(map(len, nobody.values())) == {0}


def test_properties_are_proposed_by_type(client):
    answer = client.ask("/properties", type=X + "Town", limit=2).json
    validate(answer, schemas.PROPOSED)
    assert len(answer["properties"]) == 2
    found = {one["name"] for one in client.ask("/properties", type=X + "Town").json["properties"]}
    assert found == {"label", "state", "people", "founded"}
    assert "motto" in {one["name"] for one in client.ask("/properties").json["properties"]}


@pytest.mark.parametrize("path", ["/view", "/preview"])
def test_pages_escape_what_the_graph_says(client, path):
    page = client.ask(path, id=X + "bad")
    assert page.headers["Content-Type"].startswith("text/html")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; Sons" in page.text
    assert "<script" not in page.text
    assert "<img" not in page.text


def test_the_page_of_an_entity_links_to_others(client):
    page = client.ask("/view", id=X + "t1").text
    assert f'<a href="view?id={urllib.parse.quote(X + "s1", safe="")}">South Marland</a>' in page


BAD = [
    ({"queries": "{"}, "no valid JSON"),
    ({"queries": "[" * 100_000}, "no valid JSON"),
    ({"queries": "[]"}, "no JSON object"),
    ({"queries": '{"q": 1}'}, "no JSON object"),
    ({"queries": '{"q": {}}'}, "neither a text nor properties"),
    ({"queries": '{"q": {"query": " ", "properties": []}}'}, "neither a text nor properties"),
    ({"queries": '{"q": {"query": 5}}'}, "no string"),
    ({"queries": '{"q": {"query": "a", "limit": 0}}'}, "whole number"),
    ({"queries": '{"q": {"query": "a", "limit": NaN}}'}, "whole number"),
    ({"queries": '{"q": {"query": "a", "type": 3}}'}, "type"),
    ({"queries": '{"q": {"query": "a", "properties": {"a": 1}}}'}, "list"),
    ({"queries": '{"q": {"query": "a", "properties": [{"pid": "p"}]}}'}, "lacks pid or v"),
    ({"queries": '{"q": {"query": "a", "properties": [{"pid": "p", "v": [[]]}]}}'}, "neither text"),
    ({"extend": "{}"}, "ids"),
    ({"extend": '{"ids": ["a"], "properties": ["p"]}'}, "objects with an id"),
    ({"queries": "{}", "callback": "alert(1)//"}, "callback"),
]


@pytest.mark.parametrize(("form", "words"), BAD)
def test_a_bad_request_gets_one_sentence(client, form, words):
    answer = client.ask(form=form)
    assert answer.status == 400
    validate(answer.json, schemas.ERROR)
    assert words in answer.json["message"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nowhere", 404),
        ("/view?id=nobody", 404),
        ("/view", 400),
        ("/suggest/entity", 400),
        ("/suggest/type?prefix=a&cursor=-1", 400),
        ("/properties?limit=x", 400),
        ("/?" + "&".join(f"a{k}=1" for k in range(50)), 400),
    ],
)
def test_addresses_that_lead_nowhere(client, path, status):
    answer = client.ask(path)
    assert answer.status == status
    validate(answer.json, schemas.ERROR)


def test_batches_and_bodies_have_a_limit(client):
    size = client.ask().json["batchSize"]
    batch = {f"q{k}": {"query": "Alderbrook", "limit": 1} for k in range(size + 1)}
    assert client.ask(form={"queries": json.dumps(batch)}).status == 413
    batch.pop("q0")
    answer = client.ask(form={"queries": json.dumps(batch)})
    assert answer.status == 200
    assert len(answer.json) == size
    assert len(client.reconcile(query="Alder", limit=10**9)) <= 100
    many = {"ids": ["a"] * 1001, "properties": []}
    assert client.ask(form={"extend": json.dumps(many)}).status == 413
    # The length alone is enough to refuse: the body is not waited for.
    assert client.ask(form=b"", headers={"Content-Length": "99999999"}).status == 413
    assert client.ask(form=b"", headers={"Content-Length": "-1"}).status == 413
    assert client.ask(form=b"", headers={"Content-Length": "many"}).status == 411


def test_any_text_is_answered(client):
    for text in ("\ud800", "\x00", "a" * 100_000, "𝔘𝔫𝔦", "\u202e", "1e999", "%s{{7*7}}", "あ"):
        given = {
            "query": text,
            "properties": [{"pid": X + "people", "v": text}, {"pid": X + "state", "v": {"id": text}}],
        }
        answer = client.ask(form={"queries": json.dumps({"q": given})})
        assert answer.status == 200, text
        validate(answer.json, schemas.RESULTS)


def test_browsers_may_ask_from_anywhere(client):
    for answer in (
        client.ask(),
        client.ask("/nowhere"),
        client.ask("/view", id=X + "t0"),
        client.ask(method="OPTIONS"),
    ):
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert client.ask(method="OPTIONS").status == 204


def test_answers_can_be_wrapped_for_old_browsers(client):
    answer = client.ask("/suggest/type", prefix="to", callback="jQuery.call_1")
    assert answer.headers["Content-Type"].startswith("application/javascript")
    assert answer.text.startswith("/**/jQuery.call_1({")
    validate(json.loads(answer.text[len("/**/jQuery.call_1(") : -2]), schemas.SUGGESTED)


def test_addresses_are_those_that_the_client_uses(client):
    manifest = client.ask(headers={"Host": "towns.example:81"}).json
    assert manifest["view"]["url"].startswith("http://towns.example:81/")
    manifest = client.ask(headers={"Host": 'evil"><script>'}).json
    assert manifest["view"]["url"].startswith(client.address)
