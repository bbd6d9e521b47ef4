"""The rules of style that a machine can check, as functions from a file to what is wrong in it.

Each rule takes the path (relative to the repository) and the text and yields (line, message). They
touch no files, so that test_rules.py can show each of them bad input. tree_check.py applies them.
"""
import posixpath
import re

# Floors: what the files under a path may include, by prefix; the longest prefix counts. A folder may
# always include itself.
ENGINE_LOWER = ("engine/core/", "engine/ops/")
FLOORS = {
    "engine/core/": (),
    "engine/ops/": ("engine/core/",),
    "engine/cpu/": ENGINE_LOWER + ("engine/io/code_cache.h",),
    "engine/cuda/": ENGINE_LOWER + ("engine/io/code_cache.h", "cmake/embedded.h",),
    "engine/autograd/": ENGINE_LOWER,
    "engine/calls/": ENGINE_LOWER + ("engine/autograd/",),
    "engine/meta/": ("engine/core/",),
    "engine/io/": ("engine/core/",),
    "engine/distributed/": ("engine/core/",),
    "engine/distributed/loaded/": ("engine/core/", "engine/distributed/"),
    "engine/script/": ENGINE_LOWER + ("engine/autograd/", "engine/calls/", "engine/io/"),
    "engine/": ENGINE_LOWER + ("engine/autograd/", "engine/calls/", "engine/script/"),
    "profiler/": ("engine/",),
    "lua-bindings/": ("engine/", "profiler/", "cmake/embedded.h"),
    "repl/session/": ("engine/", "profiler/", "lua-bindings/", "cmake/embedded.h"),
    "repl/edit/": ("repl/session/lex.h",),
    "repl/": ("engine/", "profiler/", "lua-bindings/", "repl/session/", "repl/edit/"),
    "jupyter-kernel/": ("repl/session/", "cmake/embedded.h"),
    "cmake/": (),
    "tests/": ("",),
}
# Rooms whose files stand on floors of their own, the ground first: a file and its header include and
# call what is below them, so that no circle arises. session.h alone is the face, which has no file;
# what has no floor here stands on the ground.
FILE_FLOORS = {
    "repl/session/": ("session", "lex", "statements", "transcript", "result", "state", "held", "library", "control", "programs", "output", "capture", "history", "source", "modules", "advise",
                      "display", "remember", "scope", "syntax", "compile", "frames", "errors", "magic", "commands", "timing", "ask", "assist", "text", "eval", "comm", "lifetime"),
}
# The one call that closes a circle: running an operator may call operators.
RECURSION = ("ops/call", "calls/dispatch")

# Files that name all floors of the engine: its start, and the header of everything.
WHOLE_ENGINE = ("engine/start.c", "engine/td.h")

# Libraries that are some floors' own business, by how their headers begin.
LIBRARIES = {
    "Lua": (("lua.h", "lauxlib.h", "lualib.h", "lua5"), ("lua-bindings/", "repl/session/", "repl/", "jupyter-kernel/", "tests/")),
    "JSON": (("jansson",), ("jupyter-kernel/", "tests/")),
    "ZeroMQ": (("zmq",), ("jupyter-kernel/", "engine/distributed/loaded/", "tests/")),
    "MPI": (("mpi.h",), ("engine/distributed/loaded/",)),
    "libpng": (("png.h",), ("lua-bindings/", "tests/")),
    "libsodium": (("sodium",), ("jupyter-kernel/", "lua-bindings/", "tests/")),
    "sockets": (("sys/socket.h", "netinet/", "arpa/inet.h", "netdb.h"), ("jupyter-kernel/", "tests/")),
    "line editing": (("readline/", "editline/", "histedit.h"), ()),  # repl/edit/ is our own
    "terminals": (("termios.h", "curses.h"), ("repl/edit/", "repl/session/")),
    "oneDNN": (("oneapi/dnnl", "dnnl"), ("engine/cpu/",)),
}

