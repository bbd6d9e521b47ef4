#!/usr/bin/env python3
"""Makes vec_angle_pieces.h, the polynomials of vec_angle.h. Needs mpmath:

    python3 engine/cpu/math/fit_angles.py > engine/cpu/math/tables/vec_angle_pieces.h

Polynomials are the interpolation at the nodes of Chebyshev, in floats; but for the first ones of arc
tangents, which go by interval, they are in powers of the square of the angle. How far each is from its
function, as a share of the result that it is a part of, is said on standard error as a power of two.
"""
import struct
import sys
import textwrap

from mpmath import mp, mpf

mp.prec = 200
CANDIDATES, PARTS = 20000, 8
SINE_TERMS, COSINE_TERMS, TANGENT_TERMS, COTANGENT_TERMS = 3, 3, 8, 5
ARC_TERMS, ARC_DEGREE, LOG_TERMS = 6, 5, 9
TANGENT_MIDDLE = mpf(7) / 16  # about which squares lose less by rounding


def to_float(x):
    return mpf(struct.unpack("<f", struct.pack("<f", float(x)))[0])


def interpolate(f, low, high, centre, count):
    """Coefficients in powers of (x - centre), by Newton's differences."""
    middle, half = (low + high) / 2, (high - low) / 2
    xs = [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    d = [f(x) for x in xs]
    for j in range(1, count):
        for k in range(count - 1, j - 1, -1):
            d[k] = (d[k] - d[k - 1]) / (xs[k] - xs[k - j])
    p = [mpf(0)] * count
    for k in range(count - 1, -1, -1):
        at = xs[k] - centre
        p = [(p[i - 1] if i else 0) - at * p[i] for i in range(count)]
        p[0] += d[k]
    return p


def floats(p):
    return [to_float(c) for c in p]


def said(name, worst):
    print(f"{name}: 2^{float(mp.log(worst, 2)):.1f}", file=sys.stderr)


def squares(name, f, limit, count, share, centre=mpf(0)):
    """f of u = r^2 for |r| up to the limit; share(r) times f is a part of the result."""
    top = mpf(limit) ** 2
    p = floats(interpolate(f, mpf(2) ** -60, top, centre, count))
    xs = [top * (k + mpf(1) / 97) / 60 for k in range(60)]
    said(name, max(abs((mp.polyval(p[::-1], u - centre) - f(u)) * share(mp.sqrt(u))) for u in xs))
    return p


def literal(x):
    """The float in as few digits as tell it apart."""
    for digits in range(1, 10):
        text = f"{float(x):.{digits}g}"
        if to_float(float(text)) == mpf(x):
            break
    return text + ("f" if "." in text or "e" in text else ".0f")


def parts(x, count):
    """Of so many floats, each of which is what the ones before it lack."""
    result = []
    for _ in range(count):
        result.append(to_float(x - sum(result)))
    return result


def print_list(name, p):
    words = "\n    ".join(textwrap.wrap(", ".join(literal(c) for c in p), 94))
    print(f"static const float {name}[{len(p)}] = {{\n    {words}}};")


def print_rows(name, what, rows):
    print(f"\n/* {what} */")
    print(f"static const float {name}[{len(rows)}][{2 * PARTS}] = {{")
    for row in rows:
        body = textwrap.wrap(", ".join(literal(c) for c in row + row), 92)
        print("    {" + "\n     ".join(body) + "},")
    print("};")


def turns():
    """sin(k pi / 4) and cos(k pi / 4), and by which share of them both are less than they should be."""
    tops = floats([mpf(0) if k % 4 == 0 else mp.sin(mp.pi * k / 4) for k in range(PARTS)])
    share = to_float(mp.sqrt(0.5) / tops[1] - 1)
    return [tops, tops[2:] + tops[:2], [share * (k % 2) for k in range(PARTS)]]


def tangents():
    """By parity of the quarter, in powers of u - TANGENT_MIDDLE."""
    limit = mp.pi / 4 * mpf(1.003)
    tan = squares("tan", lambda u: mp.tan(mp.sqrt(u)) / mp.sqrt(u) - 1, limit, TANGENT_TERMS,
                  lambda r: r / mp.tan(r), TANGENT_MIDDLE)
    cot = squares("cot", lambda u: (1 / mp.sqrt(u) - mp.cot(mp.sqrt(u))) / mp.sqrt(u), limit, COTANGENT_TERMS,
                  lambda r: r / mp.cot(r), TANGENT_MIDDLE)
    return [list(pair) * (PARTS // 2) for pair in zip(tan, cot)], tan[COTANGENT_TERMS:]


def loss(x):
    """By rounding, in units of the last place."""
    return abs(x - to_float(x)) * mpf(2) ** (23 - mp.floor(mp.log(abs(x), 2)))


def arc_centre(k):
    """About the k-th of 7 parts of 1, where neither value nor the slope loses much by rounding, least of all the
    value beyond 1, since there the inverse has been rounded too."""
    middle = mpf(k) / (PARTS - 1)
    share = mpf(1) / (2 * k - 1)  # of the change within the interval, in the least value there
    best = None
    for j in range(CANDIDATES):
        c = to_float(middle + (mpf(j) / CANDIDATES - mpf(1) / 2) / 100)
        near = mp.atan(c)
        value = max(loss(near) * (0.4 if k > 3 else 1), loss(mp.pi / 2 - near), loss(1 / (1 + c * c)) * share)
        if best is None or value < best[0]:
            best = (value, c)
    return best[1]


def arcs():
    """The centre, the terms of atan(z) about it, and pi / 2 less the constant one."""
    columns, worst = [], 0
    for k in range(PARTS):
        low, high = [(k + mpf(s) / 2) / (PARTS - 1) for s in (-1, 1)]
        low, high = max(low, 0), min(high, mpf(1))
        centre = arc_centre(k) if k else mpf(0)
        if k:
            p = interpolate(mp.atan, low, high, centre, ARC_DEGREE + 1)
        else:
            rest = lambda z: (mp.atan(z) - z) / z**2
            p = [mpf(0), mpf(1)] + interpolate(rest, low, high, centre, ARC_DEGREE - 1)
        p = floats(p)
        xs = [low + (high - low) * (j + mpf(1) / 97) / 11 for j in range(11)]
        exact = [mp.atan(centre)] + p[1:]
        worst = max([worst] + [abs(mp.polyval(exact[::-1], x - centre) / mp.atan(x) - 1) for x in xs])
        columns.append([centre] + p + [to_float(mp.pi / 2 - mp.atan(centre))])
    said("atan", worst)
    return [list(row) for row in zip(*columns)]


def log10_terms():
    """(log10(1 + f) - f / log(10)) / f^2 from -0.3 to 0.4."""
    f = lambda x: (mp.log10(1 + x) - x * mp.log10(mp.e)) / x**2
    low, high = mpf(-0.3), mpf(0.4)
    p = floats(interpolate(f, low * mpf(1.003), high * mpf(1.003), mpf(0), LOG_TERMS))
    xs = [low + (high - low) * (k + mpf(1) / 97) / 60 for k in range(60)]
    said("log10", max(abs((mp.polyval(p[::-1], x) - f(x)) * x * x / mp.log10(1 + x)) for x in xs))
    return p


def main():
    limit = mp.pi / 8 * mpf(1.003)
    sine = squares("sin", lambda u: (mp.sin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, limit, SINE_TERMS, lambda r: r**2)
    cosine = squares("cos", lambda u: (mp.cos(mp.sqrt(u)) - 1) / u, limit, COSINE_TERMS, lambda r: r**2)
    arc = squares("asin", lambda u: (mp.asin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, mpf(0.5), ARC_TERMS,
                  lambda r: r**3 / mp.asin(r))
    print("""/* vec_angle_pieces.h: made by fit_angles.py, which says what it holds; not to be edited. */
#ifndef TD_CPU_MATH_TABLES_VEC_ANGLE_PIECES_H
#define TD_CPU_MATH_TABLES_VEC_ANGLE_PIECES_H

/* clang-format off */
""")
    print(f"enum {{ TD_TANGENT_ROWS = {COTANGENT_TERMS}, TD_TANGENT_MORE = {TANGENT_TERMS - COTANGENT_TERMS} }};")
    print(f"enum {{ TD_ARC_TERMS = {ARC_TERMS}, TD_ARC_DEGREE = {ARC_DEGREE} }};")
    print(f"enum {{ TD_SINE_TERMS = {SINE_TERMS}, TD_COSINE_TERMS = {COSINE_TERMS}, TD_LOG10_TERMS = {LOG_TERMS} }};")
    print(f"#define TD_TANGENT_MIDDLE {literal(TANGENT_MIDDLE)}")
    print("\n/* pi / 4, pi / 2, pi and log10(2) in parts. */")
    print_list("eighth_turns", parts(mp.pi / 4, 3))
    print_list("quarter_turns", parts(mp.pi / 2, 3))
    print_list("half_turns", parts(mp.pi, 2))
    digits = mpf(2) ** 16
    top = mp.floor(mp.log10(2) * digits) / digits
    print_list("log10_of_2", [top, to_float(mp.log10(2) - top)])
    print_list("log10_of_e", parts(mp.log10(mp.e), 2))
    print("\n/* (sin(r) - r) / r^3 and (cos(r) - 1) / r^2 within pi / 8 of 0; (asin(r) - r) / r^3 within 1 / 2. */")
    print_list("sine_terms", sine)
    print_list("cosine_terms", cosine)
    print_list("arc_terms", arc)
    print("\n/* (log10(1 + f) - f / log(10)) / f^2 from -0.3 to 0.4. */")
    print_list("log10_terms", log10_terms())
    print_rows("turn_rows", "sin(k pi / 4), cos(k pi / 4), the share of both that rounding takes", turns())
    rows, more = tangents()
    print_rows("tangent_rows", """(tan(r) - r) / r and (1 / r - cot(r)) / r by turns, within pi / 4 of 0: terms in r^2 less
 * the middle; of the first there are more. """, rows)
    print_list("tangent_terms", more)
    print_rows("arc_rows", "Centre, terms of atan about it, pi / 2 less the constant one; about 0 that of z is 1", arcs())
    print("""
/* clang-format on */

#endif""")


if __name__ == "__main__":
    main()
