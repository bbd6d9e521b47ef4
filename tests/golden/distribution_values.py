#!/usr/bin/env python3
"""Write what PyTorch says of its distributions, and mpmath of the gradients of draws, to data/distributions.lua.

Needs PyTorch and mpmath; tests/lua/test_distributions.lua, which reads the data, doesn't.
"""

import pathlib

import mpmath
import torch
import torch.distributions as D

torch.set_default_dtype(torch.float64)

CASES = [  # name, arguments (by name), values
    ("Normal", dict(loc=[0.5, -1.0], scale=[0.3, 2.0]), [[0.4, 3.0], [-20.0, 0.0]]),
    ("LogNormal", dict(loc=[0.5, -1.0], scale=[0.3, 2.0]), [[0.4, 3.0], [1e-3, 50.0]]),
    ("Uniform", dict(low=[0.0, -2.0], high=[1.0, 5.0]), [[0.25, 4.5]]),
    ("Beta", dict(concentration1=[0.5, 2.0, 300.0], concentration0=[0.7, 3.5, 20.0]), [[0.1, 0.5, 0.93]]),
    ("Gamma", dict(concentration=[0.3, 2.0, 150.0], rate=[1.0, 0.5, 3.0]), [[0.01, 3.0, 55.0]]),
    ("Exponential", dict(rate=[0.5, 7.0]), [[0.1, 2.0]]),
    ("Laplace", dict(loc=[0.5, -1.0], scale=[0.3, 2.0]), [[0.4, 3.0]]),
    ("Dirichlet", dict(concentration=[[0.5, 1.5, 3.0], [10.0, 20.0, 0.1]]), [[[0.2, 0.3, 0.5], [0.3, 0.69, 0.01]]]),
    ("MultivariateNormal", dict(loc=[1.0, -1.0], covariance_matrix=[[2.0, 0.3], [0.3, 0.5]]), [[0.0, 0.0], [3.0, -2.0]]),
    ("MultivariateNormal", dict(loc=[1.0, -1.0], precision_matrix=[[2.0, 0.3], [0.3, 0.5]]), [[0.0, 0.0]]),
    ("MultivariateNormal", dict(loc=[[1.0, -1.0], [0.0, 0.0]], scale_tril=[[2.0, 0.0], [0.3, 0.5]]), [[0.0, 0.5]]),
    ("Bernoulli", dict(probs=[0.2, 0.9, 0.5]), [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]),
    ("Bernoulli", dict(logits=[-3.0, 0.0, 40.0]), [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]),
    ("Categorical", dict(probs=[[1.0, 2.0, 5.0], [0.2, 0.2, 0.6]]), [[0, 2], [1, 1]]),
    ("Categorical", dict(logits=[[1.0, -2.0, 5.0], [0.0, 0.0, 3.0]]), [[0, 2], [1, 1]]),
    ("Poisson", dict(rate=[0.5, 30.0]), [[0.0, 25.0], [3.0, 31.0]]),
]
PAIRS = [
    ("Normal", dict(loc=[0.5, -1.0], scale=[0.3, 2.0]), dict(loc=[0.0, 1.0], scale=[1.0, 0.5])),
    ("Uniform", dict(low=[0.0, 0.0], high=[1.0, 2.0]), dict(low=[-1.0, 0.5], high=[3.0, 5.0])),
    ("Beta", dict(concentration1=[0.5, 2.0], concentration0=[0.7, 3.5]), dict(concentration1=[5.0, 1.0], concentration0=[2.0, 1.0])),
    ("Gamma", dict(concentration=[0.3, 2.0], rate=[1.0, 0.5]), dict(concentration=[3.0, 20.0], rate=[2.0, 5.0])),
    ("Exponential", dict(rate=[0.5, 7.0]), dict(rate=[2.0, 1.0])),
    ("Laplace", dict(loc=[0.5, -1.0], scale=[0.3, 2.0]), dict(loc=[0.0, 1.0], scale=[1.0, 0.5])),
    ("Dirichlet", dict(concentration=[0.5, 1.5, 3.0]), dict(concentration=[2.0, 2.0, 2.0])),
    ("MultivariateNormal", dict(loc=[1.0, -1.0], covariance_matrix=[[2.0, 0.3], [0.3, 0.5]]),
     dict(loc=[0.0, 0.0], covariance_matrix=[[1.0, 0.1], [0.1, 3.0]])),
    ("Bernoulli", dict(probs=[0.2, 0.9, 0.0]), dict(probs=[0.5, 0.1, 0.3])),
    ("Categorical", dict(probs=[0.2, 0.3, 0.5]), dict(probs=[0.1, 0.1, 0.8])),
    ("Poisson", dict(rate=[0.5, 30.0]), dict(rate=[1.0, 20.0])),
]
GAMMA = [(a, q) for a in (1e-2, 0.1, 0.5, 1.0, 1.5, 3.0, 30.0, 1000.0) for q in (0.01, 0.3, 0.6, 0.99)]
BETA = [(a, b, q) for a in (0.05, 0.5, 1.0, 3.0, 80.0) for b in (0.1, 1.0, 4.0, 300.0) for q in (0.05, 0.5, 0.9)]