# Calls that are banned: everywhere, in the libraries, in the engine.
LOCALE_CALLS = ("strtod strtof strtold isspace isblank isalpha isalnum isdigit isxdigit isupper islower isprint isgraph "
                "ispunct iscntrl tolower toupper strcoll strcasecmp strncasecmp")
BANNED = (
    ("", "has no bound", "strcpy strcat stpcpy sprintf vsprintf gets"),
    ("", "hides errors", "atoi atol atoll atof"),
    ("", "keeps hidden state", "strtok"),
    ("engine/", "ends or leaves the caller's program", "abort exit _exit _Exit quick_exit longjmp siglongjmp setjmp sigsetjmp"),
    ("profiler/", "ends or leaves the caller's program", "abort exit _exit _Exit quick_exit longjmp siglongjmp setjmp sigsetjmp"),
    ("engine/", "prints; the engine leaves a message (td_fail)", "printf vprintf puts putchar perror fprintf vfprintf fputs"),
    ("engine/", "belongs to engine/core/; elsewhere td_malloc and its kin", "malloc calloc realloc free strdup aligned_alloc posix_memalign"),
    ("engine/", "depends on the locale (engine/core/number.h does not)", LOCALE_CALLS),
    ("profiler/", "depends on the locale (engine/core/number.h does not)", LOCALE_CALLS),
    ("lua-bindings/", "depends on the locale (engine/core/number.h does not)", LOCALE_CALLS),
    ("repl/", "depends on the locale (engine/core/number.h does not)", LOCALE_CALLS),
    ("jupyter-kernel/", "depends on the locale (engine/core/number.h does not)", LOCALE_CALLS),
)
BANNED_EXCEPT = {"engine/distributed/loaded/": "malloc calloc realloc free".split(),  # linked to nothing of Tide's
                 "engine/core/": "malloc calloc realloc free strdup aligned_alloc posix_memalign".split(),
                 "engine/core/number.c": "strtod strtof".split()}

SOURCE = (".c", ".h", ".cpp", ".cu", ".cuh")
CODE = SOURCE + (".lua", ".py", ".sh", ".cmake", "CMakeLists.txt", "/run")
MAX_LINES = 1000
MAX_FILES = 40  # of a folder; a file and its header count as one
# One file for each family of operators, and inputs of fuzzers.
FOLDERS_OF_DATA = ("tests/ops/samples", "tests/torture/fuzz/corpus")
MAX_FUNCTION = 120


def blank_c(text, strings=True):
    """C text with comments (and what stands in quotes) replaced by spaces; lines keep their places."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] + " " * (len(token) - 2) + token[-1] if strings else token
        return re.sub(r"[^\n]", " ", token)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', blank, text, flags=re.S)


def numbered(text):
    return enumerate(text.split("\n"), 1)


def floor_of(path):
    return max((prefix for prefix in FLOORS if path.startswith(prefix)), key=len, default=None)


def file_floor(path):
    """(room, floor) of a file in a room of FILE_FLOORS, else (None, 0)."""
    room, name = posixpath.split(path)
    floors = FILE_FLOORS.get(room + "/")
    stem = name.split(".")[0]
    return (room, floors.index(stem) if stem in floors else 0) if floors else (None, 0)


def runs_upwards(path, target):
    """Does path, in a room whose files stand on floors, use a file that is not below it?"""
    (room, floor), (other, above) = file_floor(path), file_floor(target)
    same = posixpath.splitext(path)[0] == posixpath.splitext(target)[0]
    return room is not None and room == other and not same and above >= floor and above > 0


def includes(path, text, known):
    """An include never runs upwards, and libraries stay in their rooms. `known`: all paths there are."""
    if not path.endswith(SOURCE):
        return
    floor = floor_of(path)
    for number, line in numbered(blank_c(text, strings=False)):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not match:
            continue
        name = match.group(2)
        for library, (beginnings, floors) in LIBRARIES.items():
            if name.startswith(beginnings) and floor not in floors:
                yield number, f"{library} has no place here: {name}"
        if match.group(1) == "<":
            continue
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        target = beside if beside in known else name
        if target not in known:
            yield number, f"not a file of this repository: {name}"
            continue
        if path in WHOLE_ENGINE and target.startswith("engine/"):
            continue
        if floor is None or floor_of(target) != floor and not target.startswith(FLOORS[floor]):
            yield number, f"an include that runs upwards or sideways: {floor or path} may not see {target}"
        elif runs_upwards(path, target):
            yield number, f"an include that runs upwards: {target} is not below {path} (FILE_FLOORS)"


def banned_calls(path, text):
    """Calls that Tide doesn't make."""
    if not path.endswith(SOURCE):
        return
    excepted = {name for prefix, names in BANNED_EXCEPT.items() if path.startswith(prefix) for name in names}
    lines = list(numbered(blank_c(text)))
    for prefix, why, names in BANNED:
        if not path.startswith(prefix):
            continue
        call = re.compile(r"(?<![\w.>])(" + "|".join(names.split()) + r")\s*\(")
        for number, line in lines:
            for match in call.finditer(line):
                if match.group(1) not in excepted:
                    yield number, f"{match.group(1)} {why}"


