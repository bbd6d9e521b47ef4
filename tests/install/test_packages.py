"""Packages of a build: the wheel's files, laid as pip lays them, run without anything of this system's but what every
system has, and Jupyter finds the kernel by its own place; Debian's packages name what they need; and packing twice
gives the same bytes. That two builds do is what `tests/distros/reproducible` shows.

usage: TIDE_BUILD=build TIDE_SOURCE=repository test_packages.py
"""
import base64
import csv
import glob
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

BUILD, SOURCE = os.environ["TIDE_BUILD"], os.environ["TIDE_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "cmake"))
import wheel  # noqa: E402  (where it lies is known now)

EPOCH = "1700000000"


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)


def missing(*programs):
    return [name for name in programs if not shutil.which(name)]


SANITIZED = wheel.cached(BUILD, "TIDE_SANITIZE")


@unittest.skipIf(SANITIZED, "sanitizers' builds are not packed")
@unittest.skipIf(missing("patchelf", "readelf", "dpkg"), "patchelf, readelf or dpkg is not installed")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tide wheel ")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.wheels = [cls.pack(name) for name in ("first", "second")]
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        with zipfile.ZipFile(cls.wheels[0]) as archive:
            cls.contents = {name: archive.read(name) for name in archive.namelist()}
        for name, data in cls.contents.items():
            place = re.sub(r"^[^/]*\.data/data/", "", re.sub(r"^[^/]*\.data/scripts/", "bin/", name))
            path = os.path.join(cls.prefix, place)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            if place.startswith("bin/"):
                os.chmod(path, 0o755)

    @classmethod
    def pack(cls, name):
        out = os.path.join(cls.folder.name, name)
        os.makedirs(out)
        done = run(sys.executable, "-B", os.path.join(SOURCE, "cmake/wheel.py"), BUILD, out,
                   env=os.environ | {"SOURCE_DATE_EPOCH": EPOCH})
        assert done.returncode == 0, done.stdout + done.stderr
        found, = glob.glob(os.path.join(glob.escape(out), "*"))
        return found

    def test_the_programs_run_from_there(self):
        multiply = "local x = tide.ones(64, 64) print((x:matmul(x)):sum():item(), tide.linalg.inv(tide.eye(3)):sum():item())"
        done = run(os.path.join(self.prefix, "bin/tide"), "-e", multiply, env={"LD_LIBRARY_PATH": "/nowhere"})
        self.assertEqual((done.stdout.split(), done.stderr), (["262144.0", "3.0"], ""))
        script = os.path.join(self.prefix, "job.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write("tide.distributed.init() tide.distributed.barrier() print(tide.distributed.size())")
        done = run(os.path.join(self.prefix, "bin/tide-run"), "--rehearse", "2", script)
        self.assertEqual((done.stdout, done.stderr), ("2\n2\n", ""))
        done = run(os.path.join(self.prefix, "bin/tide-kernel"), "--version")
        self.assertEqual((done.stdout, done.stderr), (f"tide-kernel {wheel.cached(BUILD, 'CMAKE_PROJECT_VERSION')}\n", ""))

    def test_what_not_every_system_has_comes_from_the_wheel(self):
        programs = glob.glob(os.path.join(glob.escape(self.prefix), "bin/*"))
        libraries = glob.glob(os.path.join(glob.escape(self.prefix), "lib/tide-lab/*"))
        self.assertGreater(len(libraries), 10)
        for path in [path for path in programs + libraries if "libtide_mpi_" not in path]:
            for name, found in wheel.needed(path).items():
                with self.subTest(path=path, name=name):
                    inside = os.path.realpath(found).startswith(os.path.realpath(self.prefix))
                    self.assertTrue(inside or wheel.EVERYWHERE.match(name), found)

    def test_the_modules_of_mpis_go_along_without_them(self):
        names = {os.path.basename(name) for name in self.contents}
        for mpi in [name for name in wheel.MPIS if os.path.exists(os.path.join(BUILD, f"libtide_mpi_{name}.so"))]:
            self.assertIn(f"libtide_mpi_{mpi}.so", names)
        self.assertFalse([name for name in names if re.match(r"libmpi(ch)?\.so|libopen-(rte|pal)", name)])

    def test_the_kernelspec_finds_the_kernel_by_its_own_place(self):
        spec = os.path.join(self.prefix, "share/jupyter/kernels/tide")
        with open(os.path.join(spec, "kernel.json"), encoding="utf-8") as file:
            argv = json.load(file)["argv"]
        kernel = argv[0].format(resource_dir=spec)  # as jupyter_client fills it in
        self.assertEqual(os.path.realpath(kernel), os.path.realpath(os.path.join(self.prefix, "bin/tide-kernel")))
        self.assertEqual(argv[1:], ["-f", "{connection_file}"])

    def test_the_record_is_true(self):
        name = next(n for n in self.contents if n.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(io.StringIO(self.contents[name].decode())))
        self.assertEqual(sorted(row[0] for row in rows), sorted(self.contents))
        for path, digest, size in rows:
            if path != name:
                data = self.contents[path]
                said = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (said, str(len(data))), path)

    def test_every_library_has_its_licence(self):
        folder = next(n for n in self.contents if n.endswith("licenses/bundled.txt")).removesuffix("bundled.txt")
        listed = dict(re.findall(r"^(\S+\.so\S*) +(\S+) \S+$", self.contents[folder + "bundled.txt"].decode(), re.M))
        libraries = [os.path.basename(n) for n in self.contents if "/lib/tide-lab/" in n and "/libtide" not in n]
        self.assertEqual(sorted(listed), sorted(libraries))
        for package in listed.values():
            self.assertIn(f"{folder}{package}.txt", self.contents)

    def test_it_is_small_enough(self):
        self.assertLess(os.path.getsize(self.wheels[0]), 60e6)

    def test_packing_twice_gives_the_same_bytes(self):
        digests = set()
        for path in self.wheels:
            with open(path, "rb") as file:
                digests.add(hashlib.sha256(file.read()).hexdigest())
        self.assertEqual(len(digests), 1)


