"""Jobs for the tests: scripts run by tide-run under each MPI that Tide has an engine for."""
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ["TIDE_BUILD"]
MPIS = [mpi for mpi in ("openmpi", "mpich")
        if shutil.which(f"mpirun.{mpi}") and os.path.exists(os.path.join(BUILD, f"libtide_mpi_{mpi}.so"))]


PLAYED = os.path.join(BUILD, "tide_cuda_played.so")  # a CUDA device that the CPU plays, with an NCCL


def on_played_devices(folder):
    """What a job needs for them; NCCL's ranks meet in a folder."""
    return {"TIDE_CUDA_MODULE": PLAYED, "TIDE_NCCL": PLAYED, "TIDE_PLAYED_NCCL": folder}


def need_mpi():
    if not MPIS:
        print("skipped: no MPI (libopenmpi-dev openmpi-bin, or libmpich-dev mpich, when Tide is configured)")
        sys.exit(77)


class Ended:
    def __init__(self, code, text, seconds):
        self.code, self.text, self.seconds = code, text, seconds


def run(mpi, n, script, *arguments, limit=150, environment=None, enter=()):
    """The script's job: exit code, all that was printed, seconds. enter: what the command line begins with."""
    command = [*enter, os.path.join(BUILD, "tide-run"), "--allow-root", "--mpi", mpi, "-n", str(n),
               os.path.join(HERE, script), *map(str, arguments)]
    sanitizer = os.environ.get("ASAN_OPTIONS")
    if sanitizer and mpi == "openmpi":  # which never frees what its components hold
        environment = {**(environment or {}), "ASAN_OPTIONS": sanitizer + ":detect_leaks=0"}
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=limit, stdin=subprocess.DEVNULL,
                          env={**os.environ, "TMPDIR": "/tmp", **(environment or {})})
    return Ended(done.returncode, done.stdout, time.monotonic() - began)