def lengths(path, text):
    """A file is one idea, and a function is seen at one glance."""
    if not path.endswith(CODE):
        return
    count = text.count("\n")
    if count > MAX_LINES:
        yield count, f"{count} lines; past {MAX_LINES} there is a second idea in the file"
    if not path.endswith(SOURCE):
        return
    head = start = None
    for number, line in numbered(blank_c(text)):
        # As clang-format leaves it: a head begins in the first column, its body opens at the end of a
        # line and closes in the first column.
        if line.startswith("}"):
            if start and number - start > MAX_FUNCTION:
                yield start, f"a function of {number - start} lines; {MAX_FUNCTION} is too many"
            head = start = None
        elif re.match(r"\w", line) and not start:
            head = line
        elif head and not start:
            head += line
        if head and not start and line.rstrip().endswith("{"):
            start = number if "(" in head and "=" not in head else None
            head = head if start else None


def crowded(paths):
    """Folders with more files than one remembers, as (folder, 1, message)."""
    names = {}
    for path in paths:
        folder, name = posixpath.split(path)
        names.setdefault(folder, set()).add(name.split(".")[0])
    for folder, found in sorted(names.items()):
        if len(found) > MAX_FILES and not folder.startswith(FOLDERS_OF_DATA):
            yield folder, 1, f"{len(found)} files; past {MAX_FILES} a folder needs folders"


def twice_named(texts):
    """Types of headers and of CUDA's C++ that have one name in two files, as (path, 1, message): {path: text}. Linkers take one for
    the other where templates are made of them."""
    first = {}
    for path, text in sorted(texts.items()):
        for name in set(re.findall(r"^(?:typedef )?struct (\w+) \{", text, re.M)) if path.endswith((".h", ".cuh", ".cu")) else ():
            if first.setdefault(name, path) != path:
                yield path, 1, f"{name} is another type in {first[name]}"


def first_comment(path, text):
    """The first thing in a file says what the file is."""
    if not path.endswith(SOURCE + (".lua", ".py", ".cmake", "CMakeLists.txt", "/run")):
        return
    body = re.sub(r"\A#![^\n]*\n", "", text).lstrip()
    marks = ("/*", "//") if path.endswith(SOURCE) else ("--",) if path.endswith(".lua") else ("#", '"""')
    if not body.startswith(marks):
        yield 1, "the file doesn't begin with a comment that says what it is"


