#!/usr/bin/env python3
"""Images of every kind in folders beside this script, and pixels.npz with what Pillow reads of them, as uint8 (channels, height, width).

It needs Pillow and NumPy, the tests don't. PNG files are written here chunk by chunk, since Pillow writes few of the kinds:
every colour type and depth, with and without interlace, transparency, EXIF.
"""
import io
import os
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT = 13, 9
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
expected = {}
random = np.random.default_rng(1)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def filtered(rows, step):
    """Each row by another of the five filters."""
    out, above = b"", bytes(len(rows[0]))
    for k, row in enumerate(rows):
        left = bytes(step) + row[:-step] if len(row) >= step else bytes(len(row))
        corner = bytes(step) + above[:-step] if len(row) >= step else bytes(len(row))
        guess = [lambda a, b, c: 0, lambda a, b, c: a, lambda a, b, c: b, lambda a, b, c: (a + b) // 2, paeth][k % 5]
        out += bytes([k % 5]) + bytes((x - guess(a, b, c)) % 256 for x, a, b, c in zip(row, left, above, corner))
        above = row
    return out


def packed(samples, depth):
    """A row of samples as bytes."""
    flat = samples.reshape(-1)
    if depth == 16:
        return flat.astype(">u2").tobytes()
    bits = "".join(format(int(v), f"0{depth}b") for v in flat)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[k:k + 8], 2) for k in range(0, len(bits), 8))


def png(samples, kind, depth, interlaced, extra=b""):
    step = max(1, CHANNELS[kind] * depth // 8)
    data = b""
    for x, y, dx, dy in PASSES if interlaced else [(0, 0, 1, 1)]:
        part = samples[y::dy, x::dx]
        if part.size:
            data += filtered([packed(row, depth) for row in part], step)
    header = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], depth, kind, 0, 0, int(interlaced))
    middle = zlib.compress(data, 9)
    half = len(middle) // 2
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", middle[:half])
            + chunk(b"IDAT", middle[half:]) + chunk(b"IEND", b""))


def place(name):
    return os.path.join(HERE, name[-3:], name)


def put(name, data):
    with open(place(name), "wb") as file:
        file.write(data)


def planes(image):
    pixels = np.asarray(image)
    return np.ascontiguousarray(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)).astype(np.uint8)


def make_png(kind, depth, interlaced, clear):
    name = f"png_{kind}_{depth}{'_interlaced' if interlaced else ''}{'_clear' if clear else ''}.png"
    samples = random.integers(0, 1 << depth, (HEIGHT, WIDTH, CHANNELS[kind]))
    samples[:, 1:] = np.where(random.random((HEIGHT, WIDTH - 1, 1)) < 0.4, samples[:, :-1], samples[:, 1:])
    extra = b""
    if kind == 3:
        palette = random.integers(0, 256, (1 << depth, 3)).astype(np.uint8)
        extra = chunk(b"PLTE", palette.tobytes())
    if clear:
        extra += chunk(b"tRNS", bytes(random.integers(0, 256, 1 << depth - 1 if depth > 1 else 1).astype(np.uint8)) if kind == 3
                       else samples[2, 3].astype(">u2").tobytes())
    data = png(samples, kind, depth, interlaced, extra)
    put(name, data)
    if clear and kind in (0, 2) or kind in (0, 4) and depth == 16:
        # Pillow has other ways of its own with 16 bits of grey, and with a grey or a colour that is clear
        values = (samples >> 8 if depth == 16 else samples * 255 // ((1 << depth) - 1)).astype(np.uint8)
        seen = 255 * (samples != samples[2, 3]).any(2, keepdims=True).astype(np.uint8)
        expected[name] = np.ascontiguousarray((np.concatenate([values, seen], 2) if clear else values).transpose(2, 0, 1))
        return
    image = Image.open(io.BytesIO(data))
    mode = {0: "L", 2: "RGB", 3: "RGBA" if clear else "RGB", 4: "LA", 6: "RGBA"}[kind]
    expected[name] = planes(image.convert(mode))


for kind, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
    for depth in depths:
        for interlaced in (False, True) if (kind, depth) not in ((0, 2), (3, 2), (3, 4)) else (False,):
            make_png(kind, depth, interlaced, False)
        if kind in (0, 2, 3):
            make_png(kind, depth, False, True)

# ---- JPEG ----

y, x = np.mgrid[0:37, 0:53]
picture = np.stack([128 + 100 * np.sin(x / 5), 128 + 100 * np.cos(y / 7 + x / 20), (x * y) % 256], 2).clip(0, 255).astype(np.uint8)


def make_jpeg(name, image, scales=(1,), mode=None, **options):
    image.save(place(name), **options)
    for scale in scales:
        seen = Image.open(place(name))
        if scale > 1:
            seen.draft(None, (seen.width // scale, seen.height // scale))
        expected[name + (f"/{scale}" if scale > 1 else "")] = planes(seen.convert(mode) if mode else seen)


colours, grey = Image.fromarray(picture), Image.fromarray(picture[:, :, 0])
make_jpeg("jpeg_420.jpg", colours, scales=(1, 2, 4, 8), quality=80)
make_jpeg("jpeg_422.jpg", colours, scales=(1, 2), quality=80, subsampling="4:2:2")
make_jpeg("jpeg_444.jpg", colours, quality=60, subsampling="4:4:4")
make_jpeg("jpeg_progressive.jpg", colours, scales=(1, 4), quality=70, progressive=True)
make_jpeg("jpeg_restart.jpg", colours, quality=70, restart_marker_rows=1)
make_jpeg("jpeg_grey.jpg", grey, scales=(1, 8), quality=80)
make_jpeg("jpeg_inks.jpg", colours.convert("CMYK"), mode="RGB", quality=80)

# ---- EXIF ----

small = Image.fromarray(picture[:11, :18])
for order in "<", ">":
    for way in range(1, 9):
        entries = struct.pack(order + "HHHIHHHHIHHI", 2, 0x0110, 3, 1, 7, 0, 0x0112, 3, 1, way, 0, 0)
        block = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8) + entries
        name = f"exif_{'little' if order == '<' else 'big'}_{way}"
        if order == "<" or way in (3, 6):
            small.save(place(name + ".jpg"), quality=80, exif=b"Exif\0\0" + block)
            expected[name + ".jpg"] = planes(ImageOps.exif_transpose(Image.open(place(name + ".jpg"))))
        if order == ">" and way in (2, 8):
            pixels = random.integers(0, 256, (5, 3, 3))
            put(name + ".png", png(pixels, 2, 8, False, chunk(b"eXIf", block)))
            expected[name + ".png"] = planes(ImageOps.exif_transpose(Image.open(place(name + ".png"))))

# ---- other modes ----

for name in "png_6_8.png", "png_0_8.png", "png_3_4_clear.png", "png_4_8.png", "png_2_8.png":
    for mode in "L", "RGB", "RGBA":
        image = Image.open(place(name)).convert("RGBA")
        if mode == "L":  # alpha is dropped before colours become grey
            image = image.convert("RGB")
        expected[f"{name}:{mode}"] = planes(image.convert(mode))

np.savez_compressed(os.path.join(HERE, "pixels.npz"), **{name.replace("/", "|"): value for name, value in expected.items()})
