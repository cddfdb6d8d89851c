"""Terms of texts: counted, and weighed by the textbook."""

import numpy as np

from rlea.models.names import NamesSettings, pieces
from rlea.search.bags import count_terms, having, weigh_terms


def test_terms_are_counted_in_the_order_of_their_letters():
    counts = count_terms([["b", "a", "b"], [], ["c", "a"]])
    assert counts.toarray().tolist() == [[1, 2, 0], [0, 0, 0], [1, 0, 1]]
    assert having(counts).tolist() == [2, 1, 1]
    assert counts.dtype == np.float32


def test_rare_terms_can_be_left_out():
    bags = [["b", "a", "b"], ["d"], ["c", "a", "d"]]
    assert count_terms(bags, least=2).toarray().tolist() == [[1, 0], [0, 1], [1, 1]]
    assert count_terms(bags, least=3).toarray().tolist() == [[0], [0], [0]]
    assert count_terms([], least=1).shape == (0, 1)
    assert count_terms([[], []]).toarray().tolist() == [[0], [0]]


def test_weights_are_those_of_the_textbook():
    counts = count_terms([["b", "a", "b"], ["a", "c"], ["a"]])
    found = weigh_terms(counts, having(counts)).toarray()
    rarity = np.log(4 / (1 + np.array([3, 1, 1]))) + 1
    expected = np.array([[1, 1 + np.log(2), 0], [1, 0, 1], [1, 0, 0]]) * rarity
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_pieces_of_short_words():
    assert pieces("a", NamesSettings()) == [" a", "a ", " a "]
    assert pieces("ab", NamesSettings()) == [" a", "ab", "b ", " ab", "ab ", " ab "]
    # A word shorter than a piece is one.
    assert pieces("a", NamesSettings(5, 7)) == [" a "]
    assert pieces("abcd", NamesSettings(5, 7)) == [" abcd", "abcd ", " abcd "]
