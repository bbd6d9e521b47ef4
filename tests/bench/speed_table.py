"""speed_table.py: what the table of speed wants of each case, and the words about what was measured."""
import datetime
import os
import platform
import re
import subprocess
import time

MILLI, MICRO, MEGA = 1e-3, 1e-6, 1e6

# What Tide wants to take for each case, on one core with 266 GFLOP/s of float32 and 43 GB/s; None where nothing but not
# to be behind PyTorch is wanted. start is `import torch` against `tide -e ''`, start_memory the most that it holds.
GOALS = {
    "pairwise_loop_100x200x2": 16 * MILLI, "pairwise_batched_100x200x2": 25 * MICRO,
    "mul10_eager_5": 1.3 * MICRO, "mul10_eager_1000": 1.9 * MICRO, "mul10_eager_100000": 90 * MICRO,
    "mul10_eager_10000000": 35 * MILLI,
    "add_1": 0.12 * MICRO, "add_1_inplace": 0.07 * MICRO, "add_1_grad": 0.22 * MICRO, "select_1": 0.11 * MICRO,
    "backward_chain10_scalar": 4 * MICRO,
    "add_loop_500x1k": 90 * MICRO, "add_foreach_500x1k": 45 * MICRO,
    "sgdm_foreach_500x1k": 0.1 * MILLI, "adam_foreach_500x1k": 0.2 * MILLI,
    "sgdm_foreach_resnet50": 9 * MILLI, "adam_foreach_resnet50": 18 * MILLI,
    "add_10000000": 3 * MILLI, "exp_10000000": 3.5 * MILLI, "tanh_10000000": 5 * MILLI, "gelu_10000000": 5 * MILLI,
    "relu_10000000": 2.5 * MILLI, "mul_10000000": None, "sum_10000000": None,
    "tanh_100000": 35 * MICRO, "exp_100000": 22 * MICRO, "gelu_100000": 30 * MICRO,
    "add_100000": None, "mul_100000": None, "relu_100000": None, "sum_100000": None,
    "softmax_4096x1024": 1.6 * MILLI, "layernorm_4096x1024": 1.2 * MILLI,
    "matmul_f32_64": 2.5 * MICRO, "matmul_f32_256": 140 * MICRO, "matmul_f32_1024": 9 * MILLI, "matmul_f32_2048": 75 * MILLI,
    "matmul_bf16_64": 1.7 * MICRO, "matmul_bf16_256": 70 * MICRO, "matmul_bf16_1024": 4.5 * MILLI,
    "matmul_bf16_2048": 36 * MILLI,
    "linear1024_f32_b1": 110 * MICRO, "linear1024_f32_b16": 200 * MICRO, "linear1024_f32_b256": 2.3 * MILLI,
    "net_train_b8": 0.25 * MILLI, "net_train_b64": 1.5 * MILLI, "net_train_amp_b64": 1.3 * MILLI,
    "mlp_train_b64": 60 * MICRO, "rnn_loop100_h64_b8_train": 0.8 * MILLI,
    "resnet18_cifar_train_b16": 240 * MILLI, "resnet18_cifar_train_b16_cl": 225 * MILLI,
    "resnet18_cifar_train_b16_amp": 135 * MILLI, "resnet18_cifar_train_b16_amp_cl": 125 * MILLI,
    "transformer_block_train_d128_s64_b8": 3 * MILLI,
    "take_float32_1M": 0.7 * MILLI, "gather_float32_1M": 0.6 * MILLI,
    "take_int64_1M": None, "gather_int64_1M": None, "take_uint8_1M": None, "gather_uint8_1M": None,
    "broadcast_1x48x2_48x1x2": None, "broadcast_2x1x48_2x48x1": None, "conv2d_1x1x1x9000_k91": None,
    "matmul_256x64x60_denormal": None, "softmax_256x64_t1": None, "softmax_256x64_t2": None, "softmax_256x64_t16": None,
    "start": 12 * MILLI, "start_memory": 25 * MEGA,
}
# The programs that have these cases.
PROGRAMS = ("talks", "foreach", "speed", "mixed")

