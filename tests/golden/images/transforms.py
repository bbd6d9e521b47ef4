#!/usr/bin/env python3
"""transforms.npz: what torchvision and Pillow make of two images, a and b, by the call in Lua that is to give the same.

It needs torchvision, Pillow and NumPy, the tests don't.
"""
import os

import numpy as np
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(1)
y, x = np.mgrid[0:29, 0:37]
a = torch.tensor(np.stack([128 + 120 * np.sin(x / 3), 128 + 120 * np.cos(y / 4 + x / 9), (7 * x * y) % 256]).clip(0, 255).astype(np.uint8))
b = torch.tensor(random.integers(0, 256, (1, 40, 19)).astype(np.uint8))
images = {"a": a, "b": b}
found = {"a": a.numpy(), "b": b.numpy()}
WAYS = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}
PILLOW = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def pillow(image, size, way):
    planes = [np.asarray(Image.fromarray(plane.numpy()).resize((size[1], size[0]), PILLOW[way])) for plane in image]
    return np.stack(planes)


for name, image in images.items():
    for size in (10, 12), (58, 74), (29, 5), (3, 60), (1, 1), (41, 37), (100, 16), (17, 33):
        for way, mode in WAYS.items():
            call = f'T.resize({name}, {{{size[0]}, {size[1]}}}, {{interpolation = "{way}"}})'
            try:
                found[call] = F.resize(image, list(size), interpolation=mode, antialias=True).numpy()
            except RuntimeError:  # an assertion within PyTorch
                found[call] = pillow(image, size, way)
    for size in 16, 50:
        found[f"T.resize({name}, {size})"] = F.resize(image.expand(3, -1, -1), [size], antialias=True)[:len(image)].numpy()
    for size in (10, 12), (29, 19), (50, 60), (7, 50), (24, 18), (31, 38), (30, 21):
        found[f"T.center_crop({name}, {{{size[0]}, {size[1]}}})"] = F.center_crop(image, list(size)).numpy()
    found[f"T.crop({name}, -2, 3, 20, 30)"] = F.crop(image, -2, 3, 20, 30).numpy()
    found[f"T.pad({name}, {{1, 2, 3, 4}}, {{fill = 9}})"] = F.pad(image, [1, 2, 3, 4], fill=9).numpy()
    found[f"T.pad({name}, {{1, 2}})"] = F.pad(image, [1, 2]).numpy()
    found[f"T.hflip({name})"] = F.horizontal_flip(image).numpy()
    found[f"T.vflip({name})"] = F.vertical_flip(image).numpy()
    for channels in 1, 3:
        found[f"T.grayscale({name}, {channels})"] = F.to_grayscale(image, channels).numpy()
    for factor in 0, 0.3, 1, 1.7:
        found[f"T.adjust_brightness({name}, {factor})"] = F.adjust_brightness(image, factor).numpy()
        found[f"T.adjust_contrast({name}, {factor})"] = F.adjust_contrast(image, factor).numpy()
        found[f"T.adjust_saturation({name}, {factor})"] = F.adjust_saturation(image, factor).numpy()
    for factor in -0.5, -0.2, 0, 0.1, 0.5:
        found[f"T.adjust_hue({name}, {factor})"] = F.adjust_hue(image, factor).numpy()
    for way in "nearest", "bilinear":
        for angle in 0, 30, -75.5, 90, 180:
            found[f'T.rotate({name}, {angle}, {{interpolation = "{way}"}})'] = F.rotate(image, angle, interpolation=WAYS[way]).numpy()
        for angle, move, scale, shear in (20, (3, -2), 0.8, (10, 0)), (-40, (0, 5), 1.5, (0, 0)), (0, (1, 0), 1, (5, -7)):
            call = (f'T.affine({name}, {{angle = {angle}, translate = {{{move[0]}, {move[1]}}}, scale = {scale}, shear = {{{shear[0]}, {shear[1]}}}, '
                    f'interpolation = "{way}"}})')
            found[call] = F.affine(image, angle, list(move), scale, list(shear), interpolation=WAYS[way]).numpy()
    found[f'T.rotate({name}, 30, {{center = {{5, 8}}, fill = 70}})'] = F.rotate(image, 30, center=[5, 8], fill=[70.0]).numpy()
    mean, std = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]) if len(image) == 3 else ([0.3], [0.2])
    lua = "{" + ", ".join(map(str, mean)) + "}, {" + ", ".join(map(str, std)) + "}"
    found[f"T.normalize({name}, {lua})"] = F.normalize(F.to_dtype(image, torch.float32, scale=True), mean, std).numpy()
    found[f"T.normalize({name}:float() / 255, {lua})"] = found[f"T.normalize({name}, {lua})"]
    found[f"T.convert_image_dtype({name}, tide.float32)"] = F.to_dtype(image, torch.float32, scale=True).numpy()

np.savez_compressed(os.path.join(HERE, "transforms.npz"), **{call.replace("/", "÷"): value for call, value in found.items()})
