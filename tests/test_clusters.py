"""Average linkage: known pairs, known clusters."""

import pytest

from rlea.clusters import Cluster, cluster_pairs


def members(clusters):
    return [cluster.members for cluster in clusters]


def test_one_wrong_pair_does_not_join_two_clusters():
    pairs = {(0, 1): 0.9, (0, 2): 0.9, (1, 2): 0.9, (3, 4): 0.9, (3, 5): 0.9, (4, 5): 0.9, (2, 3): 0.8}
    assert members(cluster_pairs(pairs)) == [(0, 1, 2), (3, 4, 5)]


def test_a_weak_pair_is_carried_by_strong_ones():
    assert members(cluster_pairs({(0, 1): 0.95, (0, 2): 0.9, (1, 2): 0.2})) == [(0, 1, 2)]


def test_the_confidence_of_a_cluster_is_the_mean_over_all_its_pairs():
    # 4 and 9 were never compared: that counts as 0.
    assert cluster_pairs({(4, 7): 0.9, (9, 7): 0.9}, least=0.4) == [Cluster((4, 7, 9), pytest.approx(0.6))]
    assert cluster_pairs({(4, 7): 0.9, (9, 7): 0.8}) == [Cluster((4, 7), pytest.approx(0.9))]


def test_an_entity_with_itself_is_no_pair():
    assert cluster_pairs({(3, 3): 1.0}) == []


def test_at_most_one_of_a_kind():
    graph_of = {0: "a", 1: "b", 2: "c", 3: "c"}
    pairs = {(0, 1): 0.9, (0, 2): 0.8, (1, 2): 0.8, (0, 3): 0.7, (1, 3): 0.7}
    assert members(cluster_pairs(pairs, kinds=graph_of)) == [(0, 1, 2)]


def test_forbidden_pairs_stay_apart_however_sure():
    pairs = {(0, 1): 1.0, (1, 2): 1.0, (0, 2): 1.0}
    found = cluster_pairs(pairs, forbidden=[(2, 0)])
    assert all(not {0, 2} <= set(cluster.members) for cluster in found)
    assert len(found) == 1


def test_the_order_of_pairs_does_not_matter():
    pairs = {(k, k + 1): 0.6 for k in range(20)} | {(k, k + 2): 0.6 for k in range(18)}
    assert cluster_pairs(pairs) == cluster_pairs(dict(reversed(pairs.items())))
