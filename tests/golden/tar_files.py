#!/usr/bin/python3
"""Writes tests/golden/tar: archives as Python's tarfile makes them in each of its formats, with long names, folders, links, files without
a point and an empty one, for tests/lua/files/test_tar.lua."""
import gzip
import io
import json
import os
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def add(archive, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def entry(archive, name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    archive.addfile(info)


def write(name, form):
    buffer = io.BytesIO()
    long = name != "ustar"
    folder, stem = "d" * (120 if long else 60), "\u00fc" * 80 if long else "u" * 60
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        entry(archive, "folder", tarfile.DIRTYPE)
        for k in range(3):
            key = f"{folder}/{stem}{k}"
            add(archive, key + ".cls", b"%d\n" % k)
            add(archive, key + ".json", json.dumps({"k": k, "list": [1, 2.5]}).encode())
            add(archive, key + ".seg.TXT", "caption \u00e9".encode())
            add(archive, key + ".bin", bytes(range(256)) * (2 * k))
        entry(archive, "link", tarfile.SYMTYPE, "x" * (150 if long else 90))
        add(archive, "without_a_point", b"x")
        add(archive, ".hidden", b"x")
        add(archive, "last.txt", b"")
    with open(os.path.join(HERE, "tar", name + ".tar.gz"), "wb") as file:
        file.write(gzip.compress(buffer.getvalue(), mtime=0))


for name, form in FORMATS.items():
    write(name, form)
