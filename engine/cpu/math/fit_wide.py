#!/usr/bin/env python3
"""Makes vec_wide_pieces.h, the polynomials of vec_wide.h, and vec_erfinv_lines.h, a longer table. Needs mpmath:

    python3 engine/cpu/math/fit_wide.py > engine/cpu/math/tables/vec_wide_pieces.h
    python3 engine/cpu/math/fit_wide.py erfinv > engine/cpu/math/tables/vec_erfinv_lines.h

Each function is cut into 16 intervals, in each of which it is the interpolation at the nodes of Chebyshev.
Even tables are of a variable from 0 to 15, cut half-way between whole numbers: the polynomial is in powers
of the distance from the nearest. The intervals of others are four to an octave of their variable plus a
shift, a power of two, or two to an octave of what they lack of 1; the first row has the middles. How far each polynomial is from its function, beside its largest
value there, is said on standard error as a power of two. Tables of lines have the coefficients of an interval
side by side, six of the eight in a line of the cache: eight to an octave of their variable, from a power of two to 1, whose bits say which, and 1 itself.
"""
import sys

from mpmath import mp, mpf

mp.prec = 200
ENTRIES = 16
EPSILON = mpf(10) ** -50


def interpolate(f, low, high, centre, degree):
    """Coefficients in powers of (x - centre), by Newton's differences."""
    n = degree + 1
    middle, half = (low + high) / 2, (high - low) / 2
    xs = [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    d = [f(x) for x in xs]
    for j in range(1, n):
        for k in range(n - 1, j - 1, -1):
            d[k] = (d[k] - d[k - 1]) / (xs[k] - xs[k - j])
    p = [mpf(0)] * n
    for k in range(n - 1, -1, -1):
        at = xs[k] - centre
        p = [(p[i - 1] if i else 0) - at * p[i] for i in range(n)]
        p[0] += d[k]
    return [mpf(float(c)) for c in p]


def off(f, p, low, high, centre):
    """How far the polynomial is from f, between the nodes."""
    xs = [low + (high - low) * (k + mpf(1) / 97) / 11 for k in range(11)]
    return max(abs(mp.polyval(p[::-1], x - centre) / f(x) - 1) for x in xs)


def rows_of(f, intervals, degree):
    columns, worst = [], 0
    for low, high, centre in intervals:
        p = interpolate(f, low, high, centre, degree)
        worst = max(worst, off(f, p, low, high, centre))
        columns.append(p)
    return list(zip(*columns)), worst


def even(f, degree):
    half = mpf(1) / 2
    cuts = [(max(0, k - half), min(ENTRIES - 1, k + half), mpf(k)) for k in range(ENTRIES)]
    return rows_of(f, cuts, degree)


def even_from_0(f, degree):
    """Of a function that is 0 at 0, where the polynomial is so too."""
    rows, worst = even(f, degree)
    first, off_first = even(lambda v: f(v) / v, degree - 1)
    for k in range(degree + 1):
        rows[k] = (first[k - 1][0] if k else mpf(0),) + rows[k][1:]
    return rows, max(worst, off_first)


def octaves(f, limit, degree):
    shift = mpf(limit) / (ENTRIES - 1)  # a power of two, so that bits cut it so
    cut = lambda k: shift * mpf(2) ** (k // 4) * (1 + mpf(k % 4) / 4) - shift
    cuts = [(cut(k), cut(k + 1), mpf(float((cut(k) + cut(k + 1)) / 2))) for k in range(ENTRIES)]
    rows, worst = rows_of(f, cuts, degree)
    return [[c for _, _, c in cuts]] + rows, worst


def by_rests():
    """Of x from 0 on: two to an octave of 1 - x, down to a power of two; the last three bits of its exponent and
    the first one of its digits say which."""
    cuts = []
    for k in range(ENTRIES):
        power = mpf(2) ** (-8 if k // 2 == 7 else k // 2 - 7)
        high, low = [1 - power * (2 + k % 2 + j) / 2 for j in (0, 1)]
        cuts.append((low, high, (low + high) / 2))
    return cuts


def print_rows(rows):
    for row in rows:
        line = "    {"
        for k, c in enumerate(row):
            word = repr(float(c)) + (", " if k < len(row) - 1 else "},")
            if len(line) + len(word) > 98:
                print(line.rstrip())
                line = "     "
            line += word
        print(line)
    print("};")


def print_table(name, what, rows, worst):
    """Rows of one coefficient for all intervals, or lines of an interval's, filled up to pairs."""
    print(f"{name}: 2^{float(mp.log(worst, 2)):.1f}", file=sys.stderr)
    lines = [list(line) + [0] * (len(rows) % 2) for line in zip(*rows)]
    print(f"\n/* {what} */\nenum {{ {name}_rows = {len(rows)} }};\n#if TD_TABLES_BY_ROWS")
    print(f"static const double {name}_pieces[{len(rows)}][{ENTRIES}] = {{")
    print_rows(rows)
    print(f"#else\nstatic const double {name}_pieces[{ENTRIES}][{len(lines[0])}] = {{")
    print_rows(lines)
    print("#endif")


def lines(f, octaves, degree):
    """The coefficients of each interval."""
    half = lambda k: mpf(2) ** (k // 8 - octaves) / 16
    middle = lambda k: half(k) * (16 + 2 * (k % 8) + 1)
    cuts = [(middle(k) - half(k), middle(k) + half(k), middle(k)) for k in range(8 * octaves)]
    rows, worst = rows_of(f, cuts, degree)
    at_1 = [f(mpf(1))] + [mpf(0)] * degree
    return list(zip(*rows)) + [at_1], worst


def print_lines(name, what, table, worst):
    print(f"{name}: 2^{float(mp.log(worst, 2)):.1f}", file=sys.stderr)
    print(f"\n/* {what} */")
    print(f"static const double {name}_lines[{len(table)}][8] = {{")
    print_rows(table)


def series(ratio, start):
    """start times 1 + ratio(1) (1 + ratio(2) (1 + ...)), as far as it is good."""
    total = term = mpf(1)
    for k in range(1, 200):
        term *= ratio(k)
        total += term
        if abs(term) < EPSILON:
            break
    return start * total


def erfcx(u, c):
    """Of x, where u = c / (c + x), over u."""
    if u == 0:
        return 1 / (c * mp.sqrt(mp.pi))
    x = c / u - c
    if x < 40:
        return mp.exp(x * x) * mp.erfc(x) / u
    return series(lambda k: -(2 * k - 1) / (2 * x * x), 1 / (x * mp.sqrt(mp.pi))) / u


def bessel(order, u, c):
    """exp(-a) I(a), where u = c / (c + a), over what it tends to: u^(1/2), a u^(3/2) for order 1."""
    if u == 0:
        return 1 / mp.sqrt(2 * mp.pi * c) / c**order
    a = c / u - c
    if a == 0:
        return mpf(1) / (1 + order)
    if a < 200:
        y = mp.besseli(order, a) * mp.exp(-a)
    else:
        ratio = lambda k: ((2 * k - 1) ** 2 - 4 * order) / (8 * k * a)
        y = series(ratio, 1 / mp.sqrt(2 * mp.pi * a))
    return y / mp.sqrt(u) / (a * u) ** order


def erfinv(w):
    """Of x over x, where w = -log(1 - x^2): by Newton's steps in log erfc."""
    if w < mpf(10) ** -20:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    rest = mp.exp(-w) / (1 + x)
    if w < 1:
        return mp.erfinv(x) / x
    y = mp.sqrt(w)
    while True:
        c = mp.erfc(y)
        step = mp.log(rest / c) * c * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
        y -= step
        if abs(step) < y * EPSILON:
            return y / x


ERFCX_C, BESSEL_C = mpf(2), mpf(4)
ERFINV_LIMIT, NDTRI_LIMIT = mpf("16.7"), mpf(120)
ERFINV_OCTAVES = 24


def print_erfinv_lines():
    print("""/* vec_erfinv_lines.h: made by fit_wide.py, which says what it holds; not to be edited. */
#ifndef TD_CPU_MATH_TABLES_VEC_ERFINV_LINES_H
#define TD_CPU_MATH_TABLES_VEC_ERFINV_LINES_H

/* clang-format off */""")
    print(f"\n#define TD_ERFINV_OCTAVES {ERFINV_OCTAVES}")
    print_lines("erfinv", "erfinv(x) / x of 1 - x^2, which of a float is at least 2^-OCTAVES",
                *lines(lambda u: erfinv(-mp.log(u)), ERFINV_OCTAVES, 5))
    print("\n/* clang-format on */\n\n#endif")


def main():
    if sys.argv[1:] == ["erfinv"]:
        print_erfinv_lines()
        return
    print("""/* vec_wide_pieces.h: made by fit_wide.py, which says what it holds; not to be edited. */
#ifndef TD_CPU_MATH_TABLES_VEC_WIDE_PIECES_H
#define TD_CPU_MATH_TABLES_VEC_WIDE_PIECES_H

#include "engine/cpu/math/table_form.h"

/* clang-format off */""")
    LAST = mpf(ENTRIES - 1)
    print(f"\n#define TD_ERFCX_C {float(ERFCX_C)}")
    print_table("erfcx", "exp(x^2) erfc(x) of v = 15 C / (C + x)",
                *even_from_0(lambda v: erfcx(v / LAST, ERFCX_C) * v / LAST, 9))
    print_table("erfc", "the same over v, as near as a float needs",
                *even(lambda v: erfcx(v / LAST, ERFCX_C) / LAST, 6))
    print(f"\n#define TD_BESSEL_C {float(BESSEL_C)}")
    print_table("i0", "exp(-a) I0(a) / v^(1/2) of v = 15 C / (C + a)",
                *even(lambda v: bessel(0, v / LAST, BESSEL_C) / mp.sqrt(LAST), 10))
    print_table("i1", "exp(-a) I1(a) / (a v^(3/2)) of the same",
                *even(lambda v: bessel(1, v / LAST, BESSEL_C) / mp.sqrt(LAST) ** 3, 10))
    print_table("i0_short", "I0's, as near as a float needs",
                *even(lambda v: bessel(0, v / LAST, BESSEL_C) / mp.sqrt(LAST), 6))
    print_table("i1_short", "I1's",
                *even(lambda v: bessel(1, v / LAST, BESSEL_C) / mp.sqrt(LAST) ** 3, 6))
    print(f"\n#define TD_ERFINV_LIMIT {float(ERFINV_LIMIT)}")
    print_table("erfinv", "erfinv(x) / x of -15 log(1 - x^2) / LIMIT",
                *even(lambda v: erfinv(v * ERFINV_LIMIT / LAST), 6))
    rows, worst = rows_of(lambda x: mp.erfinv(x) / x, by_rests(), 8)
    print_table("erfinv_near", "erfinv(x) / x by 1 - x, two to an octave: centres and terms",
                [[c for _, _, c in by_rests()]] + rows, worst)
    print(f"\n#define TD_NDTRI_LIMIT {float(NDTRI_LIMIT)}")
    print(f"#define TD_NDTRI_SHIFT {float(NDTRI_LIMIT / LAST)}")
    print_table("ndtri", "the same of -log(1 - x^2), in octaves of that plus SHIFT",
                *octaves(erfinv, NDTRI_LIMIT, 8))
    print("\n/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
