"""A script under limits of its addresses, and a start whose last requests for memory are refused: right values
or a word of memory, never a crash or a hang.

Oneself must be small for that: handles, libraries that are loaded at first use, OpenBLAS's buffers.
"""
import os
import resource
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.environ["TIDE_SOURCE"], "tests", "torture", "faults", "limited.lua")


def run(megabytes, **environment):
    def bound():
        if megabytes:
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    return subprocess.run([os.environ["TIDE"], SCRIPT], preexec_fn=bound, capture_output=True, text=True, timeout=100,
                          env={**os.environ, **environment})


def values(process):
    return dict(line.split("\t", 1) for line in process.stdout.splitlines())


# What the program does at its start: each asks Lua for memory on its way.
STARTS = (["-e", "print(tide.ones(3):sum():item())"], ["{script}"], ["--ops"], ["--profile", "{trace}", "{script}"],
          ["--advise", "{script}"])


def start(arguments, refused, say=False):
    """A small program whose requests for memory fail from that one on."""
    environment = {**os.environ, "LD_PRELOAD": os.environ["TIDE_NTH"], "FAULTS": f"from:{refused}"}
    if say:
        environment["FAULTS_SAY"] = "1"
    return subprocess.run([os.environ["TIDE"], *arguments], env=environment, capture_output=True, text=True, timeout=100)


def requests(arguments):
    """How many requests the program makes."""
    low, high = 1, 1 << 17
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if "faults: reached" in start(arguments, middle, True).stderr else (low, middle)
    return low


def starts():
    """The last requests are those for the words of the refusal, when little is left for them."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"script": os.path.join(folder, "script.lua"), "trace": os.path.join(folder, "trace.json")}
        with open(files["script"], "w") as file:
            file.write("print(1)")
        for shape in STARTS:
            arguments = [argument.format(**files) for argument in shape]
            last = requests(arguments)
            for refused in [*range(last - 100, last), *range(1, last - 100, last // 25)]:
                process = start(arguments, refused)
                if process.returncode not in (0, 1) or process.returncode == 1 and "memory" not in process.stderr:
                    yield f"{shape}: exit status {process.returncode} without a word of memory: {process.stderr!r}"


PRODUCTS = """
local a, b = tide.randn(300, 700), tide.randn(700, 900)
local want = a:double():matmul(b:double())
for _ = 1, 3 do
    assert((a:matmul(b):double() - want):abs():max():item() < 1e-3, "wrong")
    assert((b:t():matmul(a:t()):double() - want:t()):abs():max():item() < 1e-3, "wrong")
end
"""


def products():
    """The room that OpenBLAS's buffers were promised is taken by what else starts with the first product."""
    for megabytes in range(440, 640, 8):
        process = subprocess.run([os.environ["TIDE"], "-e", PRODUCTS], capture_output=True, text=True, timeout=100,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2))
        if process.returncode not in (0, 1) or process.returncode == 1 and "memory" not in process.stderr:
            yield f"products, {megabytes} MB: exit status {process.returncode}: {process.stderr}"


def main():
    with open(os.path.join(os.environ["TIDE_BUILD"], "CMakeCache.txt")) as cache:
        if any(line.startswith("TIDE_SANITIZE:STRING=") and line.strip()[-1] != "=" for line in cache):
            print("sanitizers need all addresses")
            return 77
    right, wrong = values(run(None)), 0
    for problem in [*starts(), *products()]:
        print(problem)
        wrong += 1
    # At 140 MB a thread's heap may or may not find 64 MB at a multiple of them while oneDNN writes its loops.
    # OpenBLAS has buffers for threads that the limit of threads never lets be
    for megabytes, environment in [(size, {}) for size in (60, 120, *[140] * 12, 200, 300, 500, 800, 1000, 2000)] + \
            [(size, {"OMP_THREAD_LIMIT": "1"}) for size in range(350, 600, 50)]:
        process = run(megabytes, **environment)
        bad = [f"{name} gave {value}" for name, value in values(process).items()
               if "memory" not in value and value != right[name]]
        if process.returncode not in (0, 1) or process.returncode == 1 and "memory" not in process.stderr:
            bad.append(f"exit status {process.returncode}: {process.stderr}")
        done = sum(values(process).get(name) == value for name, value in right.items())
        if megabytes >= 1000 and done < len(right):
            bad.append(f"only {done} of {len(right)} pieces got through")
        for problem in bad:
            print(f"{megabytes} MB: {problem}")
        wrong += len(bad)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
