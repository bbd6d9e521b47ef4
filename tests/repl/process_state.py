"""What the system says of a process that a test runs: whether it computes, whether a signal has reached it, what memory it has."""
import os
import signal
import time

PATIENCE = 60  # seconds


def status_of(pid):
    """The fields of /proc/PID/status; none of a process that has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file)
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {} if "Z" in fields["State"] else fields


def resident(pid):
    """Bytes of memory that the process has."""
    return int(status_of(pid)["VmRSS"].split()[0]) << 10


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not in {PATIENCE} s: {what}")
        time.sleep(0.01)


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def until_it_has_computed(pid, seconds=0.5):
    """Until the process has had so much more of a processor: what it was about to begin has begun."""
    before = processor_seconds(pid)
    until(lambda: processor_seconds(pid) >= before + seconds, f"{seconds} s of a processor")


def until_delivered(pid, number=signal.SIGINT):
    """Until no signal of this number waits for the process: a second one would be one with it."""
    bit = 1 << (number - 1)

    def is_delivered():
        fields = status_of(pid)
        return not fields or not (int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)) & bit

    until(is_delivered, f"delivery of signal {number}")


def interrupt(pid):
    """Sends SIGINT and waits until the process has it."""
    os.kill(pid, signal.SIGINT)
    until_delivered(pid)
