"""Rightly signed messages that C can't read as they are: each is answered."""
import unittest

from harness import KernelCase, ask, outputs


class Unreadable(KernelCase):
    def send(self, msg_type, metadata="{}", content="{}", parent="{}", channel="shell"):
        """Sends a message whose parts are these texts; gives its id."""
        session = self.client.session
        header = session.msg(msg_type)["header"]
        parts = [session.pack(header)] + [part.encode() for part in (parent, metadata, content)]
        frames = [b"<IDS|MSG>", session.sign(parts)] + parts
        getattr(self.client, channel + "_channel").socket.send_multipart(frames)
        return header["msg_id"]

    def cell(self, content='{"code": "print(7)"}', **parts):
        return ask(self.client, self.send("execute_request", content=content, **parts))

    def test_numbers_beyond_what_c_holds_in_metadata(self):
        for number in (str(10**30), str(-(2**63) - 1), "1e999", "-2E+400", "123456" * 100, "NaN", "-Infinity"):
            with self.subTest(number=number[:20]):
                self.assertEqual(self.cell(metadata='{"a": [%s], "deletedCells": []}' % number).text(), "7\n")

    def test_numbers_beyond_what_c_holds_in_the_content(self):
        content = '{"code": "print(8)", "silent": false, "big": %d, "real": 1e400}' % 2**64
        self.assertEqual(self.cell(content).text(), "8\n")

    def test_the_fields_beside_them_keep_their_types(self):
        content = '{"code": "print", "cursor_pos": 2, "big": %d}' % 2**64
        reply = ask(self.client, self.send("complete_request", content=content)).reply
        self.assertEqual((reply["cursor_start"], reply["cursor_end"]), (0, 2))

    def test_nul_in_a_key(self):
        for text in ('{"a\\u0000b": 1, "code": "print(7)"}', '{"code": "print(7)", "\\u0000" : {}}'):
            self.assertEqual(self.cell(text).text(), "7\n")
            self.assertEqual(self.cell(metadata=text).text(), "7\n")

    def test_nul_in_the_code_stays(self):
        self.assertEqual(self.cell('{"code": "print(#\'a\\u0000b\')"}').text(), "3\n")

    def test_half_a_surrogate_pair_in_the_code(self):
        for half in ("\\ud83d", "\\udE00", "\\ud83d\\u0041", "\\ud83d\\ud83d\\ude00"):
            answer = self.cell('{"code": "print(\'<%s>\')"}' % half)
            self.assertEqual(answer.reply["status"], "ok")
            self.assertIn("\ufffd", answer.text())
        self.assertEqual(self.cell('{"code": "print(\'\\ud83d\\ude00\')"}').text(), "😀\n")

    def test_content_that_is_no_json_is_answered_by_an_error(self):
        for content in ("", "{", "[]", "null", '{"code": tru}', '{"a": ' + "[" * 100000, '{"code": "\\x"}'):
            with self.subTest(content=content[:20]):
                reply = self.cell(content).reply
                self.assertEqual((reply["status"], reply["ename"]), ("error", "BadRequest"))
                self.assertIn("execute_request: its content can't be read", reply["evalue"])

    def test_other_parts_that_are_no_json_do_not_matter(self):
        self.assertEqual(self.cell(metadata="nonsense").text(), "7\n")
        self.assertEqual(self.cell(parent="[1, 2").text(), "7\n")

    def test_messages_that_have_no_reply_end_idle(self):
        self.assertEqual(outputs(self.client, self.send("comm_msg", content="{")), [])


if __name__ == "__main__":
    unittest.main()
