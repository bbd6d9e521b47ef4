"""Writes gradients.jsonl and quotients.jsonl: derivatives where formulas fail (mpmath, differences of 420 digits), and
quotients and remainders at infinities and zeros (NumPy). A line is an operator; tests/ops/test_gradient_ends.lua and
test_quotients.lua read them. Needs mpmath and NumPy; the tests don't."""
import json
import math
import os

import mpmath as mp
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
mp.mp.dps = 420
inf, nan = math.inf, math.nan

# Numbers that all float dtypes hold, and those of larger ranges: at 0, beside it, in between, far out.
NEAR = [2.0**-20, 2.0**-14, 2.0**-10, 2.0**-7, 0.125, 0.25, 0.375, 0.5, 0.75, 0.875, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0]
FAR = [12.0, 16.0, 24.0, 64.0, 100.0, 128.0, 1000.0, 2.0**14]
VERY_FAR = [2.0**30, 2.0**60, 2.0**100]
TINY = [2.0**-30, 2.0**-60, 2.0**-100]
OUT_OF_SINGLE = [2.0**-400, 2.0**400]
NEAR_1 = [1 - 2.0**-4, 1 - 2.0**-7, 1 - 2.0**-11, 1 - 2.0**-24, 1 - 2.0**-40, 1 + 2.0**-7, 1 + 2.0**-11, 1 + 2.0**-23]

positive = lambda x: x > 0
small = lambda x: abs(x) <= 100
inside = lambda x: abs(x) < 1
any_x = lambda x: True
sigmoid = lambda x: 1 / (1 + mp.exp(-x))
ndtr = lambda x: mp.erfc(-x / mp.sqrt(2)) / 2
scaled = lambda order: lambda x: mp.besseli(order, x) * mp.exp(-abs(x))

# name: function, where it is differentiable and can be computed, slopes at -inf and inf (None: none)
UNARY = {
    "exp": (mp.exp, small, 0, None), "exp2": (lambda x: mp.power(2, x), small, 0, None),
    "expm1": (mp.expm1, small, 0, None), "log": (mp.log, positive, None, 0),
    "log2": (lambda x: mp.log(x, 2), positive, None, 0), "log10": (mp.log10, positive, None, 0),
    "log1p": (mp.log1p, lambda x: x > -1, None, 0), "sqrt": (mp.sqrt, positive, None, 0),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), positive, None, 0), "reciprocal": (lambda x: 1 / x, lambda x: x != 0, 0, 0),
    "square": (lambda x: x * x, any_x, None, None), "sin": (mp.sin, small, None, None), "cos": (mp.cos, small, None, None),
    "tan": (mp.tan, small, None, None), "asin": (mp.asin, inside, None, None), "acos": (mp.acos, inside, None, None),
    "atan": (mp.atan, any_x, 0, 0), "sinh": (mp.sinh, small, None, None), "cosh": (mp.cosh, small, None, None),
    "tanh": (mp.tanh, small, 0, 0), "asinh": (mp.asinh, any_x, 0, 0), "acosh": (mp.acosh, lambda x: x > 1, None, 0),
    "atanh": (mp.atanh, inside, None, None), "sigmoid": (sigmoid, small, 0, 0), "erf": (mp.erf, small, 0, 0),
    "erfc": (mp.erfc, small, 0, 0), "erfinv": (mp.erfinv, lambda x: abs(x) < 1 - 2.0**-12, None, None),
    "lgamma": (lambda x: mp.loggamma(abs(x)) if x > 0 else mp.log(abs(mp.gamma(x))),
               lambda x: x > 0 and x <= 1000 or x < 0 and x > -8 and x != int(x), None, None),
    "digamma": (mp.digamma, lambda x: 0 < x <= 1000, None, None),
    "logit": (lambda x: mp.log(x / (1 - x)), lambda x: 0 < x < 1, None, None),
    "sinc": (lambda x: mp.sin(mp.pi * x) / (mp.pi * x) if x else mp.mpf(1), lambda x: abs(x) <= 8, None, None),
    "i0": (lambda x: mp.besseli(0, x), lambda x: abs(x) <= 64, None, None),
    "special.i1": (lambda x: mp.besseli(1, x), lambda x: abs(x) <= 64, None, None),
    "special.i0e": (scaled(0), lambda x: x and abs(x) <= 2**14, 0, 0),
    "special.i1e": (scaled(1), lambda x: x and abs(x) <= 2**14, 0, 0),
    "special.erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), lambda x: -5 <= x <= 2**14, None, 0),
    "special.ndtri": (lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), lambda x: 2.0**-12 < x < 1 - 2.0**-12, None, None),
    "special.ndtr": (ndtr, small, 0, 0),
    "special.log_ndtr": (lambda x: mp.log(ndtr(x)), lambda x: abs(x) <= 100, None, 0),
    "special.entr": (lambda x: -x * mp.log(x), positive, None, None),
    "silu": (lambda x: x * sigmoid(x), small, 0, 1), "gelu": (lambda x: x * ndtr(x), small, 0, 1),
    "mish": (lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), small, 0, 1),
    "softsign": (lambda x: x / (1 + abs(x)), lambda x: x != 0, 0, 0),
    "tanhshrink": (lambda x: x - mp.tanh(x), small, 1, 1),
    "logsigmoid": (lambda x: -mp.log1p(mp.exp(-x)), small, 1, 0),
    "softplus": (lambda x: mp.log1p(mp.exp(x)), lambda x: -100 <= x < 20, 0, 1),
    "selu": (lambda x: mp.mpf(1.0507009873554805) * (x if x > 0 else mp.mpf(1.6732632423543772) * mp.expm1(x)),
             lambda x: x and small(x), 0, 1.0507009873554805),
    "elu": (lambda x: x if x > 0 else mp.expm1(x), lambda x: x and small(x), 0, 1),
    "celu": (lambda x: x if x > 0 else mp.expm1(x), lambda x: x and small(x), 0, 1),
}
PAIRS = [(a, b) for a in (0.0, 2.0**-14, 0.5, 1.0, 3.0, 100.0, 2.0**60, 2.0**100, 2.0**-60, 2.0**-100)
         for b in (2.0**-100, 2.0**-60, 2.0**-14, 0.5, 1.0, 2.0, 100.0, 2.0**60, 2.0**100)]
