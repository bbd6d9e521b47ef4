#!/usr/bin/env python3
"""Makes vec_double_angle_pieces.h, the tables of vec_double_angle.h. Needs mpmath:

    python3 engine/cpu/math/fit_double_angles.py > engine/cpu/math/tables/vec_double_angle_pieces.h

Polynomials interpolate, in powers of the square of the angle, at nodes like those of Chebyshev. How far
each is from its function, as a share of the result that it is a part of, is said on standard error as a
power of two.
"""
import sys

from mpmath import mp, mpf

from fit_double import print_terms, rounded, through
from fit_wide import ENTRIES, print_table

PART_DIGITS = 37  # of a step's first two parts: so many that multiples by 16 bits are exact
ATAN_PARTS = 15.45  # so that what is about 15 reaches as far from 0 as others do from their middles
SINE_TERMS, COSINE_TERMS, TANGENT_TERMS, ARC_TERMS, ATAN_TERMS = 4, 5, 5, 12, 5


def said(name, worst):
    print(f"{name}: 2^{float(mp.log(worst, 2)):.1f}", file=sys.stderr)


def squares(name, f, limit, count, share):
    """f of u = r^2 for |r| up to the limit; share(r) times f is a part of the result. The share is about u, and
    so 0 would be one more node: the others lie as if it were."""
    top = mpf(limit) ** 2
    cosines = [mp.cos(mp.pi * (2 * k + 1) / (2 * count + 2)) for k in range(count + 1)]
    nodes = [top * (x - cosines[-1]) / (1 - cosines[-1]) for x in cosines[:-1]]
    p = [mpf(float(c)) for c in through(nodes, f, mpf(0))]
    xs = [top * (k + mpf(1) / 97) / 60 for k in range(60)]
    said(name, max(abs((mp.polyval(p[::-1], u) - f(u)) * share(mp.sqrt(u))) for u in xs))
    return p


def short(x, digits):
    unit = mpf(2) ** (mp.floor(mp.log(abs(x), 2)) + 1 - digits)
    return mp.nint(x / unit) * unit


def step_parts(x):
    first = short(x, PART_DIGITS)
    second = short(x - first, PART_DIGITS)
    return [first, second, mpf(float(x - first - second))]


def turn(step):
    """sin(k step) and cos(k step), and what rounding took from both."""
    columns = []
    for k in range(ENTRIES):
        pair = [mp.sin(k * step), mp.cos(k * step)]
        pair = [mpf(0) if abs(x) < mpf(2) ** -100 else x for x in pair]
        high = [mpf(float(x)) for x in pair]
        columns.append(high + [x - y for x, y in zip(pair, high)])
    return list(zip(*columns))


def arcs():
    """Where parts / (1 + a) is about k: a number in the middle, and its arc tangent in two parts. The first is
    one beside which all that are smaller are nothing, up to 2^100."""
    columns = []
    for k in range(ENTRIES):
        centre = mpf(ATAN_PARTS / k - 1) if 0 < k < ENTRIES - 1 else mpf(0)
        centre = centre if k else mpf(2) ** 60
        columns.append([centre] + rounded([mp.atan(centre)], 1))
    return list(zip(*columns))


def print_parts(name, what, values):
    print(f"\n/* {what} */\nstatic const double {name}[] = {{{', '.join(repr(float(c)) for c in values)}}};")


def main():
    eighth, sixteenth = mp.pi / 8, mp.pi / 16
    print("""/* vec_double_angle_pieces.h: made by fit_double_angles.py, which says what it holds; not to be
 * edited. */
#ifndef TD_CPU_MATH_TABLES_VEC_DOUBLE_ANGLE_PIECES_H
#define TD_CPU_MATH_TABLES_VEC_DOUBLE_ANGLE_PIECES_H

#include "engine/cpu/math/table_form.h"

/* clang-format off */""")
    print_parts("dsine_step", "pi / 8 in parts", step_parts(eighth))
    print_table("dsine", "sin(k pi / 8), cos(k pi / 8), what rounding took from both", turn(eighth), mp.eps)
    limit = eighth / 2 * mpf("1.00001")
    print_terms("dsine", "(sin(r) - r) / r^3 within pi / 16 of 0",
                squares("sin", lambda u: (mp.sin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, limit, SINE_TERMS, lambda r: r**2))
    print_terms("dcosine", "(cos(r) - 1) / r^2 likewise",
                squares("cos", lambda u: (mp.cos(mp.sqrt(u)) - 1) / u, limit, COSINE_TERMS, lambda r: r**2))
    print_parts("dtangent_step", "pi / 16 in parts", step_parts(sixteenth))
    print_table("dtangent", "sin(k pi / 16), cos(k pi / 16), what rounding took from both", turn(sixteenth), mp.eps)
    limit = sixteenth / 2 * mpf("1.00001")
    print_terms("dtangent", "(tan(r) - r) / r^3 within pi / 32 of 0",
                squares("tan", lambda u: (mp.tan(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, limit, TANGENT_TERMS,
                        lambda r: r**3 / mp.tan(r)))
    print_parts("dquarter_turn", "pi / 2 in parts", rounded([mp.pi / 2], 1))
    print_terms("darc", "(asin(r) - r) / r^3 within 1 / 2 of 0",
                squares("asin", lambda u: (mp.asin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, mpf(1) / 2, ARC_TERMS,
                        lambda r: r**3 / mp.asin(r)))
    print(f"\n#define TD_ATAN_PARTS {ATAN_PARTS!r}")
    print_table("datan", "of a where PARTS / (1 + a) is about k a centre, and its arc tangent in two parts", arcs(), mp.eps)
    print_terms("datan", "(atan(r) - r) / r^3 within 0.066 of 0",
                squares("atan", lambda u: (mp.atan(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, mpf("0.066"), ATAN_TERMS,
                        lambda r: r**3 / mp.atan(r)))
    print("\n/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
