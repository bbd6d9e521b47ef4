"""make_images.py FOLDER [N]: N (20,000) JPEGs of 160 x 120 in folders of ten classes, for data_loading: noise that was made
smooth, so that they are as large as photographs."""
import os
import sys

import numpy
from PIL import Image

folder, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20000
draw = numpy.random.default_rng(0)
for k in range(10):
    os.makedirs(os.path.join(folder, str(k)), exist_ok=True)
for k in range(n):
    coarse = Image.fromarray(draw.integers(0, 256, (30, 40, 3), dtype=numpy.uint8))
    coarse.resize((160, 120), Image.BICUBIC).save(os.path.join(folder, str(k % 10), f"{k}.jpg"), quality=85)
