"""Who may be heard: messages that come twice, and connections with Curve keys."""
import json
import os
import subprocess
import tempfile
import unittest

from harness import KERNEL, TIMEOUT, KernelCase, ask, log_text, reply_to, send

import zmq  # jupyter_client brings it
from jupyter_client.session import Session


class Replay(KernelCase):
    def test_a_message_that_comes_again_is_not_served_again(self):
        session = self.client.session
        message = session.msg("execute_request", {"code": "n = (n or 0) + 1", "stop_on_error": True})
        frames = session.serialize(message)
        for _ in range(3):
            self.client.shell_channel.socket.send_multipart(frames)
        ask(self.client, message["header"]["msg_id"])
        self.assertEqual(self.execute("print(n)").text(), "1\n")
        self.assertEqual(log_text(self.log).count("it came before"), 2)

    def test_nor_on_another_channel(self):
        session = self.client.session
        message = session.msg("connect_request", {})
        frames = session.serialize(message)
        self.client.shell_channel.socket.send_multipart(frames)
        ask(self.client, message["header"]["msg_id"])
        self.client.control_channel.socket.send_multipart(frames)
        info = send(self.client, "kernel_info_request", {}, "control")
        first = self.client.get_control_msg(timeout=TIMEOUT)
        self.assertEqual(first["parent_header"]["msg_id"], info)

    def test_many_messages_are_each_new(self):
        before = log_text(self.log).count("it came before")
        ids = [self.client.is_complete(f"x = {i}") for i in range(2000)]
        for msg_id in ids:
            self.assertEqual(reply_to(self.client, msg_id)["content"]["status"], "complete")
        self.assertEqual(log_text(self.log).count("it came before"), before)


@unittest.skipUnless(zmq.has("curve"), "this pyzmq knows no Curve")
class Curve(unittest.TestCase):
    PORTS = ("shell", "iopub", "stdin", "control", "hb")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.public, self.secret = (key.decode() for key in zmq.curve_keypair())
        self.context = zmq.Context()
        self.addCleanup(self.context.destroy, 0)

    def start(self, **changes):
        """A kernel of a connection file with these fields besides; (process, its ports by name)."""
        fields = {
            "transport": "ipc",
            "ip": os.path.join(self.folder, "s"),
            "key": "secret",
            "signature_scheme": "hmac-sha256",
            **{name + "_port": i + 1 for i, name in enumerate(self.PORTS)},
            **changes,
        }
        path = os.path.join(self.folder, "connection.json")
        with open(path, "w") as file:
            json.dump(fields, file)
        return subprocess.Popen([KERNEL, "-f", path], stderr=subprocess.PIPE, text=True)

    def connect(self, kind, number, encrypted):
        socket = self.context.socket(kind)
        socket.linger = 0
        if encrypted:
            socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
            socket.curve_serverkey = self.public.encode()
        socket.connect(f"ipc://{self.folder}/s-{number}")
        return socket

    def test_the_channels_are_encrypted(self):
        session = Session(key=b"secret")
        with self.start(curve_publickey=self.public, curve_secretkey=self.secret) as kernel:
            try:
                shell = self.connect(zmq.DEALER, 1, True)
                beat = self.connect(zmq.DEALER, 5, True)
                plain = [self.connect(zmq.DEALER, number, False) for number in (1, 4, 5)]
                for socket in plain:
                    session.send(socket, "kernel_info_request", {})
                beat.send(b"ping")
                self.assertTrue(beat.poll(TIMEOUT * 1000))
                session.send(shell, "kernel_info_request", {})
                self.assertTrue(shell.poll(TIMEOUT * 1000))
                _, reply = session.recv(shell)
                self.assertEqual(reply["content"]["implementation"], "tide")
                self.assertFalse(any(socket.poll(0) for socket in plain), "served in plain text")
            finally:
                kernel.terminate()

    def check_refused(self, *words, **fields):
        with self.start(**fields) as kernel:
            _, error = kernel.communicate(timeout=TIMEOUT)
        self.assertEqual((kernel.returncode, len(error.splitlines())), (1, 1), error)
        for word in words:
            self.assertIn(word, error)

    def test_keys_that_cannot_be_are_refused(self):
        other = zmq.curve_keypair()[0].decode()
        self.check_refused("curve_secretkey", curve_publickey=self.public)
        self.check_refused("curve_publickey", curve_secretkey=self.secret)
        self.check_refused("not a Curve key", curve_publickey="short", curve_secretkey=self.secret)
        self.check_refused("is not a string", curve_publickey=7, curve_secretkey=self.secret)
        self.check_refused("does not belong", curve_publickey=other, curve_secretkey=self.secret)


if __name__ == "__main__":
    unittest.main()