# How far sums over results may be apart, of the sum of their sizes: a few roundings of an element; of integers those of
# the sums themselves.
INTEGERS_APART = 1e-12
APART = {"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def seconds(value):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def amount(case, value):
    """A time, or memory."""
    return f"{value / MEGA:.3g} MB" if case.endswith("_memory") else seconds(value)


# ---- results ----


def differ(ours, theirs):
    """What is wrong with a result beside PyTorch's; empty where they agree or one has none."""
    mine, other = (line.get("digest") if line else None for line in (ours, theirs))
    if not mine or not other:
        return ""
    for fact in ("dtype", "count"):
        if mine[fact] != other[fact]:
            return f"{fact} is {mine[fact]}, PyTorch's {other[fact]}"
    allowed = mine.get("tolerance", APART.get(mine["dtype"], INTEGERS_APART))
    for fact, of in (("sum", "sizes"), ("sizes", "sizes"), ("squares", "squares"), ("places", "sizes")):
        if mine[fact] is None or other[fact] is None:
            if mine[fact] != other[fact]:
                return f"{fact} is {mine[fact]}, PyTorch's {other[fact]}"
        elif abs(mine[fact] - other[fact]) > allowed * abs(other[of] or 0):
            return f"{fact} is {mine[fact]:.9g}, PyTorch's {other[fact]:.9g}"
    return ""


# ---- rows ----


def judged(case, ours, theirs):
    """Is there anything to be met?"""
    return bool(ours) and bool(GOALS.get(case) or theirs)


def missed(case, ours, theirs):
    """Which of the two wants is not met: the figure's, PyTorch's."""
    wanted = GOALS.get(case)
    words = ["goal"] if wanted and ours["median_s"] > wanted else []
    if theirs and ours["median_s"] > theirs["median_s"]:
        words.append("PyTorch")
    return words


def head():
    return f"{'case':36} {'tide':>9} {'pytorch':>9} {'pytorch / tide':>15} {'goal':>9}"


def row(case, ours, theirs):
    """A line of the table; of a case that PyTorch alone has, that it is missing."""
    if not ours:
        return f"{case:36} {'':>9} {amount(case, theirs['median_s']):>9}   MISSING"
    text = f"{case:36} {amount(case, ours['median_s']):>9} {amount(case, theirs['median_s']) if theirs else '':>9}"
    text += f" {theirs['median_s'] / ours['median_s']:>14.2f}x" if theirs else f" {'':>15}"
    text += f" {amount(case, GOALS[case]) if GOALS.get(case) else '':>9}"
    if not judged(case, ours, theirs):
        return text.rstrip()
    words = missed(case, ours, theirs)
    return text + ("   MISSED: " + ", ".join(words) if words else "   met")


# ---- start ----


def start(tide, python, runs):
    """The lines of `start` and `start_memory` of both; PyTorch's None without a Python that has it."""
    def measure(command):
        times, sizes = [], []
        for _ in range(runs):
            began = time.perf_counter()
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                times.append(time.perf_counter() - began)
                process.returncode = os.waitstatus_to_exitcode(status)
            sizes.append(usage.ru_maxrss * 1024)
            if process.returncode:
                raise SystemExit(f"compare: {' '.join(command)} ended with {process.returncode}")
        return {"median_s": min(times)}, {"median_s": min(sizes)}
    ours = measure([tide, "-e", ""])
    theirs = measure([python, "-c", "import torch"]) if python else (None, None)
    return list(zip(("start", "start_memory"), ours, theirs))


# ---- the machine ----

FLAGS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8", "asimd", "sve")


def machine():
    """(name, instruction sets) of the processor, by /proc/cpuinfo."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            text = file.read()
    except OSError:
        text = ""
    name = re.search(r"^model name\s*: (.+)$", text, re.M)
    flags = re.search(r"^(?:flags|Features)\s*: (.+)$", text, re.M)
    has = flags[1].split() if flags else []
    return (name[1].strip() if name else platform.machine()), [flag for flag in FLAGS if flag in has]


def machine_file(name, cores, mark=""):
    """The file of a machine's results of today."""
    short = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm)\)", "", name.lower())).strip("-")
    return f"{datetime.date.today().isoformat()}-{short}-{cores}-cores{mark}.txt"


def facts(tide, torch, *notes):
    """Lines about machine and libraries, and the notes that aren't empty."""
    name, flags = machine()
    info = subprocess.run([tide, "--info"], text=True, capture_output=True, check=True).stdout.splitlines()
    lines = [f"{name}, {os.cpu_count()} cores ({', '.join(flags) or 'no flags'}); load {os.getloadavg()[0]:.1f} before the run.",
             "; ".join(line for line in info if not line.startswith("cuda")) + ".",
             f"PyTorch {torch}." if torch else "No PyTorch.", *filter(None, notes)]
    return ["# " + line for line in lines]
