"""What newer versions of the protocol ask: welcome, usage, subshells, handshake, payloads."""
import contextlib
import glob
import json
import os
import subprocess
import tempfile
import unittest

from harness import KERNEL, TIMEOUT, KernelCase, reply_to, send

import zmq  # jupyter_client brings it
from jupyter_client.session import Session


class Welcome(KernelCase):
    @contextlib.contextmanager
    def subscriber(self, *topics):
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            socket.linger = 0
            for topic in topics:
                socket.subscribe(topic)
            socket.connect(f"tcp://127.0.0.1:{self.client.iopub_port}")
            yield socket

    def take(self, socket):
        self.assertTrue(socket.poll(TIMEOUT * 1000), "no message")
        session = Session(key=self.client.session.key)  # of its own: the client sees the same messages
        identities, parts = session.feed_identities(socket.recv_multipart())
        return identities, session.deserialize(parts)

    def check_welcome(self, socket, topic=b""):
        identities, message = self.take(socket)
        self.assertEqual(message["msg_type"], "iopub_welcome")
        self.assertEqual(message["content"], {"subscription": topic.decode()})
        self.assertEqual(message["parent_header"], {})
        self.assertEqual(identities, [topic])

    def test_each_subscriber_is_welcomed(self):
        with self.subscriber(b"") as first:
            self.check_welcome(first)
            with self.subscriber(b"") as second:
                self.check_welcome(second)

    def test_by_its_topic(self):
        with self.subscriber(b"kernel.") as socket:
            self.check_welcome(socket, b"kernel.")
            self.execute("1")
            identities, _ = self.take(socket)
            self.assertTrue(identities[0].startswith(b"kernel."))

    def test_while_a_cell_computes(self):
        msg_id = self.client.execute("print('on') while true do end", stop_on_error=False)
        while self.client.get_iopub_msg(timeout=TIMEOUT)["msg_type"] != "stream":
            pass
        with self.subscriber(b"") as socket:
            self.check_welcome(socket)
        self.manager.interrupt_kernel()
        self.assertEqual(reply_to(self.client, msg_id)["content"]["ename"], "Interrupt")

    def test_many_who_come_and_go(self):
        for _ in range(50):
            with self.subscriber(b"") as socket:
                self.check_welcome(socket)


class Control(KernelCase):
    def control(self, msg_type, content=None):
        msg_id = send(self.client, msg_type, content or {}, "control")
        reply = reply_to(self.client, msg_id, channel="control")
        self.assertEqual(reply["msg_type"], msg_type.replace("_request", "_reply"))
        return reply["content"]

    def test_usage(self):
        first = self.control("usage_request")
        self.execute("local x = 0 for i = 1, 30000000 do x = x + i end")
        usage = self.control("usage_request")
        self.assertEqual(usage["pid"], self.manager.provisioner.process.pid)
        self.assertTrue(usage["hostname"])
        self.assertGreater(usage["kernel_memory"], 1 << 20)
        self.assertEqual(first["kernel_cpu"], 0)
        self.assertGreater(usage["kernel_cpu"], 0)
        self.assertEqual(usage["cpu_count"], os.sysconf("SC_NPROCESSORS_ONLN"))
        self.assertTrue(0 <= usage["host_cpu_percent"] <= 100)
        memory = usage["host_virtual_memory"]
        self.assertGreater(memory["total"], memory["available"])
        self.assertTrue(0 < memory["percent"] < 100)

    def test_usage_counts_children(self):
        alone = self.control("usage_request")["kernel_memory"]
        msg_id = self.client.execute("os.execute([[exec python3 -c 'x = b\"x\" * (200 << 20); print(1, flush=True); input()' </dev/zero]])")
        while self.client.get_iopub_msg(timeout=TIMEOUT)["msg_type"] != "stream":
            pass
        self.assertGreater(self.control("usage_request")["kernel_memory"], alone + (150 << 20))
        self.manager.interrupt_kernel()
        reply_to(self.client, msg_id)

    def test_there_are_no_subshells_and_it_says_so(self):
        info = self.control("kernel_info_request")
        self.assertEqual(info["protocol_version"], "5.5")
        self.assertNotIn("kernel subshells", info["supported_features"])
        self.assertEqual(self.control("list_subshell_request"), {"status": "ok", "subshell_id": []})
        for request in ("create_subshell_request", "delete_subshell_request"):
            reply = self.control(request, {"subshell_id": "x"})
            self.assertEqual(reply["status"], "error")
            self.assertIn("no subshells", reply["evalue"])

    def test_a_cell_for_a_subshell_is_refused(self):
        message = self.client.session.msg("execute_request", {"code": "ran = true"})
        message["header"]["subshell_id"] = "x"
        self.client.shell_channel.send(message)
        reply = reply_to(self.client, message["header"]["msg_id"])["content"]
        self.assertIn("no subshells", reply["evalue"])
        self.assertEqual(self.execute("print(ran)").text(), "nil\n")


