"""One real attention head with the words to try it on; `data/README.md` beside it says whose it is.

head = load_head()
tokens = head.tokenize("Attention is all you need")
E = head.embeddings(tokens)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FILE = Path(__file__).resolve().parent / "data" / "attention_head.npz"
_FIRST, _LAST = "[CLS]", "[SEP]"


@dataclass(frozen=True, eq=False)
class Head:
    """Head 5 of layer 0 of all-MiniLM-L6-v2: weights of one head, embeddings of some words.

    Everything is float32 and made for row vectors: `x @ W + b`. d_model is 384, d is 32.

    Attributes:
        words: the tokens that can be used, of the model's `vocabulary` many.
        ids: their numbers in that vocabulary.
        word: their embeddings, [words, d_model].
        position: embeddings of positions, [12, d_model].
        scale, shift, epsilon: of the layer normalisation that makes X, [d_model] and a number.
        W_Q, W_K, W_V: [d_model, d].
        b_Q, b_K, b_V: [d].
        vocabulary, layer, head: numbers of the model's tokens, of this layer and this head.
        model_tokens: the sentence "Attention is all you need", as the model's tokenizer cuts it.
        model_X, model_P, model_O: what the model itself computes for it: the head's input,
            [N, d_model], its attention map, [N, N], and its output, [N, d].
    """

    words: tuple[str, ...]
    ids: np.ndarray
    word: np.ndarray
    position: np.ndarray
    scale: np.ndarray
    shift: np.ndarray
    epsilon: float
    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    b_Q: np.ndarray
    b_K: np.ndarray
    b_V: np.ndarray
    vocabulary: int
    layer: int
    head: int
    model_tokens: tuple[str, ...]
    model_X: np.ndarray
    model_P: np.ndarray
    model_O: np.ndarray

    def tokenize(self, sentence: str) -> list[str]:
        """Cut a sentence into tokens, lower-cased, between [CLS] and [SEP].

        Raises:
            ValueError: a word is not among `words`, or there are more tokens than positions.
        """
        tokens = [_FIRST, *re.findall(r"\w+|[^\w\s]", sentence.lower()), _LAST]
        for token in tokens:
            self._row(token)
        if len(tokens) > len(self.position):
            raise ValueError(
                f"The sentence has {len(tokens)} tokens with {_FIRST} and {_LAST}, and "
                f"{len(self.position)} is the most that can be used here."
            )
        return tokens

    def token_ids(self, tokens: Sequence[str]) -> list[int]:
        """The numbers of some tokens in the model's vocabulary.

        Raises:
            ValueError: a token is not among `words`.
        """
        return [int(self.ids[self._row(token)]) for token in tokens]

    def embeddings(self, tokens: Sequence[str]) -> np.ndarray:
        """The rows that some tokens have in the table of embeddings, [N, d_model].

        Raises:
            ValueError: a token is not among `words`.
        """
        return self.word[[self._row(token) for token in tokens]]

    def __repr__(self) -> str:
        d_model, d = self.W_Q.shape
        return (
            f"<Head {self.head} of layer {self.layer}: W_Q, W_K and W_V of {d_model} × {d}, "
            f"and the embeddings of {len(self.words)} tokens>"
        )

    def _row(self, token: str) -> int:
        try:
            return self.words.index(token)
        except ValueError:
            usable = " ".join(word for word in self.words if word not in (_FIRST, _LAST))
            raise ValueError(
                f"“{token}” is not among the {len(self.words)} tokens that can be used here; take "
                f"some of: {usable}"
            ) from None


def load_head() -> Head:
    """Read the head from `helpers/problem/data/`; its arrays cannot be written to."""
    with np.load(FILE) as stored:
        values = {name: stored[name] for name in stored.files}
    for name, value in values.items():
        if value.ndim == 0:
            values[name] = value.item()
        elif value.dtype.kind == "U":
            values[name] = tuple(value.tolist())
        else:
            value.flags.writeable = False
    return Head(**values)
