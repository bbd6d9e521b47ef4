"""notebook.py: a tide-kernel whose cells are interrupted, through jupyter_client."""
import contextlib
import os
import subprocess
import tempfile
import time

PATIENCE = 120


class Notebook:
    """One kernel: cells are begun, interrupted by message, and checked."""

    def __init__(self, program, home, prelude):
        os.environ.update(JUPYTER_PATH=home + "/share/jupyter", JUPYTER_RUNTIME_DIR=home + "/runtime",
                          JUPYTER_DATA_DIR=home + "/data", XDG_STATE_HOME=home + "/state")
        subprocess.run([program, "--install", "--prefix", home], check=True, stdout=subprocess.DEVNULL)
        from jupyter_client.manager import KernelManager
        self.manager = KernelManager(kernel_name="tide")
        self.log = tempfile.TemporaryFile()
        self.manager.start_kernel(stderr=self.log, cwd=home)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self.value(prelude)

    def reply(self, msg_id, patience):
        """The reply to a cell; TimeoutError when it does not come."""
        end = time.monotonic() + patience
        while True:
            self.drain()
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no reply from the kernel after {patience} s")
            with contextlib.suppress(Exception):  # Empty, of a queue that jupyter_client hides
                message = self.client.get_shell_msg(timeout=min(left, 0.02))
                if message["parent_header"].get("msg_id") == msg_id:
                    return message["content"]

    def drain(self):
        """Takes what cells print off the socket."""
        with contextlib.suppress(Exception):
            while True:
                self.client.get_iopub_msg(timeout=0)

    def value(self, code):
        """What an expression is, as text; empty where a cell is no expression."""
        msg_id = self.client.execute("", user_expressions={"value": code}) if code.endswith(")") else \
            self.client.execute(code)
        content = self.reply(msg_id, PATIENCE)
        if content["status"] != "ok":
            return f"{content.get('ename')}: {content.get('evalue')}"
        value = content["user_expressions"].get("value", {})
        return value.get("data", {}).get("text/plain", str(value or ""))

    def interrupt(self, kind, delay, limit):
        """Seconds until the reply; None when the cell had ended before."""
        _, setup, work = kind
        if setup:
            self.value(setup + "\n")
        msg_id = self.client.execute(work, allow_stdin=False)
        with contextlib.suppress(TimeoutError):
            self.reply(msg_id, delay)
            return None
        began = time.monotonic()
        self.manager.interrupt_kernel()
        self.reply(msg_id, limit)
        return time.monotonic() - began

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.log.close()
