#!/usr/bin/env python3
"""wheel.py: a Python wheel of a build, so that `pip install` puts Tide beside Jupyter: programs and libraries, no Python.

usage: wheel.py BUILD FOLDER

The programs are the wheel's scripts; the library with its modules, and every shared library that they need and a
manylinux system need not have, lie in lib/tide-lab and find each other by their own place, as auditwheel does it.
They keep their names: nothing but Tide is in the processes that load them. The kernelspec finds the kernel by its own
place too, so that it holds for a virtual environment and for `pip install --user`. What jobs of several processes load
goes along, and the MPI itself is the system's: an MPI and its launcher belong together. Each library's licence goes along;
a library without one is an error. Names, dates (SOURCE_DATE_EPOCH) and modes of the archive depend on nothing else.
"""
import base64
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARIES = "lib/tide-lab"
# glibc's own, and what PEP 600's policies ask of every system.
EVERYWHERE = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|nsl|anl|gcc_s|stdc\+\+|z))\.so(\.\d+)*$")
MPIS = ("openmpi", "mpich")
OPENED = ("libpng16.so.16", "libturbojpeg.so.0")  # what Tide opens by name when it is needed


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"wheel: {' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def cached(build, name):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        found = re.search(rf"^{name}:\w+=(.*)$", file.read(), re.M)
    return found.group(1) if found else ""


def needed(path):
    """{soname: path} of what a program or library is linked with, directly or not."""
    listed = run("ldd", path)
    if "not found" in listed:
        sys.exit(f"wheel: {path} needs what isn't here: {listed}")
    return dict(re.findall(r"^\s*(\S+) => (/.*) \(0x", listed, re.M))


def opened(name):
    """The path of a library as the loader's cache knows it."""
    found = re.search(rf"^\s*{re.escape(name)} .*=> (/\S+)$", run("/sbin/ldconfig", "-p"), re.M)
    if not found:
        sys.exit(f"wheel: {name} isn't installed")
    return found.group(1)


