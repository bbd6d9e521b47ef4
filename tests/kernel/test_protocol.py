"""Requests other than execute: each answered as the protocol says, framed by busy and idle."""
import unittest

from harness import KernelCase, outputs, reply_to, send


class Protocol(KernelCase):
    def check_kernel_info(self, content):
        self.assertEqual(content["status"], "ok")
        self.assertEqual(content["protocol_version"], "5.5")
        self.assertEqual(content["implementation"], "tide")
        language = content["language_info"]
        self.assertEqual(language["name"], "lua")
        self.assertEqual(language["mimetype"], "text/x-lua")
        self.assertEqual(language["file_extension"], ".lua")
        self.assertEqual(language["pygments_lexer"], "lua")
        self.assertEqual(language["codemirror_mode"], "lua")
        self.assertRegex(language["version"], r"^5\.4\.\d+$")
        self.assertIn("Tide", content["banner"])
        self.assertTrue(content["help_links"][0]["url"].startswith("https://"))

    def test_kernel_info_on_shell(self):
        answer = self.request("kernel_info_request", {})
        self.assertEqual(answer.message["msg_type"], "kernel_info_reply")
        self.check_kernel_info(answer.reply)
        self.assertEqual(answer.types, [])

    def test_kernel_info_on_control(self):
        msg_id = send(self.client, "kernel_info_request", {}, "control")
        self.check_kernel_info(reply_to(self.client, msg_id, channel="control")["content"])
        self.assertEqual(outputs(self.client, msg_id), [])

    def test_replies_carry_their_parent_whole(self):
        message = self.client.session.msg("kernel_info_request", {})
        self.client.shell_channel.send(message)
        reply = reply_to(self.client, message["header"]["msg_id"])
        sent = dict(message["header"], date=None)
        self.assertEqual(dict(reply["parent_header"], date=None), sent)
        self.assertNotEqual(reply["header"]["msg_id"], sent["msg_id"])
        self.assertIsNotNone(reply["header"]["date"].tzinfo)

    def test_heartbeat_echoes(self):
        import zmq

        with zmq.Context() as context, context.socket(zmq.REQ) as socket:
            socket.linger = 0
            socket.connect(f"tcp://127.0.0.1:{self.client.hb_port}")
            for payload in (b"ping", b"", b"\0" * 1000):
                socket.send(payload)
                self.assertTrue(socket.poll(5000))
                self.assertEqual(socket.recv(), payload)

    def test_connect_gives_the_ports(self):
        reply = self.request("connect_request", {}).reply
        info = self.client.get_connection_info()
        for name in ("shell", "iopub", "stdin", "hb", "control"):
            self.assertEqual(reply[name + "_port"], info[name + "_port"])

    def test_comm_info_is_empty(self):
        reply = self.request("comm_info_request", {"target_name": "jupyter.widget"}).reply
        self.assertEqual(reply, {"status": "ok", "comms": {}})

    def test_comm_open_without_a_target_is_closed(self):
        content = {"comm_id": "c1", "target_name": "nobody", "data": {}}
        messages = outputs(self.client, send(self.client, "comm_open", content))
        self.assertEqual([m["msg_type"] for m in messages], ["comm_close"])
        self.assertEqual(messages[0]["content"]["comm_id"], "c1")

    def test_unknown_type_is_framed_and_ignored(self):
        msg_id = send(self.client, "no_such_request", {})
        self.assertEqual(outputs(self.client, msg_id), [])
        self.assertEqual(self.execute("1 + 1").reply["status"], "ok")

    def test_requests_without_their_fields_get_an_error(self):
        for msg_type in ("execute", "complete", "inspect", "is_complete", "history"):
            for content in ({}, {"code": 7, "hist_access_type": 7}):
                with self.subTest(type=msg_type, content=content):
                    reply = self.request(msg_type + "_request", content).reply
                    self.assertEqual(reply["status"], "error")
                    self.assertEqual(reply["ename"], "BadRequest")
                    self.assertIn(msg_type, reply["evalue"])


