#!/usr/bin/env python3
"""WAV files of every kind beside this script, and samples.npz with what libsndfile reads of them, as float32 (channels, frames).

It needs soundfile and NumPy, the tests don't.
"""
import os

import numpy as np
import soundfile

HERE = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(1)
expected = {}

for subtype in "PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE":
    for channels, form in (1, "WAV"), (2, "WAV"), (2, "WAVEX"), (5, "WAVEX"), (3, "RF64"):
        name = f"{subtype.lower()}_{channels}_{form.lower()}.wav"
        x = np.clip(random.normal(0, 0.5, (7, channels)), -1, 1)
        x[0], x[1] = 1, -1
        soundfile.write(os.path.join(HERE, name), x, 8000 + channels, subtype=subtype, format=form)
        y, rate = soundfile.read(os.path.join(HERE, name), dtype="float32", always_2d=True)
        assert rate == 8000 + channels
        expected[name] = np.ascontiguousarray(y.T)

np.savez_compressed(os.path.join(HERE, "samples.npz"), **expected)