def is_template(text):
    """Whether a header is meant to be included many times over, as its first comment says."""
    comment = re.match(r"\s*/\*.*?\*/", text, flags=re.S)
    words = " ".join(re.findall(r"[^\s*]+", comment.group(0))) if comment else ""
    return bool(re.search(r"\bIncluded (once (per|for each)|by \S+\.cu? with) ", words))


def header_guard(path, text):
    """A header may be included twice, except for those that are templates."""
    if not path.endswith((".h", ".cuh")) or is_template(text):
        return
    match = re.match(r"\s*#ifndef (\w+)\n#define (\w+)\n", blank_c(text))
    if not match or match.group(1) != match.group(2):
        yield 1, "no include guard (#ifndef NAME, #define NAME) right after the first comment"


def todos(path, text):
    """What is left to do says why: TODO(why it has to wait): what."""
    if not path.endswith(CODE + (".md",)):
        return
    for number, line in numbered(text):
        for match in re.finditer(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(\([^)]+\):)?", line):
            if not match.group(2):
                yield number, f"{match.group(1)} without a reason in brackets"


def machine_paths(path, text):
    """No path of somebody's machine."""
    for number, line in numbered(text):
        match = re.search(r"(?<![\w.~}/*])/(?:root|home|Users|work)/[\w.]+", line)
        if match:
            yield number, f"a path of one machine: {match.group(0)}"


DTYPE = r"TD_(?:BOOL|U8|I8|I16|I32|I64|F16|BF16|F32|F64)\b"


def switches(text):
    """Of each switch, as clang-format leaves it: the names of its cases, the line of its default: or None."""
    found = []
    for number, line in numbered(blank_c(text)):
        indent = len(line) - len(line.lstrip())
        if re.search(r"\bswitch \(.*\{\s*\\?$", line):
            found.append([indent, [], None])
        elif found and re.match(r"\s*\}", line) and indent == found[-1][0]:
            yield found.pop()[1:]
        elif found:
            found[-1][1] += re.findall(r"\bcase (\w+)", line)
            if re.search(r"\bdefault:", line):
                found[-1][2] = number


def dtype_choices(path, text):
    """A dtype that is added must not fall into somebody else's branch: switches over dtypes name all
    of them, and what depends on the dtype stands in a table, not behind a comparison with one."""
    if not path.startswith("engine/") or path == "engine/core/dtype.h":
        return
    for number, line in numbered(blank_c(text)):
        if re.search(r"[=!]=\s*TD_B?F(?:16|32|64)\s*\?", line):
            yield number, "a choice by one floating dtype: make it a table by dtype"
    for cases, default in switches(text):
        if default and any(re.fullmatch(DTYPE, case) for case in cases):
            yield default, "`default:` in a switch over dtypes: name every one"


def enum_defaults(path, text):
    """A value that is added to an enum must not fall into `default:` unseen: -Wswitch-enum asks for
    every name, and this for no default: where a field of a few bits hides the type from it."""
    if not path.endswith(SOURCE):
        return
    for cases, default in switches(text):
        if default and any(re.match(r"(TD|TIDE|TK)_", case) and not re.fullmatch(DTYPE, case) for case in cases):
            yield default, "`default:` in a switch over an enum: name every value"


def line_ends(path, text):
    """Lines end in \\n, the last one too, and not in blanks."""
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end of the file"
    if text.endswith("\n\n"):
        yield text.count("\n"), "blank lines at the end of the file"
    if path.endswith((".csv", ".md", ".ipynb")):
        return
    for number, line in numbered(text):
        if line != line.rstrip():
            yield number, "blanks (or a carriage return) at the end of the line"


RULES = (includes, banned_calls, lengths, first_comment, header_guard, todos, machine_paths, dtype_choices,
         enum_defaults, line_ends)


def check(path, text, known):
    """Everything wrong in a file, as (path, line, message)."""
    for rule in RULES:
        found = rule(path, text, known) if rule is includes else rule(path, text)
        for line, message in found:
            yield path, line, message