def package_of(path):
    """(name, version) of the Debian package that brought a file."""
    path = os.path.realpath(path)
    for one in (path, re.sub("^/usr", "", path), "/usr" + path):
        done = subprocess.run(["dpkg", "-S", one], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            name = done.stdout.split(":")[0]
            return name, run("dpkg-query", "-W", "-f=${Version}\n", name).split()[0]
    return sys.exit(f"wheel: no package brought {path}, so its licence isn't known")


def collect(build, stage):
    """The files of the wheel: {place in the wheel: path}, and the bundled libraries {soname: path they came from}."""
    for component in ("tide", *MPIS):
        run("cmake", "--install", build, "--component", component, "--prefix", stage, "--strip")
    files, bundled = {}, {name: opened(name) for name in OPENED}
    for name in ("tide", "tide-kernel", "tide-run"):
        files[f"scripts/{name}"] = os.path.join(stage, "bin", name)
    for path in glob.glob(os.path.join(stage, "lib*", "**", "libtide*.so"), recursive=True):
        files[f"data/{LIBRARIES}/{os.path.basename(path)}"] = path
    for path in [path for path in files.values() if "libtide_mpi_" not in path] + list(bundled.values()):
        bundled |= {name: found for name, found in needed(path).items()
                    if not EVERYWHERE.match(name) and not name.startswith("libtide")}
    for name, path in bundled.items():
        copy = os.path.join(stage, "bundled", name)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(os.path.realpath(path), copy)
        os.chmod(copy, 0o755)
        files[f"data/{LIBRARIES}/{name}"] = copy
    for place, path in files.items():
        folder = "$ORIGIN/../" + LIBRARIES if place.startswith("scripts/") else "$ORIGIN"
        # not the kind of rpath that LD_LIBRARY_PATH goes before
        run("patchelf", "--force-rpath", "--set-rpath", folder, path)
    spec = os.path.join(stage, "share/jupyter/kernels/tide")
    with open(os.path.join(spec, "kernel.json"), encoding="utf-8") as file:
        kernel = json.load(file)
    kernel["argv"][0] = "{resource_dir}/../../../../bin/tide-kernel"
    with open(os.path.join(spec, "kernel.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(kernel, indent=2) + "\n")
    for folder in ("share/jupyter/kernels/tide", "share/man/man1"):
        for path in glob.glob(os.path.join(stage, folder, "*")):
            files[f"data/{folder}/{os.path.basename(path)}"] = path
    return files, bundled


def glibc(paths):
    """The C library that a system needs at least: this one's; what the files ask for is never newer."""
    here = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2]))
    asked = {(int(a), int(b)) for path in paths
             for a, b in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", run("readelf", "-VW", path))}
    assert max(asked) <= here, (asked, here)
    return here


def metadata(version, tag, bundled):
    """The texts of dist-info, less RECORD."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    with open(os.path.join(SOURCE, "LICENSE"), "rb") as file:
        texts = {"licenses/LICENSE": file.read()}
    came = []
    for name, path in sorted(bundled.items()):
        package, of = package_of(path)
        came.append(f"{name:24} {package} {of}\n")
        text = f"/usr/share/doc/{package}/copyright"
        if not os.path.exists(text):
            sys.exit(f"wheel: {package} has no licence at {text}")
        with open(text, "rb") as file:
            texts[f"licenses/{package}.txt"] = file.read()
        for name in re.findall(rb"/usr/share/common-licenses/([\w.-]*\w)", texts[f"licenses/{package}.txt"]):
            with open(os.path.join(b"/usr/share/common-licenses", name), "rb") as file:
                texts[f"licenses/common-licenses/{name.decode()}"] = file.read()
    texts["licenses/bundled.txt"] = ("Shared libraries in this wheel, and the Debian packages (name, version) whose files they are: their sources\n"
                                     "are Debian's of that name, changed in nothing but the path on which they look for each other.\n\n"
                                     + "".join(came)).encode()
    names = "".join(f"License-File: {name.removeprefix('licenses/')}\n" for name in sorted(texts))
    texts["METADATA"] = (f"Metadata-Version: 2.1\nName: tide-lab\nVersion: {version}\nSummary: A laboratory for tensors: a "
                         "prompt and a Jupyter kernel in Lua\nLicense: MIT\nKeywords: tensor,autograd,jupyter,kernel,lua\n"
                         "Classifier: Framework :: Jupyter\nClassifier: License :: OSI Approved :: MIT License\n"
                         f"Classifier: Operating System :: POSIX :: Linux\n{names}"
                         f"Description-Content-Type: text/markdown\n\n{readme}").encode()
    texts["WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tide\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    return texts


def write(path, contents, info):
    """The archive: `contents` {name: (bytes, mode)} by name, then RECORD."""
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()), 315532800))[:6]  # zip begins in 1980
    record = []

    def add(archive, name, data, mode):
        entry = zipfile.ZipInfo(name, date)
        entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16, 3
        archive.writestr(entry, data, compresslevel=6)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")

    with zipfile.ZipFile(path + ".new", "w") as archive:
        for name in sorted(contents):
            add(archive, name, *contents[name])
        add(archive, f"{info}/RECORD", ("".join(record) + f"{info}/RECORD,,\n").encode(), 0o644)
    os.rename(path + ".new", path)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    build, out = sys.argv[1:]
    version = cached(build, "CMAKE_PROJECT_VERSION")
    stem = f"tide_lab-{version}"
    with tempfile.TemporaryDirectory(prefix="tide-wheel-") as stage:
        files, bundled = collect(build, stage)
        oldest = glibc([path for place, path in files.items() if "/share/" not in place])
        tag = "py3-none-manylinux_{}_{}_{}".format(*oldest, platform.machine())
        contents = {}
        for place, path in files.items():
            with open(path, "rb") as file:
                contents[f"{stem}.data/{place}"] = (file.read(), 0o644 if "/share/" in place else 0o755)
    for name, text in metadata(version, tag, bundled).items():
        contents[f"{stem}.dist-info/{name}"] = (text, 0o644)
    path = os.path.join(out, f"{stem}-{tag}.whl")
    write(path, contents, f"{stem}.dist-info")
    print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB, {len(bundled)} libraries bundled")


if __name__ == "__main__":
    main()
