#!/usr/bin/python3
"""Shows every rule of style bad input, which it must find, and good input, which it must leave alone."""
import os
import subprocess
import sys
import tempfile
import unittest

import rules
import tree

KNOWN = {"engine/td.h", "engine/core/tensor.h", "engine/ops/op.h", "engine/calls/dispatch.c", "engine/cpu/cpu.h",
         "engine/autograd/autograd.h", "profiler/profiler.h", "lua-bindings/tide_lua.h", "repl/terminal.h",
         "repl/session/session.h", "jupyter-kernel/wire.h", "cmake/embedded.h", "tests/check.h"}
REASONLESS = "TO" + "DO"


def found(rule, path, text):
    got = rule(path, text, KNOWN) if rule is rules.includes else rule(path, text)
    return [message for _, message in got]


class Rules(unittest.TestCase):
    def bad(self, rule, path, text):
        self.assertTrue(found(rule, path, text), f"{rule.__name__} lets pass, in {path}: {text!r}")

    def good(self, rule, path, text):
        self.assertEqual(found(rule, path, text), [])

    def include(self, path, target, allowed):
        (self.good if allowed else self.bad)(rules.includes, path, f'#include "{target}"\n')

    def test_includes_between_rooms(self):
        rooms = ("engine/core/tensor.h", "profiler/profiler.h", "lua-bindings/tide_lua.h", "repl/session/session.h",
                 "repl/terminal.h", "jupyter-kernel/wire.h")
        allowed = {"engine/td.h": 1, "engine/ops/x.c": 1, "profiler/x.c": 2, "lua-bindings/x.c": 3,
                   "repl/session/x.c": 4, "repl/x.c": 5, "tests/unit/test_x.c": 6}
        for path, count in allowed.items():
            for index, target in enumerate(rooms):
                self.include(path, target, index < count)
        for target in rooms:
            self.include("jupyter-kernel/x.c", target, target in ("repl/session/session.h", "jupyter-kernel/wire.h"))

    def test_includes_between_the_engine_floors(self):
        core, ops, cpu, grad = "engine/core/tensor.h", "engine/ops/op.h", "engine/cpu/cpu.h", "engine/autograd/autograd.h"
        for floor, may in {"core": (core,), "ops": (core, ops), "cpu": (core, ops, cpu), "cuda": (core, ops),
                           "autograd": (core, ops, grad), "amp": (core, ops, grad)}.items():
            for target in (core, ops, cpu, grad):
                self.include(f"engine/{floor}/x.c", target, target in may)
        self.include("engine/calls/dispatch.c", cpu, False)
        self.include("engine/calls/dispatch.c", grad, True)
        self.include("engine/start.c", cpu, True)
        self.include("engine/calls/dispatch.c", grad, True)
        self.include("engine/calls/dispatch.c", "profiler/profiler.h", False)

    def test_includes_between_the_files_of_the_session(self):
        for path, target, allowed in (("eval.c", "magic", 1), ("eval.c", "eval", 1), ("magic.c", "magic", 1),
                                      ("magic.c", "eval", 0), ("magic.h", "eval", 0), ("magic.c", "timing", 0),
                                      ("lex.c", "session", 1), ("lex.c", "lex", 1), ("result.c", "lifetime", 0),
                                      ("new.c", "session", 1), ("new.c", "lex", 0)):
            known = KNOWN | {f"repl/session/{target}.h"}
            got = list(rules.includes("repl/session/" + path, f'#include "repl/session/{target}.h"\n', known))
            self.assertEqual(not got, bool(allowed), (path, target, got))
        self.good(rules.includes, "repl/main.c", '#include "repl/session/session.h"\n')

    def test_includes_are_found_in_every_spelling(self):
        self.bad(rules.includes, "engine/core/x.c", '  #  include  "profiler/profiler.h" /* why */\n')
        self.bad(rules.includes, "engine/core/x.c", '#include "../../profiler/profiler.h"\n')
        self.bad(rules.includes, "engine/core/x.c", '#include "nowhere.h"\n')
        self.good(rules.includes, "engine/core/x.c", '#include "tensor.h"\n')
        self.good(rules.includes, "engine/core/x.c", '/* #include "profiler/profiler.h" */\n')

    def test_libraries_stay_in_their_rooms(self):
        for header, path in (("lua.h", "engine/core/x.c"), ("lua5.4/lauxlib.h", "profiler/x.c"),
                             ("jansson.h", "lua-bindings/x.c"), ("zmq.h", "repl/session/x.c"),
                             ("sodium.h", "engine/core/x.c"), ("sys/socket.h", "engine/core/x.c"),
                             ("readline/readline.h", "repl/session/x.c"), ("readline/readline.h", "jupyter-kernel/x.c"),
                             ("oneapi/dnnl/dnnl.h", "engine/ops/x.c")):
            self.bad(rules.includes, path, f"#include <{header}>\n")
        self.bad(rules.includes, "repl/x.c", "#include <readline/readline.h>\n")
        self.bad(rules.includes, "repl/x.c", "#include <termios.h>\n")
        self.good(rules.includes, "repl/edit/x.c", "#include <termios.h>\n")
        self.good(rules.includes, "lua-bindings/x.c", "#include <lauxlib.h>\n")
        self.good(rules.includes, "jupyter-kernel/x.c", "#include <jansson.h>\n")

    def test_banned_calls(self):
        for call in ("strcpy(a, b)", "sprintf (a, b)", "strcat(a, b)", "gets(a)", "atoi(a)", "strtok(a, b)"):
            self.bad(rules.banned_calls, "jupyter-kernel/x.c", f"    {call};\n")
        for call in ("abort()", "exit(1)", "longjmp(a, 1)", "malloc(1)", "free(p)", "strdup(s)", "printf(s)", "fprintf(stderr, s)"):
            self.bad(rules.banned_calls, "engine/ops/x.c", f"    {call};\n")
        self.bad(rules.banned_calls, "profiler/x.c", "exit(1);\n")
        self.bad(rules.banned_calls, "engine/core/x.c", "abort();\n")
        for room in ("engine/core/x.c", "profiler/x.c", "lua-bindings/x.c", "repl/session/x.c", "jupyter-kernel/x.c"):
            self.bad(rules.banned_calls, room, "x = strtod(text, &end);\n")
            self.bad(rules.banned_calls, room, "if (isspace((unsigned char)c))\n")
        self.good(rules.banned_calls, "engine/core/number.c", "x = strtod(text, &end);\n")
        self.good(rules.banned_calls, "engine/core/memory.c", "return malloc(1);\n")
        self.good(rules.banned_calls, "repl/main.c", "exit(1);\n")
        self.good(rules.banned_calls, "engine/ops/x.c", "td_free(p); x->free(p); snprintf(a, 1, b); /* exit(1) */ \"abort()\";\n")

    def test_crowded_folders(self):
        def crowd(folder, count, endings=(".c",)):
            return [f"{folder}/x{k}{ending}" for k in range(count) for ending in endings]
        self.assertEqual(list(rules.crowded(crowd("engine/ops", 40, (".c", ".h")))), [])
        self.assertEqual([where for where, _, _ in rules.crowded(crowd("engine/ops", 41) + crowd("engine/cpu", 3))], ["engine/ops"])
        self.assertEqual(list(rules.crowded(crowd("tests/ops/samples", 99))), [])

    def test_types_named_twice(self):
        texts = {"engine/a.h": "typedef struct td_a {\n} td_a;\n", "engine/b.cu": "struct td_a {\n};\nstruct td_b {\n};\n"}
        self.assertEqual([where for where, _, _ in rules.twice_named(texts)], ["engine/b.cu"])
        texts["engine/b.cu"] = "struct td_b {\n};\nstatic struct td_a *x;\n"
        self.assertEqual(list(rules.twice_named(texts)), [])
        self.assertEqual(list(rules.twice_named({"engine/a.c": "struct row {\n};\n", "engine/b.c": "struct row {\n};\n"})), [])

    def test_lengths(self):
        self.bad(rules.lengths, "engine/x.c", "int x;\n" * 1001)
        self.good(rules.lengths, "engine/x.c", "int x;\n" * 1000)
        self.good(rules.lengths, "notebooks/data.csv", "1\n" * 2000)
        body = "    x++;\n"
        self.bad(rules.lengths, "engine/x.c", "void f(void) {\n" + body * 130 + "}\n")
        self.bad(rules.lengths, "engine/x.c", "void f(int a,\n       int b) {\n" + body * 130 + "}\n")
        self.good(rules.lengths, "engine/x.c", "void f(void) {\n" + body * 100 + "}\n\nvoid g(void) {\n" + body * 100 + "}\n")
        self.good(rules.lengths, "engine/x.c", "static const row table[] = {\n" + "    {1},\n" * 200 + "};\n")

    def test_first_comment(self):
        self.bad(rules.first_comment, "engine/x.c", "int x; /* x.c: it. */\n")
        self.bad(rules.first_comment, "engine/x.c", "#include <a.h>\n")
        self.bad(rules.first_comment, "lua-bindings/lua/x.lua", "local x = 1\n")
        self.bad(rules.first_comment, "tests/x.py", "#!/usr/bin/python3\nimport os\n")
        self.good(rules.first_comment, "engine/x.c", "/* x.c: it. */\n")
        self.good(rules.first_comment, "repl/run", "#!/usr/bin/env bash\n# run: it.\n")
        self.good(rules.first_comment, "tests/x.py", '#!/usr/bin/python3\n"""It."""\n')

    def test_header_guard(self):
        self.bad(rules.header_guard, "engine/x.h", "/* x.h */\nint x;\n")
        self.bad(rules.header_guard, "engine/x.h", "/* x.h */\n#ifndef A\n#define B\n#endif\n")
        self.good(rules.header_guard, "engine/x.h", "/* x.h */\n#ifndef A\n#define A\n#endif\n")
        self.good(rules.header_guard, "engine/x.h", "/* x.h: loops.\n *\n * Included once\n * per type. */\nint x;\n")
        self.good(rules.header_guard, "engine/x.h", "/* x.h: loops. Included by x.c with T, V\n * defined. */\nint x;\n")
        self.bad(rules.header_guard, "engine/x.h", "/* x.h: Included by all. */\nint x;\n")

    def test_todos(self):
        self.bad(rules.todos, "engine/x.c", f"/* {REASONLESS}: later */\n")
        self.bad(rules.todos, "README.md", f"{REASONLESS}\n")
        self.good(rules.todos, "engine/x.c", f"/* {REASONLESS}(needs oneDNN 3): later */\n")

    def test_machine_paths(self):
        for folder in ("root", "home", "Users", "work"):
            self.bad(rules.machine_paths, "README.md", f"see /{folder}/somebody\n")
            self.good(rules.machine_paths, "README.md", f"see $HOME/x, ~/{folder}/x, https://x.org/{folder}/x\n")
            self.good(rules.machine_paths, "README.md", f"see share/{folder}/x\n")

    def test_dtype_choices(self):
        default = "switch (d) {\ncase TD_F32:\n    break;\n%s\n    break;\n}\n"
        self.bad(rules.dtype_choices, "engine/x.c", default % "default:")
        self.good(rules.dtype_choices, "engine/x.c", default % "case TD_F64:")
        self.good(rules.dtype_choices, "lua-bindings/x.c", default % "default:")
        self.good(rules.dtype_choices, "engine/x.c", "switch (k) {\ncase TD_KIND_INT:\ndefault:\n    break;\n}\n")
        self.bad(rules.dtype_choices, "engine/x.c", "x = d == TD_F32 ? a : b;\n")
        self.bad(rules.dtype_choices, "engine/x.c", "x = d != TD_BF16 ? a : b;\n")
        self.good(rules.dtype_choices, "engine/x.c", "x = table[d];\n")

    def test_enum_defaults(self):
        switch = "    switch (k) {\n    case %s:\n        break;\n    %s:\n        break;\n    }\n"
        self.bad(rules.enum_defaults, "lua-bindings/x.c", switch % ("TD_KIND_INT", "default"))
        self.bad(rules.enum_defaults, "jupyter-kernel/x.h", switch % ("TK_SHELL", "default"))
        self.good(rules.enum_defaults, "engine/x.c", switch % ("TD_KIND_INT", "case TD_KIND_NIL"))
        self.good(rules.enum_defaults, "lua-bindings/x.c", switch % ("LUA_TNIL", "default"))
        self.good(rules.enum_defaults, "engine/x.c", switch % ("8", "default"))

    def test_line_ends(self):
        self.bad(rules.line_ends, "engine/x.c", "int x;")
        self.bad(rules.line_ends, "engine/x.c", "int x;\n\n")
        self.bad(rules.line_ends, "engine/x.c", "int x; \n")
        self.bad(rules.line_ends, "engine/x.c", "int x;\r\n")
        self.good(rules.line_ends, "engine/x.c", "int x;\n")
        self.good(rules.line_ends, "README.md", "a  \nb\n")

    def test_every_rule_is_applied(self):
        bad = '#include "profiler/profiler.h"\nvoid f(void) { abort(); }\nint x = d == TD_F32 ? 1 : 2;'
        bad += "\nvoid g(void) {\nswitch (k) {\ncase TD_KIND_INT:\ndefault:\n    break;\n}\n}\n"
        bad += f"// {REASONLESS} in /{'root'}/x" + "\n" * 1001
        messages = [message for _, _, message in rules.check("engine/core/x.h", bad, KNOWN)]
        self.assertEqual(len(messages), len(rules.RULES), messages)

    def test_numbers_are_those_of_the_line(self):
        self.assertEqual([line for line, _ in rules.banned_calls("engine/x.c", "/*\n\n*/\nabort();\n")], [4])