class Payload(KernelCase):
    def test_set_next_input(self):
        payload = self.execute("tide.set_next_input('x = \"é\"\\n')").reply["payload"]
        self.assertEqual(payload, [{"source": "set_next_input", "text": 'x = "é"\n', "replace": False}])
        self.assertEqual(self.execute("1").reply["payload"], [])

    def test_set_next_input_in_place(self):
        payload = self.execute("tide.set_next_input('a') tide.set_next_input('b', {replace = true})").reply["payload"]
        self.assertEqual(payload, [{"source": "set_next_input", "text": "b", "replace": True}])

    def test_with_an_error(self):
        reply = self.execute("tide.set_next_input('again') error('no')").reply
        self.assertEqual([p["text"] for p in reply["payload"]], ["again"])

    def test_wrong_arguments(self):
        self.assertIn("set_next_input", self.execute("tide.set_next_input()").reply["evalue"])


class Outputs(KernelCase):
    def test_history_gives_the_values_that_were_shown(self):
        for code in ("6 * 7", "x = 1", "'é'", "error('no')", "('y'):rep(1000000)"):
            self.execute(code)
        content = {"hist_access_type": "range", "session": 0, "start": 1, "output": True, "raw": True}
        history = self.request("history_request", content).reply["history"]
        self.assertEqual([h[2] for h in history[:4]], [["6 * 7", "42"], ["x = 1", None], ["'é'", '"é"'], ["error('no')", None]])
        self.assertTrue(60000 < len(history[4][2][1]) < 70000)


class Handshake(unittest.TestCase):
    """The kernel as a launcher sees it that gives it a registration file."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.context = zmq.Context()
        self.addCleanup(self.context.destroy, 0)
        self.session = Session(key=b"secret")

    def launch(self, kind, **changes):
        self.socket = self.context.socket(kind)
        port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        fields = {
            "transport": "tcp",
            "ip": "127.0.0.1",
            "registration_port": port,
            "key": "secret",
            "signature_scheme": "hmac-sha256",
            **changes,
        }
        path = os.path.join(self.folder, "registration.json")
        with open(path, "w") as file:
            json.dump(fields, file)
        environment = {**os.environ, "JUPYTER_RUNTIME_DIR": self.folder + "/deep/runtime"}
        return subprocess.Popen([KERNEL, "-f", path], env=environment, stderr=subprocess.PIPE, text=True)

    def receive(self):
        self.assertTrue(self.socket.poll(TIMEOUT * 1000), "the kernel does not report")
        identities, parts = self.session.feed_identities(self.socket.recv_multipart())
        message = self.session.deserialize(parts)
        self.assertEqual(message["msg_type"], "handshake_request")
        return identities, message

    def check_serves(self, kind):
        with self.launch(kind) as kernel:
            try:
                identities, request = self.receive()
                ports = request["content"]
                self.assertEqual(len(set(ports.values())), 5)
                self.session.send(self.socket, "handshake_reply", {"status": "ok"}, parent=request, ident=identities)
                shell = self.context.socket(zmq.DEALER)
                shell.connect(f"tcp://127.0.0.1:{ports['shell_port']}")
                self.session.send(shell, "kernel_info_request", {})
                self.assertTrue(shell.poll(TIMEOUT * 1000), "the kernel does not serve")
                (path,) = glob.glob(self.folder + "/deep/runtime/kernel-*.json")
                self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
                with open(path) as file:
                    written = json.load(file)
                self.assertEqual({**written, **ports, "key": "secret"}, written)
                self.session.send(shell, "shutdown_request", {"restart": False})
                self.assertEqual(kernel.wait(TIMEOUT), 0)
                self.assertFalse(os.path.exists(path))
            finally:
                kernel.kill()

    def test_a_launcher_with_a_router(self):
        self.check_serves(zmq.ROUTER)

    def test_a_launcher_with_a_rep(self):
        self.check_serves(zmq.REP)

    def test_a_launcher_that_refuses(self):
        with self.launch(zmq.ROUTER) as kernel:
            identities, request = self.receive()
            self.session.send(self.socket, "handshake_reply", {"status": "error"}, parent=request, ident=identities)
            _, error = kernel.communicate(timeout=TIMEOUT)
            self.assertEqual(kernel.returncode, 1)
            self.assertIn("does not agree", error)
        self.assertEqual(glob.glob(self.folder + "/deep/runtime/*"), [])

    def test_a_launcher_that_does_not_answer(self):
        with self.launch(zmq.ROUTER) as kernel:
            self.receive()
            _, error = kernel.communicate(timeout=TIMEOUT)
            self.assertEqual(kernel.returncode, 1)
            self.assertIn("does not answer", error)

    def test_a_registration_over_ipc_is_refused(self):
        with self.launch(zmq.ROUTER, transport="ipc") as kernel:
            _, error = kernel.communicate(timeout=TIMEOUT)
            self.assertEqual((kernel.returncode, len(error.splitlines())), (1, 1))


if __name__ == "__main__":
    unittest.main()
