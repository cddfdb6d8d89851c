"""Runs that go on: answers count at once, for the pair itself and for what is around it, and for nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlea
from planted import bytes_of, links_of, make_graph
from rlea.agent.calibration import correct
from rlea.agent.live import LiveRun
from rlea.errors import InputError
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import LABEL, SyntheticSettings, generate
from rlea.search.pairs import Pairs

pytestmark = pytest.mark.usefixtures("one_thread")  # the pairs are small

FAMILIES = 60
WORDS = [
    one + other for one in ("ba", "ke", "lo", "mi", "tu", "zar") for other in ("ne", "vi", "sta", "dor", "pu", "lan")
]


def make_families():
    """Families of a head, whose name is clear, and a child; the children of families 2k and 2k + 1 are namesakes.

    Family 0 is nameless in the target: only an answer can tell which it is, and who is its child.
    """
    rng = np.random.default_rng(4)
    graphs = []
    for side in "st":
        triples, literals = [], []
        for k in range(FAMILIES):
            head, child = f"http://{side}.org/head{k:02}", f"http://{side}.org/child{k:02}"
            triples.append((head, "parent", child))
            name = f"{WORDS[k % 36]} {WORDS[(5 * k + 7) % 36]} {WORDS[(k * k + 3) % 36]}"
            if side == "s" or k > 1:
                literals.append((head, LABEL, name))
            literals.append(
                (child, LABEL, f"{WORDS[k // 2]} {WORDS[(11 * k // 2 + 5) % 36]}" if k > 1 else "same name")
            )
        order = rng.permutation(len(triples))
        graphs.append(make_graph([triples[place] for place in order], literals))
    gold = {
        (graphs[0].entity_index[f"http://s.org/{one}{k:02}"], graphs[1].entity_index[f"http://t.org/{one}{k:02}"])
        for one in ("head", "child")
        for k in range(FAMILIES)
    }
    return GraphPair("", *graphs), gold


@pytest.fixture(scope="module")
def families():
    pair, gold = make_families()
    aligner = rlea.Aligner().fit(pair)
    outcome = aligner.decide(pair, *pair.entity_ids)
    state, links = outcome.state(), outcome.last.matching
    return pair, gold, lambda: LiveRun(aligner, state, links)


@pytest.fixture
def run(families):
    return families[2]()


def ids(pair, name):
    return pair.source.entity_index[f"http://s.org/{name}"], pair.target.entity_index[f"http://t.org/{name}"]


def test_a_run_begins_with_the_links_of_the_agent(families, run):
    pair, _, _ = families
    started = LiveRun.start(rlea.Aligner(), pair)
    assert bytes_of(run.links) == bytes_of(started.links)
    assert bytes_of(run.links) == bytes_of(rlea.align(pair, keep="all").matching)
    assert run.answers == {}


def test_a_run_looks_at_the_best_proposals_of_either_entity(run):
    """As the passes that made its links did: what an answer costs does not grow with what channels propose."""
    pairs, logits, kept = run.state.proposals, run.state.described.logits, run.aligner.settings.kept
    every = Pairs.union([channel.proposals for channel in run.state.channels])
    assert len(pairs) < len(every)
    better = [
        [(logits[ids == own] > logit).sum() for own, logit in zip(ids, logits, strict=True)]
        for ids in (pairs.source_ids, pairs.target_ids)
    ]
    assert np.min(better, axis=0).max() < kept


@pytest.mark.parametrize("other", ["00", "01"])
def test_an_accepted_pair_tells_its_neighbours_apart(families, run, other):
    """Which of two namesakes is whose child is open until somebody says who is the parent."""
    pair, _, _ = families
    source_ids, target_ids = zip(ids(pair, "head00"), ids(pair, f"head{other}"), strict=True)
    run.answer(source_ids[0], target_ids[1], is_right=True)
    found = {(source, target): sure for source, target, sure in zip(*vars_of(run.links), strict=True)}
    assert found[source_ids[0], target_ids[1]] == 1.0
    assert (ids(pair, "child00")[0], ids(pair, f"child{other}")[1]) in found


def vars_of(links):
    return links.source_ids.tolist(), links.target_ids.tolist(), links.confidences.tolist()


def test_a_rejected_pair_is_never_linked_again(families, run):
    pair, _, _ = families
    wrong = ids(pair, "child10")
    run.answer(*wrong, is_right=False)
    assert wrong not in links_of(run.links)
    run.answer(*ids(pair, "head10"), is_right=True)  # which makes the pair likelier
    assert wrong not in links_of(run.links)
    run.withdraw(*wrong)
    assert wrong in links_of(run.links)


def test_what_an_answer_does_not_touch_stays_as_it_is(families, run):
    pair, _, _ = families
    before = {source: rest for source, *rest in zip(*vars_of(run.links), strict=True)}
    touched = {ids(pair, f"{one}{k:02}")[0] for one in ("head", "child") for k in (20, 21)}
    run.answer(*ids(pair, "head20"), is_right=True)
    after = {source: rest for source, *rest in zip(*vars_of(run.links), strict=True)}
    assert {source for source in before if before[source][0] != after[source][0]} <= touched
    assert run.confidence(*ids(pair, "head40")) == before[ids(pair, "head40")[0]][1]


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, FAMILIES - 1), st.booleans(), st.booleans()), max_size=6))
def test_links_are_one_to_one_whatever_is_answered(families, given_answers):
    pair, _, start = families
    run = start()
    said = {}
    for number, is_child, is_right in given_answers:
        one = ids(pair, f"{'child' if is_child else 'head'}{number:02}")
        said[one] = is_right
        run.answer(*one, is_right=is_right)
    assert run.links.is_one_to_one
    found = links_of(run.links)
    assert {one for one, is_right in said.items() if is_right} <= found
    assert not found & {one for one, is_right in said.items() if not is_right}
    assert all(0 <= sure <= 1 for sure in run.links.confidences)


def test_answers_together_are_the_answers_one_by_one(families):
    pair, _, start = families
    pairs = [(*ids(pair, "head10"), True), (*ids(pair, "child30"), False), (*ids(pair, "head50"), True)]
    together, one_by_one = start(), start()
    together.answer_all(pairs)
    for source, target, is_right in pairs:
        one_by_one.answer(source, target, is_right=is_right)
    assert links_of(together.links) == links_of(one_by_one.links)


def test_rounds_are_told_as_they_are_decided(families, run):
    pair, _, start = families
    told = []
    run.on_round = lambda changes: told.append((changes, run.links.is_one_to_one))
    last = run.answer(*ids(pair, "head00"), is_right=True)
    assert all(is_one_to_one for _, is_one_to_one in told)
    assert last
    silent = start()
    silent.answer(*ids(pair, "head00"), is_right=True)
    assert bytes_of(silent.links) == bytes_of(run.links)


def test_what_is_taken_back_leaves_the_links_as_they_were(families, run):
    pair, _, _ = families
    before = bytes_of(run.links)
    one, other = ids(pair, "head00"), ids(pair, "child10")
    run.become({(one[0], one[1]): True})
    between = bytes_of(run.links)
    run.become({(one[0], one[1]): True, other: False})
    run.become({(one[0], one[1]): True})
    assert bytes_of(run.links) == between
    run.become({})
    assert bytes_of(run.links) == before
    assert run.answers == {}


def test_answers_about_others_are_left_out(families, run):
    before = bytes_of(run.links)
    assert run.become({(0, 10**6): True, (-1, 0): False}) == []
    assert bytes_of(run.links) == before


def test_nothing_new_to_decide_about_changes_nothing(families, run):
    before = bytes_of(run.links)
    assert run.decide_about(np.zeros(0, np.int32), np.zeros(0, np.int32)) == []
    assert bytes_of(run.links) == before


def test_a_later_answer_replaces_an_earlier_one(families, run):
    pair, _, _ = families
    one = ids(pair, "head12")
    run.answer(*one, is_right=False)
    run.answer(*one, is_right=True)
    assert one in links_of(run.links)


def test_seeds_and_strangers_cannot_be_answered_about(families):
    pair, _, _ = families
    seeds = Links.of(*([one] for one in ids(pair, "head05")))
    run = LiveRun.start(rlea.Aligner().fit(seeded := GraphPair("", pair.source, pair.target, train=seeds)), seeded)
    for source, target in (ids(pair, "head05"), (0, pair.target.num_entities), (-1, 0)):
        with pytest.raises(InputError, match="not among those to be matched"):
            run.answer(source, target, is_right=True)
    assert run.answers == {}


def test_two_accepted_pairs_of_one_entity_are_refused(families, run):
    pair, _, _ = families
    (source, target), (_, other) = ids(pair, "head12"), ids(pair, "head13")
    run.answer(source, target, is_right=True)
    before = bytes_of(run.links)
    with pytest.raises(InputError, match="was accepted"):
        run.answer(source, other, is_right=True)
    assert bytes_of(run.links) == before


def test_with_seeds_learned_passes_decide_again():
    pair = rlea.read_demo()
    known = Links.union([pair.train, pair.valid, pair.test])
    order = np.random.default_rng(2).permutation(len(known))
    train, rest = (Links.of(known.source_ids[part], known.target_ids[part]) for part in (order[:700], order[700:]))
    run = LiveRun.start(rlea.Aligner(), GraphPair("", pair.source, pair.target, train=train))
    assert run.aligner.pair_scorer is not None
    truth = dict(zip(rest.source_ids.tolist(), rest.target_ids.tolist(), strict=True))
    wrong = [one for one in links_of(run.links) if truth.get(one[0]) not in (None, one[1])]
    before = len(links_of(run.links) & set(truth.items()))
    run.answer_all([(*one, False) for one in wrong])
    run.answer_all([(source, truth[source], True) for source, _ in wrong])
    assert wrong
    assert len(links_of(run.links) & set(truth.items())) >= before + len(wrong)


def test_structure_alone_decides_again_too():
    pair = generate(SyntheticSettings(num_entities=150, seeds=0.4, seed=2))
    run = LiveRun.start(rlea.Aligner(channels=("structure",)), pair.without_gold)
    truth = dict(zip(pair.test.source_ids.tolist(), pair.test.target_ids.tolist(), strict=True))
    right = [one for one in sorted(links_of(run.links)) if truth.get(one[0]) == one[1]]
    run.answer_all([(*right[0], True), (*right[1], False)])
    assert right[0] in links_of(run.links)
    assert right[1] not in links_of(run.links)


# ---- what answers say of confidences --------------------------------------------------------------------------------

logits = st.lists(st.floats(-6, 6), min_size=1, max_size=30).map(np.array)
no_answers = np.zeros(0), np.zeros(0)


@given(logits, logits, st.booleans())
def test_a_surer_link_stays_the_surer_one(links, asked, is_right):
    corrected = correct(links, asked, np.full(len(asked), float(is_right)))
    order = np.argsort(links)
    assert (np.diff(corrected[order]) >= -1e-12).all()
    assert ((corrected >= 0) & (corrected <= 1)).all()


@given(logits)
def test_without_answers_confidences_stay(links):
    assert correct(links, *no_answers) == pytest.approx(1 / (1 + np.exp(-links)), abs=1e-9)


def test_answers_correct_links_like_those_that_were_asked_about():
    """Of pairs with a confidence of .5 nine in ten are right; nobody asked about those of .05 and .95."""
    links = np.array([-3.0, 0.0, 3.0])
    right = np.array([1.0] * 90 + [0.0] * 10)
    corrected = correct(links, np.zeros(100), right)
    assert corrected[1] == pytest.approx(0.87, abs=0.02)
    assert corrected[[0, 2]] == pytest.approx([0.047, 0.953], abs=0.01)
