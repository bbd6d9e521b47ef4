#!/usr/bin/env python3
"""Makes vec_double_pieces.h and vec_double_octaves.h, the tables of vec_double.h. Needs mpmath:

    python3 engine/cpu/math/fit_double.py > engine/cpu/math/tables/vec_double_pieces.h
    python3 engine/cpu/math/fit_double.py octaves > engine/cpu/math/tables/vec_double_octaves.h

Tables of polynomials are as those of fit_wide.py, to a double's last places: what the constant term loses
by rounding is a row of its own, behind the constant, and so is that of the next one where that is as large.
How far each polynomial is from its function is said on standard error.
"""
import sys

from mpmath import mp, mpf

from fit_wide import ENTRIES, by_rests, erfinv, print_table

LOG_INVERSES, LOG_TERMS = 32, 10
LN2_DIGITS = 42  # behind the point: of it and of logarithms that are added to its multiples
DERF_DEGREE, DERFC_DEGREE, DINVERSE_DEGREE, DERFINV_DEGREE, DTANH_DEGREE = 13, 14, 13, 15, 14


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


def of_intervals(f, cuts, degree):
    """Centres, the constant terms in two parts, the other terms."""
    columns, worst = [], 0
    for low, high, middle in cuts:
        centre = mpf(float(middle))
        p = interpolate(f, low, high, centre, degree)
        worst = max(worst, off(f, p, 1, low, high, centre))
        columns.append([centre] + rounded(p, 1))
    return list(zip(*columns)), worst


def octaves(f, limit, degree):
    """Four to an octave of the variable and a shift, as in fit_wide.py."""
    shift = mpf(limit) / (ENTRIES - 1)
    cut = lambda k: shift * mpf(2) ** (k // 4) * (1 + mpf(k % 4) / 4) - shift
    return of_intervals(f, [(cut(k), cut(k + 1), (cut(k) + cut(k + 1)) / 2) for k in range(ENTRIES)], degree)


def by_units(f, unit, degree, first):
    """Four to an octave of a variable and a unit, up to 15 units; in the first octaves f over the variable."""
    cut = lambda k: unit * (mpf(2) ** (k // 4) * (1 + mpf(k % 4) / 4) - 1)
    cuts = [(cut(k), cut(k + 1), (cut(k) + cut(k + 1)) / 2) for k in range(ENTRIES)]
    near, off_near = of_intervals(lambda x: f(x) / x, cuts[: 4 * first], degree)
    far, off_far = of_intervals(f, cuts[4 * first :], degree)
    return [tuple(x) + tuple(y) for x, y in zip(near, far)], max(off_near, off_far)


def terms(f, low, high, count):
    return [mpf(float(c)) for c in interpolate(f, low, high, mpf(0), count - 1)]


def short_exp_terms(limit):
    """The share of what a term is off by grows with the square, so that the outer nodes lie far out."""
    nodes = [limit * mpf(x) for x in ("-0.967", "-0.72", "1e-6", "0.72", "0.967")]
    return [mpf(float(c)) for c in through(nodes, lambda r: (mp.expm1(r) - r) / r**2, mpf(0))]


def print_terms(name, what, values):
    print(f"\n/* {what} */\nenum {{ TD_{name.upper()}_TERMS = {len(values)} }};")
    print_list(f"{name}_terms", values)


def print_list(name, values):
    print(f"static const double {name}[] = {{")
    for k, c in enumerate(values):
        print(f"    {float(c)!r}{',' if k < len(values) - 1 else '};'}")


def print_units(name, f, unit, degree, first):
    unit = mpf(float(unit))
    print(f"\n#define TD_{name.upper()}_UNIT {float(unit)!r}")
    print(f"enum {{ TD_{name.upper()}_DEGREE = {degree}, TD_{name.upper()}_OCTAVES = {first} }};")
    what = f"{name[1:]}(a) in octaves of a plus UNIT, in the first ones over a"
    print_table(name, what, *by_units(f, unit, degree, first))


def exp_powers():
    powers = [mpf(2) ** (mpf(k) / ENTRIES) for k in range(ENTRIES)]
    return list(zip(*[rounded([p], 1) for p in powers])), mp.eps


def short(x):
    """As short as what is added to its multiples is: x and what is left of it."""
    high = mp.nint(x * mpf(2) ** LN2_DIGITS) / mpf(2) ** LN2_DIGITS
    return high, x - high


def log_entries(base=mp.e):
    """Of m from 1 + k / 16 on: a number of five digits near 1 / m, and minus the logarithm of that in two parts,
    the first one as short as the multiples of log 2 that it is added to. First and last are 1 and 1 / 2: their
    logarithms are nothing and that of 2."""
    columns = []
    for k in range(ENTRIES):
        inverse = mp.nint(mpf(LOG_INVERSES) / (1 + (k + mpf(1) / 2) / ENTRIES)) / LOG_INVERSES
        inverse = {0: mpf(1), ENTRIES - 1: mpf(1) / 2}.get(k, inverse)
        columns.append([inverse, *short(-mp.log(inverse) / mp.log(base))])
    return list(zip(*columns)), mp.eps


def log_rests():
    """Between which f lies."""
    inverses = log_entries()[0][0]
    ends = [inverse * (1 + mpf(k + j) / ENTRIES) - 1 for k, inverse in enumerate(inverses) for j in (0, 1)]
    return min(ends), max(ends)


def log_terms(base=mp.e):
    """The share of a term grows as f does, beside the first one: the nodes lie far out. The first term is to be
    the same double as if it were alone."""
    low, high = log_rests()
    nodes = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * LOG_TERMS)) for k in range(LOG_TERMS)]
    f = lambda x: (mp.log1p(x) - x) / x**2 / mp.log(base)
    p = [mpf(float(c)) for c in through(nodes, f, mpf(0))]
    xs = [low + (high - low) * (k + mpf(1) / 97) / 60 for k in range(60)]
    worst = max(abs((mp.polyval(p[::-1], x) - f(x)) * x * x / mp.log1p(x) * mp.log(base)) for x in xs)
    print(f"log: 2^{float(mp.log(worst, 2)):.1f}, f from {float(low)} to {float(high)}", file=sys.stderr)
    return p


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def print_octaves():
    print("""/* vec_double_octaves.h: made by fit_double.py, which says what it holds; not to be edited. */
#ifndef TD_CPU_MATH_TABLES_VEC_DOUBLE_OCTAVES_H
#define TD_CPU_MATH_TABLES_VEC_DOUBLE_OCTAVES_H

#include "engine/cpu/math/table_form.h"

/* clang-format off */""")
    print_units("dtanh", mp.tanh, mpf("20.02") / 15, DTANH_DEGREE, 1)
    print_units("derf", mp.erf, mpf("0.408"), DERF_DEGREE, 2)
    print(f"\nenum {{ TD_DERFINV_DEGREE = {DERFINV_DEGREE} }};")
    print_table("derfinv", "erfinv(x) / x by 1 - x, two to an octave", *of_intervals(
        lambda x: mp.erfinv(x) / x, by_rests(), DERFINV_DEGREE))
    print("\n/* clang-format on */\n\n#endif")


