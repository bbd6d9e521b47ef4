"""Cells: what they print, show and answer, in the order they do it."""
import time
import unittest

from harness import TIMEOUT, Gate, KernelCase, ask, kernel, reply_to
from process_state import resident


class Results(KernelCase):
    def test_value_of_an_expression(self):
        answer = self.execute("6 * 7")
        self.assertEqual(answer.types, ["execute_input", "execute_result"])
        result = answer.contents("execute_result")[0]
        self.assertEqual(result["data"]["text/plain"], "42")
        self.assertEqual(result["metadata"], {})
        self.assertEqual(answer.reply["status"], "ok")
        self.assertEqual(answer.reply["execution_count"], result["execution_count"])
        self.assertEqual(answer.contents("execute_input")[0]["code"], "6 * 7")

    def test_statement_has_no_result(self):
        self.assertEqual(self.execute("local x = 1").types, ["execute_input"])

    def test_counts_go_up(self):
        first = self.execute("return 1").reply["execution_count"]
        self.assertEqual(self.execute("return 2").reply["execution_count"], first + 1)

    def test_state_lives_on(self):
        self.execute("kept = 'é😀'")
        answer = self.execute("print(kept)")
        self.assertEqual(answer.text(), "é😀\n")

    def test_error(self):
        answer = self.execute("error('broken')")
        self.assertEqual(answer.types, ["execute_input", "error"])
        content = answer.contents("error")[0]
        self.assertEqual(set(content), {"ename", "evalue", "traceback"})
        self.assertIn("broken", content["evalue"])
        self.assertIn("broken", "\n".join(content["traceback"]))
        self.assertEqual(answer.reply["status"], "error")
        for field in content:
            self.assertEqual(answer.reply[field], content[field])
        self.assertEqual(self.execute("1").reply["status"], "ok")

    def test_syntax_error(self):
        self.assertEqual(self.execute("x = = 1").reply["ename"], "SyntaxError")

    def test_silent_says_nothing(self):
        before = self.execute("0").reply["execution_count"]
        self.assertEqual(self.execute("6 * 7", silent=True).types, [])
        answer = self.execute("error('x')", silent=True)
        self.assertEqual(answer.types, [])
        self.assertEqual(answer.reply["status"], "error")
        self.assertEqual(self.execute("0").reply["execution_count"], before + 1)

    def test_without_history_the_value_is_shown_and_not_counted(self):
        before = self.execute("0").reply["execution_count"]
        answer = self.execute("6 * 7", store_history=False)
        self.assertEqual(answer.types, ["execute_input", "execute_result"])
        self.assertEqual(self.execute("0").reply["execution_count"], before + 1)

    def test_user_expressions(self):
        answer = self.execute("ux = 5", user_expressions={"a": "ux + 1", "b": "error('no')"})
        values = answer.reply["user_expressions"]
        self.assertEqual(values["a"]["status"], "ok")
        self.assertEqual(values["a"]["data"]["text/plain"], "6")
        self.assertEqual(values["b"]["status"], "error")
        self.assertIn("no", values["b"]["evalue"])

    def test_lines_of_a_cell_may_ask_for_help(self):
        for cell in ("hx = 41\nhelp(tide.sum)\nhx + 1", "hx = 41\n?tide.sum\nhx + 1"):
            answer = self.execute(cell)
            self.assertIn("Signature: sum(", answer.text())
            self.assertEqual(answer.contents("execute_result")[0]["data"]["text/plain"], "42")
        self.assertIn("Tide: tensors", self.execute("hx = 1\nhelp").text())
        wrong = self.execute("hx\n?tide.sum").reply
        self.assertEqual(wrong["ename"], "SyntaxError")
        self.assertNotIn("__tide", wrong["evalue"])

    def test_a_guard_that_nothing_holds_ends_with_its_cell(self):
        for name, asked in (("no_grad", "is_grad_enabled"), ("inference_mode", "is_grad_enabled")):
            before = self.execute("tide." + asked + "()").contents("execute_result")[0]["data"]["text/plain"]
            shown = self.execute("tide." + name + "()").contents("execute_result")[0]["data"]["text/plain"]
            self.assertEqual(shown, "tide." + name + ": on until closed")
            after = self.execute("tide." + asked + "()").contents("execute_result")[0]["data"]["text/plain"]
            self.assertEqual((before, after), ("true", "true"))
        self.execute("guard_held = tide.no_grad()")
        held = self.execute("tide.is_grad_enabled()").contents("execute_result")[0]["data"]["text/plain"]
        self.execute("guard_held = nil collectgarbage()")
        self.assertEqual(held, "false")

    def test_pager(self):
        payload = self.execute("?print").reply["payload"]
        self.assertEqual([p["source"] for p in payload], ["page"])
        self.assertTrue(payload[0]["data"]["text/plain"])

    def test_display_update_and_clear(self):
        answer = self.execute(
            "tide.display('one', {id = 'd'})\n"
            "tide.display('two', {id = 'd', update = true})\n"
            "tide.clear_output(true)"
        )
        self.assertEqual(
            answer.types, ["execute_input", "display_data", "update_display_data", "clear_output"]
        )
        one, two = answer.messages[1]["content"], answer.messages[2]["content"]
        self.assertIn("one", one["data"]["text/plain"])
        self.assertIn("two", two["data"]["text/plain"])
        self.assertEqual(one["transient"], {"display_id": "d"})
        self.assertEqual(two["transient"], {"display_id": "d"})
        self.assertEqual(answer.messages[3]["content"], {"wait": True})

    def test_replies_say_when_they_were_begun(self):
        self.assertIn("started", self.execute("1").message["metadata"])


