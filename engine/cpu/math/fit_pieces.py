#!/usr/bin/env python3
"""Makes vec_pieces.h, the polynomials of vec_float.h. Needs mpmath:

    python3 engine/cpu/math/fit_pieces.py > engine/cpu/math/tables/vec_pieces.h

Each function is cut into 16 intervals, whose bounds are the floats four to an octave of a + shift. In
each one it is the interpolation at the nodes of Chebyshev about a centre, in floats. Of the centres near
the middle one is taken of which rounding the constant and the next term takes little. The interval next
to 0 is about 0, and lacks its first term, a or a / 2. In the tables called near and far, intervals are what is
nearest to the multiples of a step, and that about 0 has all its terms.
"""
import struct
import textwrap

from mpmath import mp, mpf

mp.prec = 200
ENTRIES, CANDIDATES, STEP = 16, 400, mpf(2) ** -50


def bits(x):
    return struct.unpack("<i", struct.pack("<f", x))[0]


def of_bits(b):
    return struct.unpack("<f", struct.pack("<i", b))[0]


def to_float(x):
    return mpf(struct.unpack("<f", struct.pack("<f", float(x)))[0])


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
    return p


def intervals(shift):
    start = bits(shift)
    cuts = [mpf(of_bits(start + (k << 21))) - mpf(of_bits(start)) for k in range(ENTRIES + 1)]
    return [(cuts[k], cuts[k + 1]) for k in range(ENTRIES)]


def lost(x):
    """By rounding, in units of the last place."""
    return abs(x - to_float(x)) * mpf(2) ** (23 - mp.floor(mp.log(abs(x), 2)))


def best_centre(f, low, high):
    """That about the middle where the first two coefficients happen to be nearly floats."""
    middle, width = to_float((low + high) / 2), high - low
    best = None
    for k in range(CANDIDATES):
        c = to_float(middle + width * (mpf(k) / CANDIDATES - mpf(1) / 2) / 4)
        value, slope = f(c), (f(c + STEP) - f(c - STEP)) / (2 * STEP)
        loss = lost(value) + lost(slope) * abs(slope / value) * width
        if best is None or loss < best[0]:
            best = (loss, c)
    return best[1]


def columns(f, shift, limit, degree, slope):
    result = []
    for k, (low, high) in enumerate(intervals(shift)):
        high = min(high, mpf(limit))
        if k == 0:
            centre = mpf(0)
            p = [mpf(0)] + interpolate(lambda x: f(x) / x - slope, low, high, centre, degree - 1)
        else:
            centre = best_centre(f, low, high)
            p = interpolate(f, low, high, centre, degree)
        result.append([centre] + [to_float(c) for c in p])
    return result