class Assist(KernelCase):
    def complete(self, code, cursor=None):
        content = {"code": code, "cursor_pos": len(code) if cursor is None else cursor}
        return self.request("complete_request", content).reply

    def test_completion_of_a_global(self):
        reply = self.complete("pri")
        self.assertIn("print", reply["matches"])
        self.assertEqual((reply["cursor_start"], reply["cursor_end"]), (0, 3))

    def test_completion_counts_in_code_points(self):
        reply = self.complete('x = "é€😀"; pri')
        self.assertIn("print", reply["matches"])
        self.assertEqual((reply["cursor_start"], reply["cursor_end"]), (11, 14))

    def test_completion_within_a_line(self):
        reply = self.complete('-- 😀\npri = 7', 8)
        self.assertIn("print", reply["matches"])
        self.assertEqual(reply["cursor_start"], 5)

    def test_completion_gives_types(self):
        reply = self.complete("pri")
        types = reply["metadata"]["_jupyter_types_experimental"]
        self.assertEqual([t["text"] for t in types], reply["matches"])
        for entry in types:
            self.assertEqual((entry["start"], entry["end"]), (0, 3))
            self.assertTrue(entry["type"])

    def test_completion_with_a_cursor_outside(self):
        for cursor in (-5, 10**6, 2**40):
            reply = self.complete("pri", cursor)
            self.assertEqual(reply["status"], "ok")
            self.assertLessEqual(reply["cursor_start"], reply["cursor_end"])
            self.assertLessEqual(reply["cursor_end"], 3)

    def test_completion_of_nothing_known(self):
        reply = self.complete("no_such_name_at_all")
        self.assertEqual(reply["matches"], [])

    def test_inspect_finds(self):
        content = {"code": "print", "cursor_pos": 5, "detail_level": 0}
        reply = self.request("inspect_request", content).reply
        self.assertTrue(reply["found"])
        self.assertIn("print", reply["data"]["text/plain"])

    def test_inspect_gives_a_table_too(self):
        reply = self.request("inspect_request", {"code": "tide.bmm", "cursor_pos": 8, "detail_level": 0}).reply
        plain, table = reply["data"]["text/plain"], reply["data"]["text/html"]
        self.assertIn("Shapes:    x (b, n, k), y (b, k, m) -> (b, n, m)\n", plain)
        self.assertIn("Dtypes:    floating and integers, one dtype\n", plain)
        self.assertRegex(table, r"(?s)\A<table>(<tr><th[^>]*>\w+</th><td[^>]*>.*?</td></tr>)+</table>\Z")
        self.assertRegex(table, r">Shapes</th><td[^>]*><pre[^>]*>x \(b, n, k\), y \(b, k, m\) -&gt; \(b, n, m\)</pre>")
        self.assertNotIn("<b>", self.request("inspect_request", {"code": "t = '<b>'\nt", "cursor_pos": 11}).reply["data"].get("text/html", ""))

    def test_inspect_does_not_find(self):
        content = {"code": "no_such_name", "cursor_pos": 3, "detail_level": 1}
        reply = self.request("inspect_request", content).reply
        self.assertEqual((reply["status"], reply["found"], reply["data"]), ("ok", False, {}))

    def is_complete(self, code):
        return self.request("is_complete_request", {"code": code}).reply

    def test_is_complete(self):
        self.assertEqual(self.is_complete("x = 1"), {"status": "complete"})
        self.assertEqual(self.is_complete("1 + 1"), {"status": "complete"})
        self.assertEqual(self.is_complete("x = = 1"), {"status": "invalid"})
        reply = self.is_complete("for i = 1, 3 do")
        self.assertEqual(reply["status"], "incomplete")
        self.assertRegex(reply["indent"], "^ +$")


class History(KernelCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for code in ("a = 1", "b = 2", "a = 1", "é = nil --"):
            cls.execute(cls, code)

    def history(self, access, **options):
        content = dict(options, hist_access_type=access, raw=True)
        content.setdefault("output", False)
        return self.request("history_request", content).reply["history"]

    def test_tail(self):
        self.assertEqual([h[2] for h in self.history("tail", n=2)], ["a = 1", "é = nil --"])

    def test_tail_with_outputs(self):
        self.assertEqual(self.history("tail", n=1, output=True)[0][2], ["é = nil --", None])

    def test_range_of_this_session(self):
        self.assertEqual(
            self.history("range", session=0, start=1, stop=3),
            [[0, 1, "a = 1"], [0, 2, "b = 2"]],
        )

    def test_range_without_an_end(self):
        self.assertEqual([h[1] for h in self.history("range", session=0, start=2)], [2, 3, 4])

    def test_search(self):
        self.assertEqual([h[1] for h in self.history("search", pattern="a*")], [1, 3])
        self.assertEqual([h[1] for h in self.history("search", pattern="a*", n=1)], [3])
        self.assertEqual(self.history("search", pattern="z*"), [])

    def test_search_unique(self):
        self.assertEqual([h[1] for h in self.history("search", pattern="a*", unique=True)], [3])


if __name__ == "__main__":
    unittest.main()
