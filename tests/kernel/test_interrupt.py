"""A kernel that computes is still in hand: interrupt, shutdown, restart, and its parent's death."""
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from harness import TIMEOUT, ask, kernel, outputs, reply_to, send
from process_state import until_it_has_computed

LOOP = "print('in') while true do end"


def begin(client, code, **options):
    """Starts a cell that prints, and waits until it has."""
    msg_id = client.execute(code, **options)
    while True:
        message = client.get_iopub_msg(timeout=TIMEOUT)
        if message["msg_type"] == "stream" and message["parent_header"]["msg_id"] == msg_id:
            return msg_id


class Interrupt(unittest.TestCase):
    def check_interrupts(self, mode, code, **options):
        with kernel(interrupt_mode=mode) as (manager, client, _):
            for _ in range(3):
                msg_id = begin(client, code, stop_on_error=False, **options)
                manager.interrupt_kernel()
                reply = reply_to(client, msg_id)["content"]
                self.assertEqual((reply["status"], reply["ename"]), ("error", "Interrupt"))
                answer = ask(client, client.execute("return 'alive'"))
                self.assertEqual(answer.reply["status"], "ok")

    def test_a_loop_by_message(self):
        self.check_interrupts("message", LOOP)

    def test_a_loop_by_signal(self):
        self.check_interrupts("signal", LOOP)

    def test_a_loop_that_catches_errors(self):
        self.check_interrupts("message", "print('in') while true do pcall(error, 'x') end")

    def test_a_child_process_by_message(self):
        self.check_interrupts("message", "print('in') os.execute('sleep 300') while true do end")

    def test_a_child_process_by_signal(self):
        self.check_interrupts("signal", "print('in') io.popen('sleep 300'):read() while true do end")

    def test_a_question_by_message(self):
        self.check_interrupts("message", "print('in') io.read() while true do end", allow_stdin=True)

    def test_a_question_by_signal(self):
        self.check_interrupts("signal", "print('in') io.read() while true do end", allow_stdin=True)

    def check_nothing_is_stopped(self, client):
        answer = ask(client, client.execute("for i = 1, 1000000 do end return 5"))
        self.assertEqual(answer.reply["status"], "ok")

    def test_an_interrupt_message_between_cells_stops_nothing(self):
        with kernel() as (_, client, _):
            for _ in range(5):
                msg_id = send(client, "interrupt_request", {}, "control")
                reply = reply_to(client, msg_id, channel="control")
                self.assertEqual(reply["content"], {"status": "ok"})
            self.check_nothing_is_stopped(client)

    def test_an_interrupt_signal_between_cells_stops_nothing(self):
        with kernel(interrupt_mode="signal") as (manager, client, _):
            for _ in range(5):
                manager.interrupt_kernel()
            ask(client, client.kernel_info())  # the signals have been delivered
            self.check_nothing_is_stopped(client)

    def check_ends_at_the_third(self, mode):
        with kernel(interrupt_mode=mode) as (manager, client, _):
            msg_id = begin(client, "print('in') local x = ('a'):rep(40):find(('a*'):rep(30) .. 'b')")
            until_it_has_computed(manager.provisioner.process.pid)  # find has been called
            sent = 0
            while manager.provisioner.process.poll() is None and sent < 150:
                manager.interrupt_kernel()  # of two signals that find it asleep one arrives
                sent += 1
                time.sleep(0.4)
            self.assertEqual(manager.provisioner.process.wait(TIMEOUT), 1)
            self.assertGreaterEqual(sent, 3)
            said, error = "", None
            while error is None:
                message = client.get_iopub_msg(timeout=TIMEOUT)
                if message["parent_header"].get("msg_id") != msg_id:
                    continue
                said += message["content"].get("text", "")
                error = message["content"] if message["msg_type"] == "error" else None
            self.assertIn("waits for string.find (", said)
            self.assertIn("one more interrupt ends the kernel", said)
            self.assertEqual(error["ename"], "Interrupt")
            self.assertIn("the kernel ends", error["evalue"])

    def test_what_nothing_stops_ends_the_kernel_by_message(self):
        self.check_ends_at_the_third("message")

    def test_what_nothing_stops_ends_the_kernel_by_signal(self):
        self.check_ends_at_the_third("signal")

    def test_queued_cells_are_aborted(self):
        with kernel() as (manager, client, _):
            first = begin(client, LOOP)
            second = client.execute("return 1")
            time.sleep(0.2)
            manager.interrupt_kernel()
            self.assertEqual(reply_to(client, first)["content"]["ename"], "Interrupt")
            self.assertEqual(reply_to(client, second)["content"]["ename"], "Aborted")

    def test_control_answers_while_a_cell_computes(self):
        with kernel() as (manager, client, _):
            begin(client, LOOP)
            msg_id = send(client, "kernel_info_request", {}, "control")
            reply = reply_to(client, msg_id, channel="control")
            self.assertEqual(reply["content"]["status"], "ok")
            self.assertTrue(client.hb_channel.is_beating())
            manager.interrupt_kernel()


class Shutdown(unittest.TestCase):
    def check_shutdown(self, channel, restart, code=None):
        with kernel() as (manager, client, _):
            if code:
                begin(client, code)
            msg_id = send(client, "shutdown_request", {"restart": restart}, channel)
            reply = reply_to(client, msg_id, channel=channel)
            self.assertEqual(reply["msg_type"], "shutdown_reply")
            self.assertEqual(reply["content"], {"status": "ok", "restart": restart})
            self.assertEqual(manager.provisioner.process.wait(TIMEOUT), 0)
            said = [m["msg_type"] for m in outputs(client, msg_id)]
            self.assertIn("shutdown_reply", said)

    def test_on_control(self):
        self.check_shutdown("control", False)

    def test_on_control_with_restart(self):
        self.check_shutdown("control", True)

    def test_on_shell(self):
        self.check_shutdown("shell", False)

    def test_while_a_cell_computes(self):
        self.check_shutdown("control", False, LOOP)

    def test_while_a_cell_cannot_be_stopped(self):
        self.check_shutdown("control", False, "print('in') os.execute('trap \"\" INT; sleep 20')")

    def test_restart_begins_anew(self):
        with kernel() as (manager, client, _):
            ask(client, client.execute("kept = 1"))
            manager.restart_kernel()
            client.wait_for_ready(timeout=TIMEOUT)
            self.assertEqual(ask(client, client.execute("print(kept)")).text(), "nil\n")


class Parent(unittest.TestCase):
    """The kernel leaves when the process that started it dies, whatever it is doing."""

    SCRIPT = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import harness, os
        manager, client, log = harness.start()
        if sys.argv[2]:
            client.execute(sys.argv[2])
        print(manager.provisioner.process.pid, flush=True)
        sys.stdin.read()
        """
    )

    def check_death(self, code):
        folder = os.path.dirname(os.path.abspath(__file__))
        temporary = tempfile.TemporaryDirectory()  # the script is killed and leaves its files
        self.addCleanup(temporary.cleanup)
        parent = subprocess.Popen(
            [sys.executable, "-B", "-c", self.SCRIPT, folder, code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": temporary.name},
        )
        with parent:
            pid = int(parent.stdout.readline())
            watch = os.pidfd_open(pid)
            parent.kill()
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        left = poll.poll(TIMEOUT * 1000)
        os.close(watch)
        if not left:
            os.kill(pid, signal.SIGKILL)
        self.assertTrue(left, "the kernel outlived its parent")

    def test_idle(self):
        self.check_death("")

    def test_computing(self):
        self.check_death("while true do end")


if __name__ == "__main__":
    unittest.main()