@unittest.skipIf(SANITIZED, "sanitizers' builds are not packed")
@unittest.skipIf(missing("cpack", "dpkg-shlibdeps", "dpkg-deb", "file"), "dpkg-dev or file is not installed")
class Debs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tide-deb-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.packages = cls.pack("first")

    @classmethod
    def pack(cls, name):
        """{package: path} of what cpack makes of the components that every build has."""
        out = os.path.join(cls.folder.name, name)
        os.makedirs(out)
        done = run("cpack", "-G", "DEB", "-B", out, "-D", "CPACK_COMPONENTS_ALL=tide;dev" + "".join(";" + mpi for mpi in wheel.MPIS if os.path.exists(os.path.join(BUILD, f"libtide_mpi_{mpi}.so"))), cwd=BUILD,
                   env=os.environ | {"SOURCE_DATE_EPOCH": EPOCH})
        assert done.returncode == 0, done.stdout + done.stderr
        return {os.path.basename(path).split("_")[0]: path for path in glob.glob(os.path.join(out, "*.deb"))}

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.packages[package], name).stdout.strip()

    def test_they_need_the_libraries_that_they_load(self):
        depends = self.field("tide", "Depends")
        for library in ("libdnnl", "libopenblas", "libsleef", "libzmq", "libjansson", "libsodium", "zlib1g", "libc6"):
            self.assertRegex(depends, rf"(^|, ){library}")
        self.assertEqual(self.field("libtide-dev", "Depends"), f"tide (= {self.field('tide', 'Version')})")

    def test_each_mpi_has_a_package(self):
        for mpi in [name for name in wheel.MPIS if os.path.exists(os.path.join(BUILD, f"libtide_mpi_{name}.so"))]:
            with self.subTest(mpi=mpi):
                self.assertRegex(self.field(f"tide-{mpi}", "Depends"), rf"lib{mpi}\d.*tide \(= |tide \(= .*lib{mpi}\d")
                listed = run("dpkg-deb", "-c", self.packages[f"tide-{mpi}"]).stdout
                self.assertIn(f"/libtide_mpi_{mpi}.so\n", listed)

    def test_headers_are_the_developers_and_nothing_lies_in_two(self):
        listed = {name: set(re.findall(r"\./(\S*[^/\s])$", run("dpkg-deb", "-c", path).stdout, re.M))
                  for name, path in self.packages.items()}
        self.assertFalse(listed["tide"] & listed["libtide-dev"])
        self.assertFalse([name for name in listed["tide"] if name.endswith((".h", ".pc"))])
        self.assertTrue([name for name in listed["libtide-dev"] if name.endswith("engine/td.h")])
        for name, files in listed.items():
            self.assertTrue([one for one in files if one.endswith(f"/doc/{name}/copyright")], name)

    def test_nothing_of_the_build_folder_is_in_them(self):
        for name, path in self.packages.items():
            to = os.path.join(self.folder.name, f"unpacked-{name}")
            self.assertEqual(run("dpkg-deb", "-x", path, to).returncode, 0)
            for folder, _, files in os.walk(to):
                for one in files:
                    with open(os.path.join(folder, one), "rb") as file:
                        data = file.read()
                    for place in (BUILD, SOURCE, self.folder.name):
                        self.assertNotIn(place.encode() + b"/", data, os.path.join(folder, one))

    def test_packing_twice_gives_the_same_bytes(self):
        for name, path in self.pack("second").items():
            with open(path, "rb") as second, open(self.packages[name], "rb") as first:
                self.assertEqual(hashlib.sha256(first.read()).digest(), hashlib.sha256(second.read()).digest(), name)


if __name__ == "__main__":
    unittest.main()
