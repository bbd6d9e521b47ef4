#!/usr/bin/env python3
"""Makes vec_double_pieces.h, the tables of vec_double.h. Needs mpmath:

    python3 engine/cpu/isa/fit_double.py > engine/cpu/isa/vec_double_pieces.h

Tables of polynomials are as those of fit_wide.py, to a double's last places: what the constant term loses
by rounding is a row of its own, behind the constant, and so is that of the next one where that is as large.
How far each polynomial is from its function is said on standard error.
"""
from mpmath import mp, mpf

from fit_wide import ENTRIES, erfinv, print_table

LN2_DIGITS = 42  # behind the point: of it and of logarithms that are added to its multiples
DERF_DEGREE, DERFC_DEGREE, DINVERSE_DEGREE = 13, 14, 13


def through(xs, f, centre):
    """The polynomial that is f at xs, in powers of (x - centre), by Newton's differences."""
    n = len(xs)
    d = [f(x) for x in xs]
    for j in range(1, n):
        for k in range(n - 1, j - 1, -1):
            d[k] = (d[k] - d[k - 1]) / (xs[k] - xs[k - j])
    p = [mpf(0)] * n
    for k in range(n - 1, -1, -1):
        at = xs[k] - centre
        p = [(p[i - 1] if i else 0) - at * p[i] for i in range(n)]
        p[0] += d[k]
    return p


def interpolate(f, low, high, centre, degree):
    """Coefficients in powers of (x - centre), at the nodes of Chebyshev."""
    n = degree + 1
    middle, half = (low + high) / 2, (high - low) / 2
    return through([middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)], f, centre)


def rounded(p, pairs):
    """The first terms as pairs of doubles."""
    row = []
    for k, c in enumerate(p):
        high = mpf(float(c))
        row += [high, mpf(float(c - high))] if k < pairs else [high]
    return row


def off(f, p, pairs, low, high, centre):
    exact = p[:pairs] + [mpf(float(c)) for c in p[pairs:]]
    xs = [low + (high - low) * (k + mpf(1) / 97) / 11 for k in range(11)]
    return max(abs(mp.polyval(exact[::-1], x - centre) / f(x) - 1) for x in xs)