def even_columns(f, step, degree, first, entries):
    """About the multiples of a step; f begins with the terms `first`, which are floats. Fewer entries are there
    again and again."""
    result = []
    for k in range(entries):
        low, high = (max(k - mpf(1) / 2, 0) * step, (k + mpf(1) / 2) * step)
        if k == 0:
            centre, n = mpf(0), len(first)
            p = first + interpolate(lambda x: (f(x) - sum(c * x**i for i, c in enumerate(first))) / x**n,
                                    low, high, centre, degree - n)
        else:
            centre = best_centre(f, low, high)
            p = interpolate(f, low, high, centre, degree)
        result.append([centre] + [to_float(c) for c in p])
    return result * (ENTRIES // entries)


def literal(x):
    """The float in as few digits as tell it apart."""
    value = float(x)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if to_float(float(text)) == mpf(value):
            break
    return text + ("f" if "." in text or "e" in text else ".0f")


def print_rows(rows):
    for row in rows:
        line = "    {"
        for k, c in enumerate(row):
            word = literal(c) + (", " if k < ENTRIES - 1 else "},")
            if len(line) + len(word) > 98:
                print(line.rstrip())
                line = "     "
            line += word
        print(line)
    print("}};")


def table(name, what, f, shift, limit, degree, slope):
    print(f"\n/* {what} */")
    print(f"#define TD_{name.upper()}_SHIFT {literal(to_float(shift))}")
    print(f"#define TD_{name.upper()}_LIMIT {literal(to_float(limit))}")
    print(f"static const td_pieces {name}_pieces = {{{{")
    print_rows(zip(*columns(f, shift, limit, degree, slope)))


def even_table(name, what, f, step, limit, degree, first, entries=ENTRIES):
    print(f"\n/* {what}, about the multiples of {float(step):g}; used up to the limit */")
    print(f"enum {{ TD_{name.upper()}_DEGREE = {degree} }};")
    print(f"#define TD_{name.upper()}_ROUND {literal(mpf(step) * 3 * 2**22)}")
    print(f"#define TD_{name.upper()}_LIMIT {literal(to_float(limit))}")
    print(f"static const td_pieces {name} = {{{{")
    print_rows(zip(*even_columns(f, mpf(step), degree, [mpf(c) for c in first], entries)))


def a_erfcx(a):
    z = a / mp.sqrt(2)
    return a * mp.exp(z * z) * mp.erfc(z) / 2


DEGREE, EXP_TERMS, EXP_PARTS, EXP_SHORT_TERMS, EXP_LONG_TERMS, LOG_TERMS = 6, 3, 8, 2, 5, 9


def terms(f, low, high, count):
    """Of the interpolation about 0, as floats; the interval is made a little longer."""
    p = interpolate(f, low * mpf(1.01), high * mpf(1.005), mpf(0), count - 1)
    return "\n    ".join(textwrap.wrap(", ".join(literal(to_float(c)) for c in p), 94))


def exp_terms(parts, count):
    """(exp(r) - 1 - r) / r^2 within half of a part of 0."""
    half = mp.log(2) / (2 * parts)
    return terms(lambda r: (mp.expm1(r) - r) / r**2, -half, half, count)


def log_terms(low, high):
    """(log(1 + f) - f + f^2 / 2) / f^3."""
    return terms(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mpf(low), mpf(high), LOG_TERMS)


def log2_terms(low, high):
    """(log2(1 + f) - f / log(2)) / f^2."""
    return terms(lambda f: (mp.log1p(f) - f) / (f**2 * mp.log(2)), mpf(low), mpf(high), LOG_TERMS)


def exp_powers(parts):
    powers = [mpf(2) ** (mpf(k % parts) / parts) for k in range(ENTRIES)]
    tops = [to_float(x) for x in powers]
    return [tops, [to_float(x - top) for x, top in zip(powers, tops)]]


print(f"""/* vec_pieces.h: made by fit_pieces.py, which says what it holds; not to be edited. */
#ifndef TD_CPU_MATH_TABLES_VEC_PIECES_H
#define TD_CPU_MATH_TABLES_VEC_PIECES_H

/* clang-format off */

enum {{ TD_PIECES_DEGREE = {DEGREE} }};

/* By interval: the centre and the terms, the constant one first; some have one more. */
typedef struct td_pieces {{
    float rows[TD_PIECES_DEGREE + 3][{ENTRIES}];
}} td_pieces;

typedef struct td_powers {{
    float rows[2][{ENTRIES}];
}} td_powers;

/* (exp(r) - 1 - r) / r^2 within ln 2 / {2 * EXP_PARTS} of 0, within half of that, and within
 * ln 2 / 2. */
enum {{
    TD_EXP_TERMS = {EXP_TERMS},
    TD_EXP_SHORT_TERMS = {EXP_SHORT_TERMS},
    TD_EXP_LONG_TERMS = {EXP_LONG_TERMS}
}};
static const float exp_terms[TD_EXP_TERMS] = {{{exp_terms(EXP_PARTS, EXP_TERMS)}}};
static const float exp_short_terms[TD_EXP_SHORT_TERMS] = {{
    {exp_terms(2 * EXP_PARTS, EXP_SHORT_TERMS)}}};
static const float exp_long_terms[TD_EXP_LONG_TERMS] = {{
    {exp_terms(1, EXP_LONG_TERMS)}}};

/* (log(1 + f) - f + f^2 / 2) / f^3 from -1/4 to 1/2. */
enum {{ TD_LOG_TERMS = {LOG_TERMS} }};
static const float log_terms[TD_LOG_TERMS] = {{
    {log_terms(-0.25, 0.5)}}};
/* The same from -0.3268 to 0.3464, and (log2(1 + f) - f / log(2)) / f^2. */
static const float log2_terms[TD_LOG_TERMS] = {{
    {log_terms(-0.3268, 0.3464)}}};
static const float log2_fused_terms[TD_LOG_TERMS] = {{
    {log2_terms(-0.3268, 0.3464)}}};

/* 2^(k / {EXP_PARTS}) in two parts, once and again; and 2^(k / {2 * EXP_PARTS}). */
static const td_powers exp_eighths = {{{{""")
print_rows(exp_powers(EXP_PARTS))
print("static const td_powers exp_sixteenths = {{")
print_rows(exp_powers(2 * EXP_PARTS))
table("tanh", "tanh(a), without a in the first; 1 from the limit on", mp.tanh, 0.625, 9.3, DEGREE, 1)
table("erf", "erf(a), without a in the first; 1 from the limit on", mp.erf, 0.265, 3.95, DEGREE, 1)
table("silu", "a / (1 + exp(-a)), without a / 2 in the first; a from the limit on",
      lambda a: a / (1 + mp.exp(-a)), 1.2, 17.5, DEGREE, mpf(0.5))
even_table("gelu_far", "a exp(a^2 / 2) erfc(a / sqrt(2)) / 2", a_erfcx, 1, 14.5, 6, [0, 0.5])
even_table("gelu_near", "a erfc(a / sqrt(2)) / 2", lambda a: a * mp.erfc(a / mp.sqrt(2)) / 2,
           0.25, 3.625, 5, [0, 0.5])
even_table("gelu_eight", "The same", lambda a: a * mp.erfc(a / mp.sqrt(2)) / 2, 0.5, 3.625, 7, [0, 0.5], 8)
even_table("silu_near", "a / (1 + exp(a))", lambda a: a / (1 + mp.exp(a)), 1, 15.5, 7, [0, 0.5])
even_table("erfc_near", "erfc(a)", mp.erfc, 0.125, 1.9375, 5, [1])
even_table("sigmoid_near", "1 / (1 + exp(a))", lambda a: 1 / (1 + mp.exp(a)), 0.5, 7.75, 6, [0.5])
print("""
/* clang-format on */

#endif""")
