"""What `cmake --install` puts in place works from there, in a prefix and below DESTDIR, and goes away again; man pages
and completion know the options that the programs have.

usage: TIDE_BUILD=build TIDE_SOURCE=repository test_install.py
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

BUILD, SOURCE = os.environ["TIDE_BUILD"], os.environ["TIDE_SOURCE"]

PROGRAM = r"""
#include <engine/td.h>
#include <stdio.h>
int main(void) {
    const int64_t sizes[2] = {3, 4};
    td_tensor *x = NULL;
    if (td_init() || td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, sizes, &x))
        return 1;
    printf("%s %d dims\n", td_version(), x->ndim);
    td_release(x);
    return 0;
}
"""


def cached(name):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
        found = re.search(rf"^{name}:\w+=(.*)$", file.read(), re.M)
    return found.group(1) if found else ""


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)


def files_below(folder):
    return sorted(os.path.join(f, n) for f, _, names in os.walk(folder) for n in names)


@unittest.skipIf(cached("TIDE_SANITIZE"), "sanitizers' builds are not installed")
class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tide install ")  # a name with a space in it
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        for component in ("tide", "dev"):
            done = run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)
            assert done.returncode == 0, done.stderr

    def path(self, *pieces):
        found = glob.glob(os.path.join(glob.escape(self.prefix), *pieces), recursive=True)
        self.assertEqual(len(found), 1, pieces)
        return found[0]

    def test_the_programs_run_from_there(self):
        multiply = "local x = tide.ones(64, 64) print((x:matmul(x)):sum():item(), tide.linalg.inv(tide.eye(3)):sum():item())"
        done = run(self.path("bin", "tide"), "-e", multiply)
        self.assertEqual((done.stdout.split(), done.stderr), (["262144.0", "3.0"], ""))
        loaded = run("ldd", self.path("bin", "tide-kernel"))
        self.assertIn(self.prefix, re.search(r"libtide\.so => (.*) \(", loaded.stdout).group(1))

    def test_they_run_where_the_prefix_was_moved_to(self):
        moved = os.path.join(self.folder.name, "moved")
        shutil.copytree(self.prefix, moved)
        done = run(os.path.join(moved, "bin", "tide"), "-e", "print(tide.ones(40, 40):matmul(tide.ones(40, 40)):sum():item())")
        self.assertEqual((done.stdout, done.stderr), ("64000.0\n", ""))

    def test_the_kernelspec_names_the_installed_kernel(self):
        with open(self.path("share", "jupyter", "kernels", "tide", "kernel.json"), encoding="utf-8") as file:
            spec = json.load(file)
        self.assertEqual(spec["argv"][0], os.path.join(self.prefix, "bin", "tide-kernel"))

    def test_below_destdir_the_kernelspec_names_where_it_will_run(self):
        stage = os.path.join(self.folder.name, "stage")
        done = run("cmake", "--install", BUILD, "--prefix", "/opt/tide", "--component", "tide",
                   env=os.environ | {"DESTDIR": stage})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(stage, "opt/tide/share/jupyter/kernels/tide/kernel.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["argv"][0], "/opt/tide/bin/tide-kernel")

    def test_a_plain_lua_finds_the_module(self):
        module = self.path("lib*", "**", "lua", "5.4", "tide.so")
        done = run("lua5.4", "-e", 'print(require("tide").ones(2, 2):sum():item())',
                   env=os.environ | {"LUA_CPATH": os.path.join(os.path.dirname(module), "?.so")})
        self.assertEqual((done.stdout, done.stderr), ("4.0\n", ""))

    def built(self, write):
        """What a program prints that is compiled as pkg-config says; write(path) writes its text."""
        config = self.path("lib*", "**", "pkgconfig", "libtide.pc")
        folder = tempfile.mkdtemp(prefix="tide-install-")
        self.addCleanup(shutil.rmtree, folder)
        source, program = os.path.join(folder, "p.c"), os.path.join(folder, "program")
        write(source)
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "libtide",  # its output is words for a shell
                                env=os.environ | {"PKG_CONFIG_PATH": os.path.dirname(config)}).stdout)
        self.assertIn("-ltide", flags)
        done = run("cc", source, "-o", program, *flags)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        library = next(flag[2:] for flag in flags if flag.startswith("-L"))
        done = run(program, env=os.environ | {"LD_LIBRARY_PATH": library})
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_a_c_program_builds_with_pkg_config(self):
        def write(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(PROGRAM)
        self.assertEqual(self.built(write), f"{cached('CMAKE_PROJECT_VERSION')} 2 dims\n")

    def test_a_function_that_was_written_as_c_builds_with_pkg_config(self):
        def write(path):
            text = ("local f = tide.jit.script(function(x, n) for k = 1, n do x = x * k end return x:sum(), n // 2 end, "
                    "{types = 'Tensor, int', name = 'product'}) "
                    f"f:emit_c({json.dumps(path)}, {{main = {{tide.ones(2, {{dtype = tide.int64}}), 5}}}})")
            done = run(self.path("bin", "tide"), "-e", text)
            self.assertEqual((done.stdout, done.stderr), ("", ""))
        first, second = self.built(write).splitlines()
        self.assertRegex(first, r"^product 1: int64 \(\) [0-9a-f]{16}$")
        self.assertEqual(second, "product 2: 2")

    def test_a_module_that_was_cut_short_is_an_error(self):
        broken = os.path.join(self.folder.name, "broken")
        shutil.copytree(self.prefix, broken)
        module, = glob.glob(os.path.join(glob.escape(broken), "lib*", "**", "libtide-onednn.so"), recursive=True)
        whole = os.path.getsize(module)
        for size in (whole - 1, whole // 2, 100, 0):
            os.truncate(module, size)
            done = run(os.path.join(broken, "bin", "tide"), "-e", "tide.ones(1, 3, 64, 64):conv2d(tide.ones(20, 3, 3, 3))")
            with self.subTest(size=size):
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr.splitlines()[0], r"oneDNN can't be loaded: .*(cut short|too short)")

    def test_uninstalling_leaves_nothing(self):
        prefix = os.path.join(self.folder.name, "gone")
        build = os.path.join(self.folder.name, "build")  # a manifest of our own
        os.makedirs(build)
        done = run("cmake", "--install", BUILD, "--prefix", prefix)
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.move(os.path.join(BUILD, "install_manifest.txt"), build)
        manifest = os.path.join(build, "install_manifest.txt")
        done = run("cmake", f"-DMANIFEST={manifest}", "-P", os.path.join(SOURCE, "cmake/uninstall.cmake"))
        self.assertEqual((done.returncode, files_below(prefix)), (0, []), done.stderr)
        done = run("cmake", f"-DMANIFEST={manifest}", "-P", os.path.join(SOURCE, "cmake/uninstall.cmake"))
        self.assertIn("nothing was installed from this build", done.stderr)


class Options(unittest.TestCase):
    """Who adds an option to a program finds here which texts lack it."""

    def options(self, program):
        shown = run(os.path.join(BUILD, program), "--help").stdout
        return sorted(set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", shown)))

    def text(self, path):
        with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
            return file.read()

    def check(self, program, room):
        options = self.options(program)
        self.assertGreater(len(options), 5)
        page = self.text(f"{room}/install/{program}.1").replace("\\-", "-")
        bash, zsh, fish = (self.text(f"repl/install/tide.{shell}") for shell in ("bash", "zsh", "fish"))
        for option in options:
            word = re.compile(rf"(?<![\w-]){re.escape(option)}(?![\w-])")
            with self.subTest(option=option):
                in_fish = rf"-c {program} -{'l' if option.startswith('--') else 's'} {option.lstrip('-')}\b"
                for name, text, pattern in (("man page", page, word), ("bash", bash, word), ("zsh", zsh, word),
                                            ("fish", fish, in_fish)):
                    self.assertTrue(re.search(pattern, text), f"{name} lacks it")

    def test_tide(self):
        self.check("tide", "repl")

    def test_tide_kernel(self):
        self.check("tide-kernel", "jupyter-kernel")

    def test_tide_run(self):
        self.check("tide-run", "repl")


if __name__ == "__main__":
    unittest.main()