def octaves(f, limit, degree):
    """Four to an octave of the variable and a shift, as in fit_wide.py."""
    shift = mpf(limit) / (ENTRIES - 1)
    cut = lambda k: shift * mpf(2) ** (k // 4) * (1 + mpf(k % 4) / 4) - shift
    columns, worst = [], 0
    for k in range(ENTRIES):
        low, high = cut(k), cut(k + 1)
        centre = (low + high) / 2
        p = interpolate(f, low, high, centre, degree)
        worst = max(worst, off(f, p, 1, low, high, centre))
        columns.append([centre] + rounded(p, 1))
    return list(zip(*columns)), worst


def even_odd(f, step, degree):
    """About the multiples of a step, of a function that is 0 at 0 and straight there."""
    half, columns, worst = step / 2, [], 0
    for k in range(ENTRIES):
        if k:
            low, high = k * step - half, k * step + half
            p = interpolate(f, low, high, k * step, degree)
            worst = max(worst, off(f, p, 2, low, high, k * step))
        else:
            slope = lambda x: f(x) / x
            p = interpolate(slope, mpf(0), half, mpf(0), degree - 1)
            worst = max(worst, off(slope, p, 1, mpf(0), half, mpf(0)))
            p = [mpf(0)] + p
        columns.append(rounded(p, 2))
    return list(zip(*columns)), worst


def terms(f, low, high, count):
    return [mpf(float(c)) for c in interpolate(f, low, high, mpf(0), count - 1)]


def short_exp_terms(limit):
    """The share of what a term is off by grows with the square, so that the outer nodes lie far out."""
    nodes = [limit * mpf(x) for x in ("-0.967", "-0.72", "1e-6", "0.72", "0.967")]
    return [mpf(float(c)) for c in through(nodes, lambda r: (mp.expm1(r) - r) / r**2, mpf(0))]


def print_terms(name, what, values):
    print(f"\n/* {what} */\nenum {{ TD_{name.upper()}_TERMS = {len(values)} }};")
    print(f"static const double {name}_terms[] = {{")
    for k, c in enumerate(values):
        print(f"    {float(c)!r}{',' if k < len(values) - 1 else '};'}")


def exp_powers():
    powers = [mpf(2) ** (mpf(k) / ENTRIES) for k in range(ENTRIES)]
    return list(zip(*[rounded([p], 1) for p in powers])), mp.eps


def short(x):
    """As short as what is added to its multiples is: x and what is left of it."""
    high = mp.nint(x * mpf(2) ** LN2_DIGITS) / mpf(2) ** LN2_DIGITS
    return high, x - high


def log_entries(base=mp.e):
    """Of m about 1 + k / 16: a short number near 1 / m, and minus the logarithm of that in two parts, the
    first one as short as the multiples of log 2 that it is added to."""
    columns = []
    for k in range(ENTRIES):
        inverse = mp.nint(mpf(256) / (1 + mpf(k) / ENTRIES)) / 256
        columns.append([inverse, *short(-mp.log(inverse) / mp.log(base))])
    return list(zip(*columns)), mp.eps


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def main():
    print("""/* vec_double_pieces.h: made by fit_double.py, which says what it holds; not to be edited. */
#ifndef TD_CPU_ISA_VEC_DOUBLE_PIECES_H
#define TD_CPU_ISA_VEC_DOUBLE_PIECES_H

/* clang-format off */""")
    narrow, sixteenth = mp.log(2) / (2 * ENTRIES), mpf(1) / ENTRIES
    print("\n#if TD_EXP_BY_TABLE_D")
    print_table("dexp", "2^(k / 16), and what rounding took from it", *exp_powers())
    print_terms("dexp", "(exp(r) - 1 - r) / r^2 within ln 2 / 32 of 0",
                terms(lambda r: (mp.expm1(r) - r) / r**2, -narrow, narrow, 6))
    print_terms("dexp_short", "the same of fewer terms, to the last place", short_exp_terms(narrow))
    print_terms("dtanh", "(tanh(x) - x) / x^3 in x^2, for x to a quarter",
                terms(lambda t: (mp.tanh(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, mpf(0), mpf(1) / 16, 10))
    print_table("dlog", "of m about 1 + k / 16 nearly 1 / m, and the logarithm of 1 over that in two parts",
                *log_entries())
    print_terms("dlog", "(log(1 + f) - f + f^2 / 2) / f^3 within 0.034 of 0",
                terms(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, -mpf("0.034"), mpf("0.034"), 8))
    for base in 2, 10:
        two, e = short(mp.log(2) / mp.log(base)), rounded([1 / mp.log(base)], 1)
        print(f"\n/* logarithms of 2 and of e to the base of {base}, each in two parts */")
        print(f"static const double dlog{base}_of_2[] = {{{float(two[0])!r}, {float(two[1])!r}}};")
        print(f"static const double dlog{base}_of_e[] = {{{float(e[0])!r}, {float(e[1])!r}}};")
        print_table(f"dlog{base}", "as dlog_pieces to that base", *log_entries(base))
    print("#endif")
    step, limit = mpf(25) / 64, mpf(30)
    print(f"\n#define TD_DERF_STEP {float(step)}")
    print(f"enum {{ TD_DERF_DEGREE = {DERF_DEGREE} }};")
    print_table("derf", "erf(a) about the multiples of STEP", *even_odd(mp.erf, step, DERF_DEGREE))
    print(f"\n#define TD_DERFC_LIMIT {float(limit)}\n#define TD_DERFC_SHIFT {float(limit / 15)}")
    print(f"enum {{ TD_DERFC_DEGREE = {DERFC_DEGREE} }};")
    print_table("derfc", "exp(a^2) erfc(a), in octaves of a plus SHIFT", *octaves(erfcx, limit, DERFC_DEGREE))
    limit = mpf(60)
    print(f"\n#define TD_DINVERSE_LIMIT {float(limit)}\n#define TD_DINVERSE_SHIFT {float(limit / 15)}")
    print(f"enum {{ TD_DINVERSE_DEGREE = {DINVERSE_DEGREE} }};")
    print_table("dinverse", "erfinv(x) / x of -log(1 - x^2), in octaves of that plus SHIFT",
                *octaves(erfinv, limit, DINVERSE_DEGREE))
    print("\n/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