def main():
    if sys.argv[1:] == ["octaves"]:
        print_octaves()
        return
    print("""/* vec_double_pieces.h: made by fit_double.py, which says what it holds; not to be edited. */
#ifndef TD_CPU_MATH_TABLES_VEC_DOUBLE_PIECES_H
#define TD_CPU_MATH_TABLES_VEC_DOUBLE_PIECES_H

#include "engine/cpu/math/table_form.h"

/* clang-format off */""")
    narrow = mp.log(2) / (2 * ENTRIES)
    print("\n#if TD_EXP_BY_TABLE_D")
    print_table("dexp", "2^(k / 16), and what rounding took from it", *exp_powers())
    print_terms("dexp", "(exp(r) - 1 - r) / r^2 within ln 2 / 32 of 0",
                terms(lambda r: (mp.expm1(r) - r) / r**2, -narrow, narrow, 6))
    print_terms("dexp_short", "the same of fewer terms, to the last place", short_exp_terms(narrow))
    print_terms("dtanh", "(tanh(x) - x) / x^3 in x^2, for x to a quarter",
                terms(lambda t: (mp.tanh(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, mpf(0), mpf(1) / 16, 10))
    print_table("dlog", "of m from 1 + k / 16 on nearly 1 / m, and the logarithm of 1 over that in two parts",
                *log_entries())
    print_terms("dlog", "(log(1 + f) - f) / f^2", log_terms())
    for base in 2, 10:
        two, e = short(mp.log(2) / mp.log(base)), rounded([1 / mp.log(base)], 1)
        print(f"\n/* logarithms of 2 and of e to the base of {base}, each in two parts */")
        print(f"static const double dlog{base}_of_2[] = {{{float(two[0])!r}, {float(two[1])!r}}};")
        print(f"static const double dlog{base}_of_e[] = {{{float(e[0])!r}, {float(e[1])!r}}};")
        print_table(f"dlog{base}", "as dlog_pieces to that base", *log_entries(base))
        print_list(f"dlog{base}_terms", log_terms(base))
    print("#endif")
    limit = mpf(30)
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
