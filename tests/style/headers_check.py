#!/usr/bin/python3
"""Compiles every header alone: whoever includes it needs no other header first.

headers_check.py COMPILER INCLUDE_DIRECTORIES(;-separated) [HEADERS...]
"""
import concurrent.futures
import os
import subprocess
import sys

import rules
import tree

CPLUSPLUS = ("tests/cuda-on-cpu/",)  # where headers are C++


def compile_alone(compiler, directories, header):
    """What the compiler says of the header; an empty text when it is content."""
    language, standard = ("c++", "gnu++17") if header.startswith(CPLUSPLUS) else ("c", "gnu17")
    command = [compiler, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
               "-DTD_ISA=baseline", "-DTD_ISA_baseline=1", "-I" + tree.ROOT]
    command += [f"-isystem{directory}" for directory in directories if directory not in ("", "/usr/include")]
    result = subprocess.run(command + ["-x", language, "-"], input=f'#include "{header}"\n', text=True,
                            capture_output=True, check=False)
    return result.stderr if result.returncode else ""


def main():
    compiler, directories = sys.argv[1], sys.argv[2].split(";")
    headers = sys.argv[3:] or tree.files(endings=(".h",))
    alone = []
    for header in headers:
        with open(os.path.join(tree.ROOT, header), encoding="utf-8") as file:
            if not rules.is_template(file.read()):
                alone.append(header)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda header: compile_alone(compiler, directories, header), alone))
    wrong = [header for header, answer in zip(alone, answers) if answer]
    for answer in answers:
        sys.stdout.write(answer)
    print(f"{len(alone)} headers, {len(wrong)} need others first: {' '.join(wrong)}")
    return 1 if wrong or not alone else 0


if __name__ == "__main__":
    sys.exit(main())