class Streams(KernelCase):
    def test_ten_thousand_prints_in_order_in_few_messages(self):
        answer = self.execute("for i = 1, 10000 do print(i) end")
        self.assertEqual(answer.text(), "".join(f"{i}\n" for i in range(1, 10001)))
        self.assertLess(answer.types.count("stream"), 500)

    def test_streams_keep_their_order(self):
        answer = self.execute("print('a') io.stderr:write('b\\n') print('c')")
        parts = [(m["name"], m["text"]) for m in answer.contents("stream")]
        self.assertEqual(parts, [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\n")])

    def test_output_comes_before_the_result(self):
        answer = self.execute("(function() print('first') return 7 end)()")
        self.assertEqual(answer.types, ["execute_input", "stream", "execute_result"])

    def test_a_child_process_writes_to_the_cell_in_order(self):
        answer = self.execute("print('a') os.execute('echo b; echo e >&2') print('c')")
        self.assertEqual(answer.text(), "a\nb\nc\n")
        self.assertEqual(answer.text("stderr"), "e\n")

    def test_much_output_of_a_child_process(self):
        answer = self.execute("os.execute('seq 1 100000')")
        self.assertEqual(answer.text(), "".join(f"{i}\n" for i in range(1, 100001)))

    def test_a_child_process_reads_end_of_file(self):
        self.assertEqual(self.execute("os.execute('cat; echo done')").text(), "done\n")

    def test_output_of_a_process_left_behind(self):
        self.execute("os.execute('(sleep 0.5; echo late) &')")
        message = self.client.get_iopub_msg(timeout=TIMEOUT)
        self.assertEqual((message["msg_type"], message["content"]["text"]), ("stream", "late\n"))

    def test_broken_utf8_is_mended(self):
        self.assertEqual(self.execute("io.write('a\\xffb\\xc3')").text(), "a\ufffdb\ufffd")

    def test_a_character_cut_in_two_is_whole(self):
        answer = self.execute("io.write('\\xe2\\x82') io.write('\\xac')")
        self.assertEqual(answer.text(), "€")

    def test_nul_bytes_and_controls_pass(self):
        self.assertEqual(self.execute("io.write('a\\0b\\27[1m')").text(), "a\0b\x1b[1m")

    def test_an_error_of_broken_utf8(self):
        self.assertIn("\ufffd", self.execute("error('\\xff', 0)").reply["evalue"])

    def test_output_comes_while_the_cell_runs(self):
        gate, said = Gate(), ""
        msg_id = self.client.execute(f"print('now') {gate.wait} print('later')")
        while said != "now\nlater\n":
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["msg_type"] == "stream":
                said += message["content"]["text"]
                self.assertTrue(said.startswith("now\n"))
                gate.open()
        reply_to(self.client, msg_id)
        self.client.get_iopub_msg(timeout=TIMEOUT)

    def test_a_large_text(self):
        answer = self.execute("io.write(('x'):rep(1000000))")
        self.assertEqual(len(answer.text()), 1000000)


class Queues(KernelCase):
    def test_an_error_aborts_what_is_queued(self):
        gate = Gate()
        ids = [self.client.execute(code) for code in (gate.wait + "error('stop')", "ran = true", "ran = true")]
        info = self.client.kernel_info()
        gate.open()
        names = [ask(self.client, i).reply["ename"] for i in ids]
        self.assertEqual(names, ["Error", "Aborted", "Aborted"])
        self.assertEqual(ask(self.client, info).reply["status"], "ok")
        time.sleep(0.5)
        self.assertEqual(self.execute("print(ran)").text(), "nil\n")

    def test_without_stop_on_error_what_is_queued_runs(self):
        gate = Gate()
        first = self.client.execute(gate.wait + "error('stop')", stop_on_error=False)
        second = self.client.execute("return 1")
        gate.open()
        self.assertEqual(ask(self.client, first).reply["status"], "error")
        self.assertEqual(ask(self.client, second).reply["status"], "ok")


class Input(KernelCase):
    def test_io_read_asks_the_front_end(self):
        msg_id = self.client.execute("io.write('name? ') print('hi ' .. io.read())", allow_stdin=True)
        question = self.client.get_stdin_msg(timeout=TIMEOUT)
        self.assertEqual(question["msg_type"], "input_request")
        self.assertEqual(question["parent_header"]["msg_id"], msg_id)
        self.assertIs(question["content"]["password"], False)
        self.client.input("Adé")
        answer = ask(self.client, msg_id)
        self.assertEqual(answer.text(), "name? hi Adé\n")

    def test_each_line_is_asked_for(self):
        msg_id = self.client.execute("print(io.read() + io.read())", allow_stdin=True)
        for line in ("40", "2"):
            self.client.get_stdin_msg(timeout=TIMEOUT)
            self.client.input(line)
        self.assertEqual(ask(self.client, msg_id).text(), "42\n")

    def test_ctrl_d_is_the_end_of_input(self):
        msg_id = self.client.execute("print(io.read('a')) print(io.read())", allow_stdin=True)
        for line in ("one", "two \x04", "\x04", "after"):
            self.client.get_stdin_msg(timeout=TIMEOUT)
            self.client.input(line)
        self.assertEqual(ask(self.client, msg_id).text(), "one\ntwo \x04\n\nafter\n")

    def test_without_stdin_io_read_is_at_the_end(self):
        answer = self.execute("print(io.read())", allow_stdin=False)
        self.assertEqual(answer.text(), "nil\n")
        self.assertIn("takes no input", answer.text("stderr"))

    def test_an_old_answer_is_not_taken_for_a_new_one(self):
        self.client.input("stale")
        ask(self.client, self.client.kernel_info())  # what was sent before has arrived when this is answered
        time.sleep(0.2)
        msg_id = self.client.execute("print(io.read())", allow_stdin=True)
        self.client.get_stdin_msg(timeout=TIMEOUT)
        self.client.input("fresh")
        self.assertEqual(ask(self.client, msg_id).text(), "fresh\n")


class Exit(unittest.TestCase):
    def test_os_exit_answers_and_leaves_with_its_code(self):
        with kernel() as (manager, client, _):
            msg_id = client.execute("print('bye') os.exit(7)")
            answer = ask(client, msg_id)
            self.assertEqual(answer.reply["status"], "ok")
            self.assertEqual(answer.reply["payload"][0]["source"], "ask_exit")
            self.assertEqual(answer.text(), "bye\n")
            self.assertEqual(manager.provisioner.process.wait(TIMEOUT), 7)

    def test_what_a_finalizer_prints_is_no_trouble(self):
        with kernel() as (manager, client, _):
            ask(client, client.execute("keep = setmetatable({}, {__gc = function() print('gone') end})"))
            client.shutdown()
            self.assertEqual(manager.provisioner.process.wait(TIMEOUT), 0)


class Rest(KernelCase):
    def test_what_a_cell_left_goes_back_to_the_system_when_nobody_asks_for_anything(self):
        self.execute("kept = tide.ones(25, 1000, 1000)")
        pid = self.manager.provisioner.process.pid
        before, end = resident(pid), time.monotonic() + TIMEOUT
        self.execute("for _ = 1, 3 do local left = kept * 2 end\ndo local _ = setmetatable({}, {__gc = function() finalized = true end}) end")
        while resident(pid) > before + 50e6:
            self.assertLess(time.monotonic(), end, f"{resident(pid)} bytes, {before} before")
            time.sleep(0.2)
        self.assertEqual(self.execute("print(finalized, kept:sum():item())").text(), "true\t25000000.0\n")


class Texts(KernelCase):
    def test_html_with_a_byte_that_is_no_utf_8_is_shown(self):
        code = (
            "tide.display(setmetatable({}, {__display = function() return {['text/html'] = '<b>\\xFF</b>', "
            "['text/plain'] = 'p\\xFE'} end}))"
        )
        answer = self.execute(code)
        data = answer.contents("display_data")[0]["data"]
        self.assertEqual((data["text/html"], data["text/plain"]), ("<b>\ufffd</b>", "p\ufffd"))
        self.assertIn("text/html has bytes that are no UTF-8", answer.text())

    def test_a_failing_cell_of_a_shell_stops_a_notebook(self):
        self.assertEqual(self.execute("%%bash\nexit 3").reply["status"], "error")
        self.assertEqual(self.execute("%%bash\nexit 0").reply["status"], "ok")

    def test_a_captured_cell_sends_nothing(self):
        answer = self.execute("%%capture kept\nprint(1)\nos.execute('echo 2')\nio.stderr:write('3')\ntide.display(4)\n5")
        self.assertEqual(answer.types, ["execute_input"])
        answer = self.execute("kept()")
        self.assertEqual((answer.text(), answer.text("stderr")), ("1\n2\n", "3"))
        self.assertEqual([c["data"]["text/plain"] for c in answer.contents("display_data")], ["4", "5"])


if __name__ == "__main__":
    unittest.main()
