#!/usr/bin/python3
"""The files of the repository: what git tracks, or would if asked to add everything; without git,
everything outside build/. `tree.py .c .h` prints those with these endings, one per line."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def git_files(root):
    """Paths relative to root as git knows them; None where git can't say."""
    try:
        out = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return [os.fsdecode(path) for path in out.split(b"\0") if path]


def walked_files(root):
    """The same from the folders alone."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in (".git", ".cache", "__pycache__")
                      and not (folder == root and f == "build")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return found


def files(root=ROOT, endings=()):
    """Sorted paths relative to root, of files that are there, with one of the endings if any are given."""
    known = git_files(root)
    if known is None:
        known = walked_files(root)
    return sorted(path for path in set(known)
                  if (not endings or path.endswith(tuple(endings)))
                  and os.path.isfile(os.path.join(root, path)))


if __name__ == "__main__":
    print("\n".join(files(endings=sys.argv[1:])))
