"""A tide-kernel of one's own for a test: installed into a temporary prefix, started, asked, ended.

TIDE_KERNEL names the program under test. Where jupyter_client, or what else a test asks for with
need(), is not installed, the test is skipped and says so.
"""
import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

# For process_state.
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "repl"))

SKIPPED = 77  # what ctest takes for a test that was skipped


def need(*modules):
    """Skips the whole script unless Python has these modules."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        print("skipped: this python3 has no", " and no ".join(missing))
        raise SystemExit(SKIPPED)


need("jupyter_client")

KERNEL = os.environ["TIDE_KERNEL"]
TIMEOUT = 60

_folder = tempfile.mkdtemp(prefix="tide-kernel-test-")
unittest.addModuleCleanup(shutil.rmtree, _folder, ignore_errors=True)
# Nothing of the user's is read or written.
os.environ.update(
    JUPYTER_PATH=_folder + "/share/jupyter",
    JUPYTER_CONFIG_DIR=_folder + "/config",
    JUPYTER_DATA_DIR=_folder + "/data",
    JUPYTER_RUNTIME_DIR=_folder + "/runtime",
    XDG_STATE_HOME=_folder + "/state",
    XDG_CONFIG_HOME=_folder + "/settings",
)
subprocess.run([KERNEL, "--install", "--prefix", _folder], check=True, stdout=subprocess.DEVNULL)

from jupyter_client.manager import KernelManager  # noqa: E402  (after the environment)


class Answer:
    """What one request brought: the reply's content, and the iopub messages between busy and idle."""

    def __init__(self, reply, messages):
        self.message = reply
        self.reply = reply["content"]
        self.messages = messages
        self.types = [m["msg_type"] for m in messages]

    def text(self, stream="stdout"):
        return "".join(
            m["content"]["text"]
            for m in self.messages
            if m["msg_type"] == "stream" and m["content"]["name"] == stream
        )

    def contents(self, msg_type):
        return [m["content"] for m in self.messages if m["msg_type"] == msg_type]


def outputs(client, msg_id, timeout=TIMEOUT):
    """The iopub messages of one request, from busy to idle, without those two."""
    messages = []
    while True:
        message = client.get_iopub_msg(timeout=timeout)
        if message["parent_header"].get("msg_id") != msg_id:
            continue
        messages.append(message)
        if message["content"].get("execution_state") == "idle":
            assert messages[0]["content"].get("execution_state") == "busy", messages[0]
            return messages[1:-1]


def reply_to(client, msg_id, timeout=TIMEOUT, channel="shell"):
    get = client.get_shell_msg if channel == "shell" else client.get_control_msg
    while True:
        message = get(timeout=timeout)
        if message["parent_header"].get("msg_id") == msg_id:
            return message


def ask(client, msg_id, timeout=TIMEOUT):
    """Answer to a request that was just sent on shell."""
    reply = reply_to(client, msg_id, timeout)
    return Answer(reply, outputs(client, msg_id, timeout))


def send(client, msg_type, content, channel="shell"):
    """Sends any message; gives its id."""
    message = client.session.msg(msg_type, content)
    getattr(client, channel + "_channel").send(message)
    return message["header"]["msg_id"]


class Gate:
    """Holds a cell: `wait`, Lua at its beginning, loops until the gate is opened."""

    def __init__(self):
        self.path = tempfile.mktemp(dir=_folder)
        self.wait = f"do local held repeat held = io.open('{self.path}') until held held:close() end "

    def open(self):
        with open(self.path, "w"):
            pass


def start(interrupt_mode="message", **popen):
    """A started kernel: (manager, client, log file)."""
    manager = KernelManager(kernel_name="tide")
    manager.kernel_spec.interrupt_mode = interrupt_mode
    log = tempfile.TemporaryFile("w+", dir=_folder)
    manager.start_kernel(stderr=log, **popen)
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=TIMEOUT)
    return manager, client, log


def log_text(log):
    log.seek(0)
    return log.read()


def end(manager, client, log):
    """Shuts a kernel down; gives its exit code."""
    client.stop_channels()
    process = manager.provisioner.process
    if process.poll() is None:
        manager.shutdown_kernel()
    else:
        manager.cleanup_resources()
    log.close()
    return process.returncode


@contextlib.contextmanager
def kernel(**options):
    manager, client, log = start(**options)
    try:
        yield manager, client, log
    finally:
        end(manager, client, log)


class KernelCase(unittest.TestCase):
    """Tests that share one kernel; it must leave with 0 when they are done."""

    @classmethod
    def setUpClass(cls):
        cls.manager, cls.client, cls.log = start()

    @classmethod
    def tearDownClass(cls):
        text = log_text(cls.log)
        code = end(cls.manager, cls.client, cls.log)
        assert code == 0, f"the kernel left with {code}:\n{text}"

    def execute(self, code, timeout=TIMEOUT, **options):
        options.setdefault("allow_stdin", False)
        options.setdefault("stop_on_error", False)  # the next test's cell comes at once
        return ask(self.client, self.client.execute(code, **options), timeout)

    def request(self, msg_type, content):
        return ask(self.client, send(self.client, msg_type, content))
