"""What the stand-in says about a name of CuPy's that it does not have."""

import difflib
import tomllib
from collections.abc import Iterable
from importlib.resources import files

import numpy as np

_TOLD = tomllib.loads(files(__package__).joinpath("missing.toml").read_text("utf-8"))
INSTEAD = {
    **_TOLD["instead"],
    **{name: group["say"] for group in _TOLD["together"] for name in group["names"]},
    **{name: f"NumPy gave it up: write cp.{now}" for name, now in _TOLD["old"].items()},
}
TYPES = _TOLD["types"]


class Told(dict):
    """A dictionary that says a sentence about a key that it does not have.

    Args:
        values: what it holds.
        sentence: of a key that is missing, which stands for {}.
    """

    def __init__(self, values, sentence: str):
        super().__init__(values)
        self._sentence = sentence

    def __missing__(self, key):
        raise KeyError(self._sentence.format(key))


def unknown(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for `owner.name`, with the names of `known` that look like it.

    Args:
        owner: how a reader writes the namespace or object, such as `cp.cuda`.
        name: the attribute that was asked for.
        known: the names that `owner` does have.
    """
    if name.startswith("__"):  # protocols that Python and NumPy probe for
        return AttributeError(name)
    message = f"{owner}.{name} is not part of the stand-in that takes CuPy's place without a GPU"
    near = difflib.get_close_matches(name, [k for k in known if k[0] != "_"], n=3)
    if name in TYPES:
        return AttributeError(TYPES[name])
    if name in INSTEAD:
        message += f"; {INSTEAD[name]}."
    elif near:
        message += f"; near it there are {', '.join(near)}."
    elif owner == "cp" and callable(getattr(np, name, None)):
        message += f"; NumPy has it: cp.asarray(np.{name}(...)), with x.get() for an array x."
    else:
        message += "; what needs it runs on a GPU alone."
    return AttributeError(message)
