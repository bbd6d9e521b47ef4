"""The first build shows how far it is and how long it will take, is made for the instruction sets that are asked for, and
ends behind the prompt.

usage: TIDE_SOURCE=repository test_build.py
"""
import contextlib
import os
import pty
import shutil
import subprocess
import tempfile
import time
import unittest

SOURCE = os.environ["TIDE_SOURCE"]
PACKAGES = os.path.join(SOURCE, "cmake/packages.sh")
LINES = r"""printf '[1/4] first\na warning\n[2/4] second\n[4/4] last\n'"""


def clock(*seconds):
    """A clock for tide_progress: what it says when that begins and then at each step."""
    return f"seconds=({' '.join(map(str, seconds))}); tide_clock() {{ now=$seconds; seconds=(\"${{seconds[@]:1}}\"); }}"


def steps_on_a_terminal(command):
    """What a command writes on standard error, a terminal, between its returns to the line's beginning."""
    ours, theirs = pty.openpty()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:
        while piece := terminal.read(4096):  # it ends with an error when nobody writes any more
            shown += piece
    return [text.replace("\x1b[K", "") for text in shown.decode().split("\r")]


class Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = os.path.join(folder.name, "log")
        self.command = ["bash", "-c", f". {PACKAGES}; {clock(0, 0, 5, 5)}; {{ {LINES}; }} | tide_progress {self.log}"]

    def check_log(self):
        with open(self.log) as file:
            self.assertEqual(file.read(), "[1/4] first\na warning\n[2/4] second\n[4/4] last\n")

    def test_progress_on_a_terminal(self):
        steps = steps_on_a_terminal(self.command)
        self.assertEqual(steps[1], "tide: 1 of 4")
        self.assertRegex(steps[2], r"^tide: 2 of 4, about [0-9]+ s left$")
        self.assertEqual(steps[3:], ["tide: 4 of 4", ""])
        self.check_log()

    def test_nothing_but_the_log_where_it_is_short_and_nobody_watches(self):
        done = subprocess.run(self.command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        self.check_log()


    def test_steps_count_by_what_they_take(self):
        heavy, light = "Building C object x_isa_avx2.dir/cpu/pointwise/fused_kernels.c.o", "Building C object ops/add.c.o"
        script = f"""LOG={self.log}; . {PACKAGES}; {clock(0, 0, 4, 4, 4)}; tide_weigh "{heavy}"; all=$weight; tide_weigh "{light}"; all=$((all + 3 * weight))
            printf '[1/4] {light}\\n[2/4] {light}\\n[3/4] {light}\\n[4/4] {heavy}\\n' |
            tide_progress $LOG $all 4"""
        steps = steps_on_a_terminal(["bash", "-c", script])
        self.assertRegex(steps[2], r"^tide: 2 of 4, about [0-9]+ min left$")  # half of the steps, a hundredth of the work

    def test_what_is_at_work_counts_in_part(self):
        heavy, light = "Building C object x_isa_avx2.dir/cpu/isa/fused_kernels.c.o", "Building C object ops/add.c.o"
        script = f"""nproc() {{ echo 2; }}; . {PACKAGES}; {clock(0, 0, 4)}; tide_weigh "{heavy}"; dear=$weight; counts[weight]=4
            tide_weigh "{light}"; counts[weight]=2; all=$((4 * dear + 2 * weight))
            printf '[1/6] {light}\\n[2/6] {light}\\n' | tide_progress {self.log} $all 6"""
        steps = steps_on_a_terminal(["bash", "-c", script])
        # Two processors may have done 8 s of 152; without that it would be 4 s for a 400th of all.
        self.assertRegex(steps[2], r"^tide: 2 of 6, about (6[0-9]|7[0-9]|8[0-9]) s left$")

    def test_a_quick_baseline_weighs_less(self):
        step = "Building C object x_isa_baseline.dir/cpu/isa/fused_kernels.c.o"
        done = subprocess.run(["bash", "-c", f"""set -e; . {PACKAGES}; tide_weigh "{step}"; all=$weight
            quick=1; tide_weigh "{step}"; echo $((all > 4 * weight))
            tide_weigh "{step.replace("baseline", "avx2")}"; echo $((all == weight))"""],
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "1\n1\n")

    def test_a_folder_is_configured_again_for_other_options_only(self):
        folder = os.path.dirname(self.log)
        script = f". {PACKAGES}; tide_configured {folder}"

        def configured(*options):
            return subprocess.run(["bash", "-c", f"{script} {' '.join(options)}"], check=False).returncode == 0

        self.assertFalse(configured())
        for name, text in (("build.ninja", ""), ("CMakeCache.txt", "TIDE_ISA:STRING=native\nTIDE_WERROR:BOOL=OFF\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.assertTrue(configured())
        self.assertTrue(configured("-DTIDE_ISA=native", "-DTIDE_WERROR=OFF"))
        self.assertFalse(configured("-DTIDE_ISA=all"))
        self.assertFalse(configured("-DTIDE_ISA=nati"))
        self.assertFalse(configured("-DTIDE_ISA=native", "-DTIDE_TESTS=ON"))


class Troubles(unittest.TestCase):
    """What is in the way of a build is said in a line, by programs of ours in the place of the system's."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tïde with spaces ")
        self.addCleanup(folder.cleanup)
        self.root, self.bin = folder.name, os.path.join(folder.name, "bin")
        os.makedirs(self.bin)

    def program(self, name, text):
        with open(os.path.join(self.bin, name), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/bash\n{text}\n")
        os.chmod(file.name, 0o755)

    def start(self, script, said=subprocess.PIPE):
        return subprocess.Popen(["bash", "-c", f'. "{PACKAGES}"; root="{self.root}"; {script}'], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=said, text=True,
                                env=os.environ | {"PATH": self.bin + ":" + os.environ["PATH"]})

    def test_two_builds_of_a_folder_come_one_after_the_other(self):
        log, said = os.path.join(self.root, "what cmake did"), os.path.join(self.root, "said")
        self.program("cmake", f"""[[ $1 != --preset ]] || {{ mkdir -p build/x; : >build/x/build.ninja; exit; }}
            echo begin >>"{log}"
            for ((k = 0; k < 600; k++)); do [[ $(grep -c "being built already: waiting for it" "{said}") -lt 2 ]] || break; sleep 0.1; done
            echo end >>"{log}" """)
        self.program("ninja", "exit 0")
        with open(said, "a", encoding="utf-8") as file:
            builds = [self.start("tide_build x all", file) for _ in range(3)]
        for build in builds:
            build.communicate()
        with open(said, encoding="utf-8") as file:
            said = file.read()
        self.assertEqual([build.returncode for build in builds], [0, 0, 0], said)
        with open(log, encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["begin", "end"] * 3)
        self.assertEqual(said.count("build/x is being built already: waiting for it\n"), 2, said)

    def test_a_failed_build_fails(self):
        self.program("cmake", "[[ $1 != --preset ]] || exit 0; echo 'x.c:1: error: no'; exit 1")
        self.program("ninja", "exit 0")
        build = self.start("tide_build x; echo $?")
        out, said = build.communicate()
        self.assertEqual(out, "1\n")
        self.assertIn("x.c:1: error: no\ntide: building failed (log: build/x.log)\n", said)

    def test_without_a_network_one_line_says_why(self):
        self.program("apt-get", """[[ $* == *update* ]] && exit 0
            for one in a b c; do echo "E: Failed to fetch http://x/$one  Temporary failure resolving 'x'"; done; exit 100""")
        self.program("dpkg-query", "exit 1")
        self.program("id", "echo 0")
        build = self.start("tide_install gcc 'pkgconf|pkg-config'")
        out, said = build.communicate()
        self.assertEqual((build.returncode, out), (1, ""))
        self.assertEqual(said.splitlines()[1:], [
            "tide: apt-get could not install gcc pkgconf: Failed to fetch http://x/a  Temporary failure resolving 'x' "
            "(log: build/packages.log)"])


class FirstPrompt(unittest.TestCase):
    """repl/run in a tree of its own, where a program of ours plays CMake: what it builds is a `tide` that says the set it
    was built for, and its arguments."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tïde with spaces ", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.root, self.bin = os.path.join(folder.name, "tree"), os.path.join(folder.name, "bin")
        self.builds = os.path.join(folder.name, "builds")
        for name in ("engine", "profiler", "lua-bindings", "jupyter-kernel", "cmake", "repl"):
            os.makedirs(os.path.join(self.root, name))
        for name in ("CMakeLists.txt", "CMakePresets.json", "cmake/packages.sh", "repl/run"):
            shutil.copy(os.path.join(SOURCE, name), os.path.join(self.root, name))
        os.makedirs(self.bin)
        self.program("dpkg-query", 'for one in "$@"; do echo "installed:$one"; done')
        self.program("ninja", "exit 0")
        self.cmake("")

    def program(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(f"#!/bin/bash\n{text}\n")
        os.chmod(path + ".new", 0o755)
        os.rename(path + ".new", path)

    def cmake(self, native):
        """CMake, which does this before it builds for this machine."""
        self.program("cmake", f"""cache="{self.root}/build/release/CMakeCache.txt"
            if [[ $1 == --preset ]]; then
                isa=native tests=$(sed -n 's/^TIDE_TESTS:BOOL=//p' "$cache" 2>/dev/null)
                for one in "$@"; do
                    case $one in -DTIDE_ISA=*) isa=${{one#*=}} ;; -DTIDE_TESTS=*) tests=${{one#*=}} ;; esac
                done
                mkdir -p build/release; : >build/release/build.ninja
                printf '%s\\n' "CMAKE_HOME_DIRECTORY:INTERNAL={self.root}" "TIDE_ISA:STRING=$isa" "TIDE_TESTS:BOOL=${{tests:-ON}}" >"$cache"
                exit
            fi
            isa=$(sed -n 's/^TIDE_ISA:STRING=//p' "$cache") tests=$(sed -n 's/^TIDE_TESTS:BOOL=//p' "$cache")
            [[ $isa != native ]] || {{ :; {native}
            }}
            echo "$isa, tests $tests:" "${{@:4}}" >>"{self.builds}"
            printf '#!/bin/bash\\necho "'$isa' $*"\\n' >"$2/new"; chmod +x "$2/new"; mv "$2/new" "$2/tide" """)

    def run_it(self, *arguments, wait=""):
        env = os.environ | {"PATH": self.bin + ":" + os.environ["PATH"], "TIDE_WAIT": wait}
        done = subprocess.run([os.path.join(self.root, "repl/run"), *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=env, check=False, timeout=60)
        return done.stdout, done.stderr

    def until(self, what):
        for _ in range(600):
            if what():
                return
            time.sleep(0.1)
        self.fail("it did not come about in 60 s")

    def mark(self):
        """What the note of an unfinished build says; None: there is none."""
        path = os.path.join(self.root, "build/release.rest")
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def built(self):
        with open(self.builds, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_the_prompt_is_there_before_all_is_built(self):
        gate = os.path.join(self.root, "go")
        self.cmake(f'while [[ ! -e "{gate}" ]]; do sleep 0.05; done')
        out, said = self.run_it("a", "b c")
        self.assertEqual(out, "quick a b c\n")
        self.assertIn("tide: slow kernels run until those for this machine are built", said)
        self.assertEqual(self.mark(), "")
        self.assertEqual(self.run_it("again"), ("quick again\n", ""))  # nobody waits for what is being built
        with open(gate, "w", encoding="utf-8"):
            pass
        self.until(lambda: self.mark() is None)
        self.assertEqual(self.built(), ["quick, tests OFF: tide", "native, tests OFF: tide tide_module tide-kernel"])
        self.assertEqual(self.run_it(), ("native \n", ""))
        self.assertEqual(len(self.built()), 2)

    def test_what_failed_behind_the_prompt_is_said_and_tried_again(self):
        self.cmake("echo 'x.c:1: error: no'; exit 1")
        self.run_it()
        self.until(lambda: self.mark() == "failed\n")
        with open(os.path.join(self.root, "build/release.rest.log"), encoding="utf-8") as file:
            self.assertIn("x.c:1: error: no", file.read())
        self.cmake("")
        out, said = self.run_it()
        self.assertEqual(out, "quick \n")
        self.assertIn("tide: kernels for this machine could not be built", said)
        self.until(lambda: self.mark() is None)
        self.assertEqual(self.run_it(), ("native \n", ""))

    def test_what_was_cut_off_goes_on_at_the_next_start(self):
        cut = os.path.join(self.root, "cut")
        self.cmake(f'touch "{cut}"; kill $PPID; kill $$')
        self.run_it()
        self.until(lambda: subprocess.run(["flock", "-n", os.path.join(self.root, "build/release.lock"), "true"],
                                          check=False).returncode == 0 and os.path.exists(cut))
        self.cmake("")
        self.assertEqual(self.run_it()[0], "quick \n")
        self.until(lambda: self.mark() is None)
        self.assertEqual(self.run_it(), ("native \n", ""))

    def test_what_somebody_configured_meanwhile_stays(self):
        self.cmake("exit 1")
        self.run_it()
        self.until(lambda: self.mark() == "failed\n")
        cache = os.path.join(self.root, "build/release/CMakeCache.txt")
        with open(cache, encoding="utf-8") as file:
            text = file.read().replace("=native", "=all").replace("TIDE_TESTS:BOOL=OFF", "TIDE_TESTS:BOOL=ON")
        with open(cache, "w", encoding="utf-8") as file:
            file.write(text)
        self.run_it()
        self.until(lambda: self.mark() is None)
        self.assertEqual(self.built()[1:], ["all, tests ON: tide tide_module tide-kernel"])

    def test_who_wants_to_waits_for_all(self):
        self.assertEqual(self.run_it(wait="1")[0], "native \n")
        self.assertIsNone(self.mark())
        self.assertEqual(self.built(), ["native, tests OFF: tide tide_module tide-kernel"])


class InstructionSets(unittest.TestCase):
    def sets(self, isa, processor="x86_64"):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "show.cmake")
            with open(script, "w", encoding="utf-8") as file:
                file.write('cmake_minimum_required(VERSION 3.22)\n'
                           f'include({SOURCE}/cmake/isa.cmake)\nmessage("sets: ${{tide_isas}} of ${{tide_machine_has}}")\n')
            done = subprocess.run(["cmake", f"-DTIDE_ISA={isa}", f"-DCMAKE_SYSTEM_PROCESSOR={processor}", "-P", script],
                                  capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def test_all_and_lists(self):
        self.assertIn("sets: baseline;avx2;avx512 of", self.sets("all"))
        self.assertIn("sets: baseline;avx2 of", self.sets("avx2"))
        self.assertIn("sets: baseline;avx512 of", self.sets("baseline;avx512"))
        self.assertIn("sets: baseline of", self.sets("baseline"))

    def test_native_is_the_baseline_and_the_best_that_the_machine_has(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
        best = ["avx512"] if "avx512dq" in flags else ["avx2"] if {"avx2", "fma", "f16c", "bmi2"} <= set(flags) else []
        self.assertIn(f"sets: {';'.join(['baseline'] + best)} of", self.sets("native"))

    def test_quick_is_the_baseline_alone(self):
        self.assertIn("sets: baseline of", self.sets("quick"))

    def test_another_processor_has_the_baseline_alone(self):
        self.assertIn("sets: baseline of", self.sets("native", "aarch64"))
        self.assertIn("sets: baseline of", self.sets("all", "aarch64"))

    def test_an_unknown_set_is_refused(self):
        self.assertRegex(self.sets("sse9"), r"TIDE_ISA=sse9: 'sse9' is\s+none of native, quick, all, baseline,\s+avx2, avx512")


if __name__ == "__main__":
    unittest.main()