modest = lambda a, b: max(a, b) <= 100
BINARY = {
    "atan2": (lambda a, b: mp.atan2(a, b), lambda a, b: True),
    "hypot": (mp.hypot, lambda a, b: True),
    "div": (lambda a, b: a / b, lambda a, b: True),
    "pow": (mp.power, lambda a, b: a > 0 and modest(a, b)),
    "logaddexp": (lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), modest),
    "logaddexp2": (lambda a, b: mp.log(mp.power(2, a) + mp.power(2, b), 2), modest),
    "xlogy": (lambda a, b: a * mp.log(b) if a else mp.mpf(0), lambda a, b: True),
    "special.xlog1py": (lambda a, b: a * mp.log1p(b) if a else mp.mpf(0), lambda a, b: True),
}
ORDERS = [0.5, 1.0, 2.0, 20.0, 40.0, 100.0, 1000.0, 10000.0]
PLACES = [0.5, 1.0, 2.0, 20.0, 32.0, 40.0, 48.0, 96.0, 100.0, 112.0, 960.0, 1000.0, 1024.0, 9984.0, 10048.0]


def number(v):
    """A double in words that JSON and Lua read alike."""
    v = mp.re(v)
    if abs(v) > mp.mpf(2)**1023:
        return "inf" if v > 0 else "-inf"
    return float(v)


def slopes(f, x):
    """First and second derivative."""
    x = mp.mpf(x)
    h = abs(x) * mp.mpf(10)**-30 if x else mp.mpf(10)**-40
    above, here, below = f(x + h), f(x), f(x - h)
    first, second = (above - below) / (2 * h), (above - 2 * here + below) / (h * h)
    if not x:  # beside 0 what is left are the higher derivatives, times h
        first, second = (mp.mpf(0) if abs(v) < mp.mpf(10)**-60 else v for v in (first, second))
    return number(first), number(second)


def points():
    sizes = sorted(set(NEAR + FAR + VERY_FAR + TINY + OUT_OF_SINGLE + NEAR_1))
    return [-x for x in reversed(sizes)] + [0.0] + sizes


def gradients():
    for name, (f, there, low, high) in UNARY.items():
        found = [(x, *slopes(f, x)) for x in points() if there(x)]
        ends = [(x, s) for x, s in (("-inf", low), ("inf", high)) if s is not None]
        yield {"op": name, "at": found, "ends": ends}
    for name, (f, there) in BINARY.items():
        found = []
        for a, b in PAIRS:
            if there(a, b):
                by_a = slopes(lambda t: f(t, mp.mpf(b)), a)[0] if a or name not in ("xlogy", "special.xlog1py") else \
                    float(mp.log(b) if name == "xlogy" else mp.log1p(b))
                found.append((a, b, by_a, slopes(lambda t: f(mp.mpf(a), t), b)[0]))
        yield {"op": name, "pairs": found}
    found = [(a, x, None, number(mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a)))) for a in ORDERS for x in PLACES]
    yield {"op": "special.gammainc", "pairs": found}


def quotients():
    numbers = [0.0, -0.0, 1.0, -1.0, 5.25, -5.25, 0.5, -0.5, inf, -inf, nan, 3.0, -3.0]
    a, b = np.meshgrid(np.array(numbers), np.array(numbers))
    a, b = a.ravel(), b.ravel()
    word = lambda v: "nan" if v != v else "inf" if v == inf else "-inf" if v == -inf else float(v)
    with np.errstate(all="ignore"):
        results = {"floor_divide": np.floor_divide(a, b), "remainder": np.remainder(a, b), "fmod": np.fmod(a, b),
                   "trunc_divide": np.trunc(a / b)}
    for name, r in results.items():
        yield {"op": name, "a": list(map(word, a)), "b": list(map(word, b)), "r": list(map(word, r))}


for name, lines in (("gradients", gradients()), ("quotients", quotients())):
    with open(os.path.join(HERE, name + ".jsonl"), "w") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