class Programs(unittest.TestCase):
    """The checks that are programs fail, too, on what is wrong."""

    def run_check(self, script, *arguments):
        here = os.path.dirname(os.path.abspath(__file__))
        return subprocess.run([sys.executable, "-B", os.path.join(here, script), *arguments],
                              capture_output=True, text=True, check=False)

    def test_the_tree_has_files(self):
        self.assertIn("tests/style/rules.py", tree.files())
        self.assertIn("tests/style/rules.py", tree.walked_files(tree.ROOT))

    def test_header_that_needs_another(self):
        with tempfile.NamedTemporaryFile("w", suffix=".h") as file:
            file.write("/* x.h */\n#ifndef X_H\n#define X_H\nsize_t x(void);\n#endif\n")
            file.flush()
            self.assertEqual(self.run_check("headers_check.py", "cc", "", file.name).returncode, 1)

    def compile(self, source, output, *options):
        os.makedirs(os.path.dirname(output), exist_ok=True)
        subprocess.run(["cc", *options, "-x", "c", "-", "-o", output], input=source, text=True, check=True,
                       capture_output=True)
        return output

    def test_symbols_that_are_not_to_be_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            def symbols(exported, inside="extern int td_cpu_backend; int *op(void) { return &td_cpu_backend; }"):
                library = self.compile(exported, os.path.join(folder, "libx.so"), "-shared", "-fPIC")
                objects = [self.compile("int td_cpu_backend, td_cpu_inner;", os.path.join(folder, "e.dir/cpu/a.o"), "-c"),
                           self.compile(inside, os.path.join(folder, "e.dir/ops/b.o"), "-c")]
                return self.run_check("symbols_check.py", folder, library, ";".join(objects)).returncode

            os.mkdir(os.path.join(folder, "engine"))
            for name, text in (("td.h", '#include "engine/x.h"\n'), ("td_backend.h", ""),
                               ("x.h", "int td_x(void); /* not td_y */ int other;\n")):
                with open(os.path.join(folder, "engine", name), "w", encoding="utf-8") as file:
                    file.write(text)
            good = "int td_x(void) { return 1; }"
            self.assertEqual(symbols(good), 0)
            for source in ("int td_x, td_y;", "int td_x, other;", "static int td_x;"):
                self.assertEqual(symbols(source), 1, source)
            self.assertEqual(symbols(good, "extern int td_cpu_backend, td_cpu_inner; int *a = &td_cpu_backend, "
                                           "*b = &td_cpu_inner;"), 1)

    def test_calls_in_a_circle_and_upwards(self):
        files = {"lex": "int lex(void) { return 1; }", "eval": "int lex(void); int eval(void); int eval(void) { return lex(); }"}
        self.assertEqual(self.run_calls(files, "repl/session/"), 0)
        upwards = {**files, "lex": "int eval(void); int up(void); int up(void) { return eval(); }"}
        self.assertEqual(self.run_calls(upwards, "repl/session/"), 1)
        self.assertEqual(self.run_calls(upwards, "elsewhere/"), 0)
        circle = {"a": "extern int b; int *a = &b;", "b": "extern int c; int b; int *d = &c;", "c": "extern int *a; int c; int **e = &a;"}
        self.assertEqual(self.run_calls(circle, "elsewhere/"), 1)
        self.assertEqual(self.run_calls({"a": "static int a;"}, "elsewhere/"), 1, "an archive that defines nothing")

    def run_calls(self, files, room):
        with tempfile.TemporaryDirectory() as folder:
            for name, code in files.items():
                subprocess.run(["cc", "-c", "-x", "c", "-", "-o", f"{folder}/{name}.c.o"], input=code, text=True, check=True)
            archive = os.path.join(folder, "x.a")
            subprocess.run(["ar", "rc", archive, *(f"{folder}/{name}.c.o" for name in files)], check=True)
            return self.run_check("calls_check.py", room, archive).returncode


if __name__ == "__main__":
    unittest.main()