def lua(value):
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(lua(v) for v in value) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {lua(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return f'"{value}"'
    return {"inf": "math.huge", "-inf": "-math.huge", "nan": "0/0"}.get(repr(value), repr(value))


def build(name, arguments):
    return getattr(D, name)(**{k: torch.tensor(v) for k, v in arguments.items()}, validate_args=False)


def told(name, arguments, values):
    d, row = build(name, arguments), {"name": name, "arguments": arguments, "values": values}
    x = torch.tensor(values)
    row["log_prob"] = d.log_prob(x)
    for key in ("entropy", "cdf", "icdf"):
        try:
            row[key] = d.entropy() if key == "entropy" else getattr(d, key)(x if key == "cdf" else torch.tensor([0.3]))
        except NotImplementedError:
            pass
    if name == "Categorical":
        row["values"] = (x + 1).tolist()
    else:
        row["mean"], row["variance"] = d.mean, d.variance
    return row


def slope(F, density, a, z):
    """-(dF/da) / density, by mpmath."""
    return float(-mpmath.diff(lambda t: F(t, z), a) / density(z))


def gamma_row(a, q):
    with mpmath.workdps(40):
        low, high = mpmath.mpf(0), mpmath.mpf(a) * 20 + 50
        for _ in range(400):
            middle = (low + high) / 2
            low, high = (middle, high) if mpmath.gammainc(a, 0, middle, regularized=True) < q else (low, middle)
        z = float(high)
        exact = slope(lambda t, x: mpmath.gammainc(t, 0, x, regularized=True),
                      lambda x: mpmath.power(x, mpmath.mpf(a) - 1) * mpmath.exp(-x) / mpmath.gamma(a), mpmath.mpf(a), mpmath.mpf(z))
    return [a, z, exact]


def beta_row(a, b, q):
    with mpmath.workdps(40):
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if mpmath.betainc(a, b, 0, middle, regularized=True) < q else (low, middle)
        x = float(high)
        if not 1e-12 < x < 1 - 1e-12:
            return None
        exact = slope(lambda t, y: mpmath.betainc(t, b, 0, y, regularized=True),
                      lambda y: mpmath.power(y, mpmath.mpf(a) - 1) * mpmath.power(1 - y, mpmath.mpf(b) - 1) / mpmath.beta(a, b),
                      mpmath.mpf(a), mpmath.mpf(x))
    return [a, b, x, exact]


def main():
    rows = [told(*case) for case in CASES]
    pairs = [{"name": n, "p": p, "q": q, "kl": D.kl_divergence(build(n, p), build(n, q))} for n, p, q in PAIRS]
    gamma = [gamma_row(a, q) for a, q in GAMMA]
    beta = [row for row in (beta_row(*case) for case in BETA) if row]
    target = pathlib.Path(__file__).with_name("data") / "distributions.lua"
    parts = []
    for key, list_of in (("rows", rows), ("pairs", pairs), ("gamma", gamma), ("beta", beta)):
        parts.append(f"    {key} = {{\n" + "".join(f"        {lua(row)},\n" for row in list_of) + "    },\n")
    target.write_text("-- distributions.lua: written by tests/golden/distribution_values.py.\nreturn {\n" + "".join(parts) + "}\n")


main()
