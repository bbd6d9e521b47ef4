"""What no front end should send, and front ends that behave badly: the kernel drops, logs, lives on."""
import json
import random
import threading
import unittest

from harness import TIMEOUT, ask, kernel, log_text, outputs, reply_to, send

import zmq  # jupyter_client brings it


def raw_socket(client, channel, context):
    socket = context.socket(zmq.DEALER)
    socket.linger = 1000
    socket.connect(f"tcp://127.0.0.1:{getattr(client, channel + '_port')}")
    return socket


def frames_of(client, msg_type="kernel_info_request", content=None):
    """The frames of a good message, from the delimiter on."""
    return client.session.serialize(client.session.msg(msg_type, content or {}))


class Frames(unittest.TestCase):
    def test_malformed_frames_are_dropped_with_a_line_each(self):
        with kernel() as (manager, client, log), zmq.Context() as context:
            good = frames_of(client)
            bad = [
                [b""],
                [b"nonsense"],
                [b"<IDS|MSG>"],
                good[:4],
                good[:5],
                [b"<IDS|MSG>", b"0" * 64] + good[2:],
                [b"<IDS|MSG>", b""] + good[2:],
                [b"<IDS|MSG>", good[1]] + [b"{}"] * 4,
                [b"x"] * 2000,
            ]
            for parts in (
                [b"{", b"{}", b"{}", b"{}"],
                [b"[]", b"{}", b"{}", b"{}"],
                [b"{}", b"{}", b"{}", b"{}"],
                [b'{"msg_id":1,"msg_type":2}', b"{}", b"{}", b"{}"],
                [b'{"a":' + b"[" * 1000000, b"{}", b"{}", b"{}"],
            ):
                bad.append([b"<IDS|MSG>", client.session.sign(parts)] + parts)
            for channel in ("shell", "control"):
                with raw_socket(client, channel, context) as socket:
                    for frames in bad:
                        socket.send_multipart(frames)
                    socket.send_multipart(frames_of(client))
                    self.assertTrue(socket.poll(TIMEOUT * 1000))
                    socket.recv_multipart()
                    self.assertFalse(socket.poll(100), "one answer to many bad messages")
            text = log_text(log)
            self.assertEqual(text.count("dropped a message"), 2 * len(bad))
            self.assertEqual(len(text.splitlines()), 2 * len(bad))
            self.assertIn("wrong signature", text)

    def test_frames_on_stdin_are_dropped_while_a_cell_reads(self):
        with kernel() as (manager, client, log), zmq.Context() as context:
            msg_id = client.execute("print(io.read())", allow_stdin=True)
            client.get_stdin_msg(timeout=TIMEOUT)
            with raw_socket(client, "stdin", context) as socket:
                socket.send_multipart([b"nonsense"])
                socket.send_multipart(frames_of(client, "input_reply", {"value": 7}))
                socket.send_multipart(frames_of(client, "input_other", {"value": "no"}))
            client.input("yes")
            self.assertEqual(ask(client, msg_id).text(), "yes\n")

    def test_random_frames(self):
        chance = random.Random(1)
        with kernel() as (manager, client, _), zmq.Context() as context:
            for channel in ("shell", "control", "stdin", "hb"):
                with raw_socket(client, channel, context) as socket:
                    for _ in range(500):
                        frames = frames_of(client)
                        for _ in range(chance.randrange(1, 4)):
                            i = chance.randrange(len(frames))
                            frames[i] = chance.choice(
                                (b"", chance.randbytes(chance.randrange(100)), frames[i][:-1], frames[i] * 2)
                            )
                        socket.send_multipart(frames)
            answer = ask(client, client.execute("return 1"))
            self.assertEqual(answer.reply["status"], "ok")

    def test_random_contents(self):
        """Rightly signed requests whose fields are of every wrong type: each gets its reply."""
        values = [None, True, -1, 2**62, 1.5, "", "é\0", "x = ", [], [[]], {}, {"a": None}]
        names = "code cursor_pos detail_level silent store_history user_expressions allow_stdin".split()
        names += "stop_on_error hist_access_type n session start stop pattern unique output raw".split()
        types = "execute complete inspect is_complete history comm_info connect kernel_info".split()
        chance = random.Random(2)
        with kernel() as (manager, client, _):
            for _ in range(300):
                content = {name: chance.choice(values) for name in chance.sample(names, 8)}
                if chance.random() < 0.5:
                    content.update(code="print(1)", hist_access_type=chance.choice(("tail", "range", "search")))
                msg_id = send(client, chance.choice(types) + "_request", content)
                with self.subTest(content=json.dumps(content)):
                    self.assertIn(ask(client, msg_id).reply["status"], ("ok", "error", "complete", "incomplete", "invalid"))

    def test_an_unsigned_kernel_answers(self):
        from jupyter_client.manager import KernelManager
        from jupyter_client.session import Session

        manager = KernelManager(kernel_name="tide", session=Session(key=b""))
        manager.start_kernel()
        client = manager.blocking_client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=TIMEOUT)
            self.assertEqual(ask(client, client.execute("print('open')")).text(), "open\n")
        finally:
            client.stop_channels()
            manager.shutdown_kernel()


class FrontEnds(unittest.TestCase):
    def test_ten_clients_on_one_kernel(self):
        with kernel() as (manager, _, _):
            failures = []

            def work(number):
                client = manager.blocking_client()
                client.start_channels()
                try:
                    client.wait_for_ready(timeout=TIMEOUT)
                    for i in range(10):
                        answer = ask(client, client.execute(f"print({number} * {i})"))
                        if answer.text() != f"{number * i}\n":
                            failures.append((number, i, answer.text()))
                except Exception as problem:  # noqa: BLE001  (told by the main thread)
                    failures.append((number, problem))
                finally:
                    client.stop_channels()

            threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 11)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_a_front_end_that_vanishes_in_mid_cell(self):
        with kernel() as (manager, client, _):
            other = manager.blocking_client()
            other.start_channels()
            other.wait_for_ready(timeout=TIMEOUT)
            other.execute("for i = 1, 200000 do print(i) end")
            other.stop_channels()
            answer = ask(client, client.execute("return 'here'"), timeout=60)
            self.assertEqual(answer.reply["status"], "ok")

    def test_a_front_end_that_never_reads_blocks_nothing(self):
        with kernel() as (manager, client, _), zmq.Context() as context:
            with context.socket(zmq.SUB) as deaf:
                deaf.linger = 0
                deaf.rcvhwm = 1
                deaf.subscribe(b"")
                deaf.connect(f"tcp://127.0.0.1:{client.iopub_port}")
                msg_id = client.execute("local s = ('x'):rep(99) for i = 1, 100000 do print(s) end")
                reply_to(client, msg_id)
                self.assertEqual(len(outputs(client, msg_id)) > 0, True)


if __name__ == "__main__":
    unittest.main()
