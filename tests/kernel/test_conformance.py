"""jupyter_kernel_test with every sample of its class filled in: all pass, none is skipped."""
import unittest

import harness  # installs the kernel where jupyter_client finds it

harness.need("jupyter_kernel_test")

import jupyter_kernel_test  # noqa: E402  (known to be there)


class Tide(jupyter_kernel_test.KernelTests):
    kernel_name = "tide"
    language_name = "lua"
    file_extension = ".lua"
    code_hello_world = "print('hello, world')"
    code_stderr = "io.stderr:write('oops\\n')"
    completion_samples = [
        {"text": "string.for", "matches": {"format"}},
        {"text": "coroutine.wr", "matches": {"wrap"}},
    ]
    complete_code_samples = ["x = 1", "print('a')", "for i = 1, 2 do end", "1 + 1", "-- only a comment"]
    incomplete_code_samples = ["for i = 1, 2 do", "function f()", "x = {", "x = [[a", "f("]
    invalid_code_samples = ["x = = 1", "end", "for for", "1 +* 2"]
    code_page_something = "?print"
    code_generate_error = "error('no')"
    code_execute_result = [
        {"code": "6 * 7", "result": "42"},
        {"code": "6 * 7", "result": "42"},
        {"code": "('ab'):rep(2)"},
        {"code": "{1, 2}"},
        {"code": "6 * 7", "result": "42"},
    ]
    code_display_data = [{"code": "tide.display('x')", "mime": "text/plain"}]
    code_history_pattern = "6 * 7"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "string.format"
    code_clear_output = "tide.clear_output()"


if hasattr(jupyter_kernel_test, "IopubWelcomeTests"):  # newer than 0.6

    class TideWelcome(jupyter_kernel_test.IopubWelcomeTests):
        kernel_name = "tide"
        support_iopub_welcome = True


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    # A sample that is missing shows as a skip.
    raise SystemExit(0 if result.wasSuccessful() and result.testsRun and not result.skipped else 1)
