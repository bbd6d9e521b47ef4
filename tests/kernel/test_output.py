"""More output than a front end can take, front ends that do not read, and NUL."""
import re
import unittest

from harness import TIMEOUT, KernelCase, ask, kernel, reply_to

import zmq  # jupyter_client brings it

HEAD, TAIL = 1 << 20, 64 << 10
NOTE = re.compile("\n… ([0-9,]+) bytes in ([0-9,]+) lines are left out here; %flood off shows all …\n")


class Nul(KernelCase):
    def test_errors_go_on_behind_it(self):
        for code in ("error('a\\0b', 0)", "error(setmetatable({}, {__tostring = function() return 'a\\0b' end}))"):
            reply = self.execute(code).reply
            self.assertEqual(reply["evalue"], "a\\0b")
            self.assertIn("a\\0b", "\n".join(reply["traceback"]))

    def test_names_of_errors_too(self):
        reply = self.execute("error(setmetatable({}, {__name = 'a\\0b'}))").reply
        self.assertEqual(reply["ename"], "a\\0b")

    def test_history_too(self):
        self.execute("x = 'before\0behind'")
        content = {"hist_access_type": "tail", "n": 1, "output": False, "raw": True}
        self.assertEqual(self.request("history_request", content).reply["history"][0][2], "x = 'before\0behind'")


class Flood(KernelCase):
    LINES = 300000
    CODE = f"for i = 1, {LINES} do print(i, 'é') end"
    ALL = "".join(f"{i}\té\n" for i in range(1, LINES + 1))

    def test_first_and_last_part_are_shown_and_how_much_was_between(self):
        text = self.execute(self.CODE).text()
        note = NOTE.search(text)
        head, tail = text[: note.start()], text[note.end() :]
        self.assertTrue(self.ALL.startswith(head) and head.endswith("\n"), head[-20:])
        self.assertTrue(self.ALL.endswith("\n" + tail), tail[:20])
        self.assertGreater(len(head.encode()), HEAD - 5000)
        self.assertGreater(len(tail.encode()), TAIL - 5000)
        left_out = self.ALL.encode()[len(head.encode()) : -len(tail.encode())]
        self.assertEqual(int(note[1].replace(",", "")), len(left_out))
        self.assertEqual(int(note[2].replace(",", "")), left_out.count(b"\n"))
        self.assertNotIn("\ufffd", text)

    def test_of_a_child_process_and_both_streams(self):
        answer = self.execute("os.execute('seq 1 300000; seq 1 300000 >&2')")
        self.assertTrue(answer.text().endswith("\n300000\n"))
        self.assertTrue(answer.text("stderr").endswith("\n300000\n"))
        self.assertLess(len(answer.text()) + len(answer.text("stderr")), HEAD + 2 * TAIL + 5000)

    def test_one_line_without_an_end(self):
        answer = self.execute("io.write(('€'):rep(2000000))")
        text = answer.text()
        note = NOTE.search(text)
        self.assertEqual(set(NOTE.sub("", text)), {"€"})
        self.assertEqual(3 * (len(text) - len(note[0])) + int(note[1].replace(",", "")), 6000000)

    def test_the_next_cell_begins_anew(self):
        self.execute(self.CODE)
        self.assertEqual(self.execute("print('next')").text(), "next\n")

    def test_what_is_cleared_does_not_count(self):
        answer = self.execute("for i = 1, 40 do tide.clear_output(true) io.write(('x'):rep(100000)) end")
        self.assertEqual(len(answer.text()), 4000000)

    def test_errors_come_behind_the_last_part(self):
        answer = self.execute(self.CODE + " error('late')")
        self.assertTrue(answer.text().endswith(self.ALL[-50:]))
        self.assertEqual(answer.types[-1], "error")

    def test_flood_off_shows_all(self):
        self.assertEqual(self.execute("%flood off").reply["status"], "ok")
        self.assertEqual(self.execute(self.CODE).text(), self.ALL)
        self.execute("%flood on")
        self.assertLess(len(self.execute(self.CODE).text()), HEAD + TAIL)

    def test_flood_of_anything_else_is_an_error(self):
        for words in ("", "maybe", "off now"):
            self.assertIn("expected on or off", self.execute("%flood " + words).reply["evalue"])


def resident_bytes(pid):
    with open(f"/proc/{pid}/status") as file:
        return 1024 * int(re.search(r"VmRSS:\s*(\d+)", file.read())[1])


class Stalled(unittest.TestCase):
    WRITTEN = 1200 << 20

    def test_what_a_front_end_does_not_read_is_bounded_and_status_is_kept(self):
        with kernel() as (manager, client, log), zmq.Context() as context:
            ask(client, client.execute("%flood off"))
            client.iopub_channel.stop()
            with context.socket(zmq.SUB) as deaf:
                deaf.linger = 0
                deaf.subscribe(b"")
                deaf.connect(f"tcp://127.0.0.1:{client.iopub_port}")
                self.assertTrue(deaf.poll(TIMEOUT * 1000), "no welcome")
                code = f"local s = ('x'):rep(1 << 20) for i = 1, {self.WRITTEN >> 20} do io.write(s) end"
                msg_id = client.execute(code)
                self.assertEqual(reply_to(client, msg_id, 120)["content"]["status"], "ok")
                self.assertLess(resident_bytes(manager.provisioner.process.pid), self.WRITTEN / 2)
                last = client.execute("return 5")
                reply_to(client, last)
                said = []
                while (last, "idle") not in said:
                    self.assertTrue(deaf.poll(TIMEOUT * 1000), said)
                    _, parts = client.session.feed_identities(deaf.recv_multipart())
                    message = client.session.deserialize(parts)
                    if message["msg_type"] == "status":
                        said.append((message["parent_header"]["msg_id"], message["content"]["execution_state"]))
                self.assertEqual([state for of, state in said if of == msg_id], ["busy", "idle"])
                self.assertEqual([state for of, state in said if of == last], ["busy", "idle"])


if __name__ == "__main__":
    unittest.main()
