#!/usr/bin/env python3
"""cuda_device.py: what the driver says of this machine's first CUDA device, a fact a line.

    tests/cuda_device.py           name, compute capability, driver
    tests/cuda_device.py --arch    its compute capability as nvcc takes it: 90

Asks the driver's library alone, so that nothing need be built. Exit code 2, with a line that says why, where there is no
device.
"""
import ctypes
import re
import sys

MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


class Absent(Exception):
    pass


def ask(driver, function, *arguments):
    code = getattr(driver, function)(*arguments)
    if code:
        text = ctypes.c_char_p()
        known = driver.cuGetErrorString(code, ctypes.byref(text)) == 0
        raise Absent(f"{function}: {text.value.decode() if known else code}")


def device():
    """(name, major, minor, driver): of the first device. Absent where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Absent(f"the driver is not there: {error}") from None
    ask(driver, "cuInit", 0)
    count, version, major, minor = (ctypes.c_int() for _ in range(4))
    ask(driver, "cuDeviceGetCount", ctypes.byref(count))
    if count.value == 0:
        raise Absent("the driver knows no device")
    name = ctypes.create_string_buffer(200)
    ask(driver, "cuDeviceGetName", name, 200, 0)
    ask(driver, "cuDeviceGetAttribute", ctypes.byref(major), MAJOR, 0)
    ask(driver, "cuDeviceGetAttribute", ctypes.byref(minor), MINOR, 0)
    ask(driver, "cuDriverGetVersion", ctypes.byref(version))
    return name.value.decode(), major.value, minor.value, f"{release()}CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def release():
    """The driver's own version, where the kernel tells."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            found = re.search(r"\s(\d+\.\d+(\.\d+)?)\s", file.read())
    except OSError:
        found = None
    return f"{found.group(1)}, " if found else ""


def main():
    try:
        name, major, minor, driver = device()
    except Absent as why:
        print(f"tide: no CUDA device here ({why})", file=sys.stderr)
        return 2
    if sys.argv[1:] == ["--arch"]:
        print(f"{major}{minor}")
    else:
        print(f"{name}\nsm_{major}{minor}\ndriver {driver}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
