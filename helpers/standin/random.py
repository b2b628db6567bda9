"""`cp.random`: CuPy's signatures over NumPy's generators.

The same seed gives other numbers than CuPy's does, so a check must not rest on them.
"""

import numpy as _np

from . import missing
from .arrays import ndarray as _ndarray
from .arrays import plain as _plain
from .arrays import to_device as _to_device

__all__ = [
    "Generator",
    "choice",
    "default_rng",
    "normal",
    "permutation",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "seed",
    "shuffle",
    "standard_normal",
    "uniform",
]

_state = _np.random.default_rng()


def seed(seed=None) -> None:
    """Start the sequence of this module's functions anew."""
    global _state
    _state = _np.random.default_rng(seed)


def _floats(values, dtype) -> _ndarray:
    dtype = _np.dtype(dtype)
    if dtype not in (_np.float32, _np.float64):
        raise TypeError(f"random numbers come as float32 or float64, not {dtype}")
    return _to_device(_np.asarray(values, dtype=dtype))


def rand(*size: int, dtype=float) -> _ndarray:
    """Uniform in [0, 1); the shape is given as separate integers."""
    return random_sample(size, dtype)


def randn(*size: int, dtype=float) -> _ndarray:
    """Normal with mean 0 and variance 1; the shape is given as separate integers."""
    return standard_normal(size, dtype)


def random_sample(size=None, dtype=float) -> _ndarray:
    """Uniform in [0, 1)."""
    return _floats(_state.random(size), dtype)


random = random_sample


def standard_normal(size=None, dtype=float) -> _ndarray:
    """Normal with mean 0 and variance 1."""
    return _floats(_state.standard_normal(size), dtype)


def normal(loc=0.0, scale=1.0, size=None, dtype=float) -> _ndarray:
    """Normal with mean `loc` and standard deviation `scale`."""
    return _floats(_state.normal(_plain(loc), _plain(scale), size), dtype)


def uniform(low=0.0, high=1.0, size=None, dtype=float) -> _ndarray:
    """Uniform in [low, high)."""
    return _floats(_state.uniform(_plain(low), _plain(high), size), dtype)


def randint(low, high=None, size=None, dtype=int) -> _ndarray:
    """Integers in [low, high), or in [0, low) with one bound."""
    return _to_device(_state.integers(low, high, size, dtype=_int64_for_int(dtype)))


def choice(a, size=None, replace=True, p=None) -> _ndarray:
    """Draw from a device array, or from 0 … a-1."""
    return _to_device(_state.choice(_plain(a), size, replace, _plain(p)))


def permutation(a) -> _ndarray:
    """A shuffled copy of a device array, or of 0 … a-1."""
    return _to_device(_state.permutation(_plain(a)))


def shuffle(a: _ndarray) -> None:
    """Shuffle a device array in place along its first axis."""
    _state.shuffle(_plain(a))


def _int64_for_int(dtype):
    """CuPy's `int` is 64 bits wide on every platform."""
    return _np.int64 if dtype is int else dtype


def _distribution(name: str):
    """CuPy's function of the distribution that NumPy's generators know by the same name."""

    def draw(*parameters, size=None, dtype=None) -> _ndarray:
        method = getattr(_state, name)
        drawn = _np.asarray(method(*map(_plain, parameters), size=size))
        if dtype is None:
            return _to_device(drawn)
        if drawn.dtype.kind == "f":
            return _floats(drawn, dtype)
        return _to_device(drawn.astype(_int64_for_int(dtype)))

    draw.__name__, draw.__doc__ = name, getattr(_np.random.Generator, name).__doc__
    return draw


_DISTRIBUTIONS = """
    beta binomial chisquare dirichlet exponential f gamma geometric gumbel hypergeometric laplace
    logistic lognormal logseries multinomial multivariate_normal negative_binomial
    noncentral_chisquare noncentral_f pareto poisson power rayleigh standard_cauchy
    standard_exponential standard_gamma standard_t triangular vonmises wald weibull zipf
""".split()
globals().update({name: _distribution(name) for name in _DISTRIBUTIONS})
sample = ranf = random_sample
__all__ += [*_DISTRIBUTIONS, "ranf", "sample"]


class Generator:
    """What `default_rng` gives: the draws that CuPy's generator has too."""

    def __init__(self, bit_generator):
        self._numpy = _np.random.Generator(bit_generator)

    def random(self, size=None, dtype=_np.float64, out=None) -> _ndarray:
        """Uniform in [0, 1)."""
        return _to_device(self._numpy.random(size, dtype, _plain(out)))

    def uniform(self, low=0.0, high=1.0, size=None, dtype=_np.float64) -> _ndarray:
        """Uniform in [low, high)."""
        return _floats(self._numpy.uniform(_plain(low), _plain(high), size), dtype)

    def standard_normal(self, size=None, dtype=_np.float64, out=None) -> _ndarray:
        """Normal with mean 0 and variance 1."""
        return _to_device(self._numpy.standard_normal(size, dtype, _plain(out)))

    def integers(self, low, high=None, size=None, dtype=_np.int64, endpoint=False) -> _ndarray:
        """Integers in [low, high), or [low, high] with `endpoint`."""
        dtype = _int64_for_int(dtype)
        return _to_device(self._numpy.integers(low, high, size, dtype, endpoint))

    def __getattr__(self, name):
        raise missing.unknown("cp.random.default_rng()", name, dir(type(self)))


def default_rng(seed=None) -> Generator:
    """A generator of its own, seeded by an integer, a sequence of them or chance."""
    return Generator(_np.random.PCG64(seed))


def __getattr__(name: str):
    raise missing.unknown("cp.random", name, __all__)
