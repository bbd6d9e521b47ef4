"""The command line: installing, connection files that cannot be, exit codes, one clear line each."""
import importlib
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

KERNEL = os.environ["TIDE_KERNEL"]
PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


def run(*arguments, **environment):
    return subprocess.run(
        [KERNEL, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def module(self, name):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            self.skipTest(f"this python3 lacks a module: {error}")


class ConnectionFile(Folder):
    def connection(self, **changes):
        fields = {
            "transport": "tcp",
            "ip": "127.0.0.1",
            "key": "secret",
            "signature_scheme": "hmac-sha256",
            **dict(zip(PORTS, free_ports(5))),
            **changes,
        }
        return {name: value for name, value in fields.items() if value is not ...}

    def check_refused(self, contents, *words):
        path = self.path("connection.json")
        with open(path, "w") as file:
            file.write(contents if isinstance(contents, str) else json.dumps(contents))
        result = run("-f", path)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        return result

    def test_missing_file(self):
        result = run("-f", self.path("none.json"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("none.json: No such file", result.stderr)

    def test_a_folder(self):
        result = run("-f", self.folder)
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (1, 1))

    def test_not_json(self):
        for text in ("", "{", "nonsense", "[1, 2", "\0\1\2"):
            self.check_refused(text, "connection.json", "not JSON")

    def test_not_an_object(self):
        self.check_refused("[]", "connection.json", "not a JSON object")

    def test_each_missing_field_is_named(self):
        for field in ("transport", "ip", "key", "signature_scheme", *PORTS):
            with self.subTest(field=field):
                self.check_refused(self.connection(**{field: ...}), "connection.json", f'"{field}"')

    def test_each_field_of_a_wrong_type_is_named(self):
        for field in ("transport", "ip", "key", "signature_scheme"):
            self.check_refused(self.connection(**{field: 7}), f'"{field}" is not a string')
        for field in PORTS:
            for value in ("7", 0, -1, 65536, 1.5, None):
                self.check_refused(self.connection(**{field: value}), f'"{field}" is not a port')

    def test_unknown_signature_scheme(self):
        self.check_refused(self.connection(signature_scheme="hmac-md5"), "hmac-md5", "hmac-sha256")

    def test_unknown_transport(self):
        self.check_refused(self.connection(transport="udp"), '"udp"')

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.check_refused(
                self.connection(iopub_port=port), "iopub", str(port), "Address already in use"
            )

    def test_an_address_that_is_not_ours(self):
        self.check_refused(self.connection(ip="192.0.2.1"), "shell", "192.0.2.1")

    def test_ipc_serves_and_a_signal_ends(self):
        zmq = self.module("zmq")
        connection = self.connection(
            transport="ipc", ip=self.path("s"), **{port: i + 1 for i, port in enumerate(PORTS)}
        )
        path = self.path("connection.json")
        with open(path, "w") as file:
            json.dump(connection, file)
        kernel = subprocess.Popen([KERNEL, "-f", path])
        with kernel, zmq.Context() as context, context.socket(zmq.REQ) as beat:
            beat.linger = 0
            beat.connect(f"ipc://{self.path('s')}-{connection['hb_port']}")
            beat.send(b"ping")
            answered = beat.poll(60000)
            kernel.terminate()
            self.assertTrue(answered)
            self.assertEqual(kernel.wait(60), -signal.SIGTERM)


class Usage(unittest.TestCase):
    def test_wrong_calls_exit_with_2_and_one_line(self):
        for arguments in (
            [],
            ["-f"],
            ["--prefix"],
            ["--no-such-option"],
            ["connection.json"],
            ["-f", "a.json", "-f", "b.json"],
            ["--install", "--uninstall"],
            ["--install", "--user", "--prefix", "x"],
            ["--install", "--prefix"],
            ["--user"],
            ["-f", "a.json", "--user"],
        ):
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stdout, "")
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn("--help", result.stderr)

    def test_what_is_a_front_end_s_business_is_passed_over(self):
        """jupyter run and jupyter console hand their own arguments on."""
        for more in (["file.lua"], ["--debug"], ["--Session.key=x", "a", "b"], ["--log-level=10", "-y"]):
            for file in (["-f", "none.json"], ["--f=none.json"], ["--f", "none.json"]):
                for arguments in ([*file, *more], [*more, *file]):
                    with self.subTest(arguments=arguments):
                        result = run(*arguments)
                        self.assertEqual(result.returncode, 1)
                        self.assertIn("none.json: No such file", result.stderr)

    def test_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^tide-kernel \d+\.\d+\.\d+\n$")

    def test_help(self):
        result = run("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for word in ("-f", "--install", "--uninstall", "--user", "--prefix", "--sys-prefix"):
            self.assertIn(word, result.stdout)


FILES = ["kernel.json", "logo-32x32.png", "logo-64x64.png", "logo-svg.svg"]


class Install(Folder):
    def check_installed(self, folder):
        self.assertEqual(sorted(os.listdir(folder)), FILES)
        with open(os.path.join(folder, "kernel.json")) as file:
            spec = json.load(file)
        self.assertEqual(spec["argv"], [os.path.realpath(KERNEL), "-f", "{connection_file}"])
        self.assertEqual(spec["display_name"], "Tide (Lua 5.4)")
        self.assertEqual(spec["language"], "lua")
        self.assertEqual(spec["interrupt_mode"], "message")
        self.assertEqual(spec["kernel_protocol_version"], "5.5")
        self.assertEqual(spec["metadata"]["supported_encryption"], "curve")
        for size in (32, 64):
            with open(os.path.join(folder, f"logo-{size}x{size}.png"), "rb") as file:
                png = file.read()
            self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(png[16:24], size.to_bytes(4, "big") * 2)
            self.assertEqual(png[-8:-4], b"IEND")

    def test_into_a_prefix_and_out_again(self):
        result = run("--install", "--prefix", self.path("p"))
        folder = self.path("p/share/jupyter/kernels/tide")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, f"installed {folder}\n")
        self.check_installed(folder)
        self.assertEqual(run("--install", "--prefix", self.path("p")).returncode, 0)
        self.check_installed(folder)
        result = run("--uninstall", "--prefix", self.path("p"))
        self.assertEqual((result.returncode, result.stdout), (0, f"removed {folder}\n"))
        self.assertFalse(os.path.exists(folder))
        result = run("--uninstall", "--prefix", self.path("p"))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("No such file", result.stderr)

    def test_for_the_user(self):
        none = {"JUPYTER_DATA_DIR": "", "XDG_DATA_HOME": "", "HOME": self.path("home")}
        cases = {
            "a/kernels/tide": {**none, "JUPYTER_DATA_DIR": self.path("a"), "XDG_DATA_HOME": self.path("b")},
            "b/jupyter/kernels/tide": {**none, "XDG_DATA_HOME": self.path("b")},
            "home/.local/share/jupyter/kernels/tide": none,
        }
        for folder, environment in cases.items():
            with self.subTest(folder=folder):
                self.assertEqual(run("--install", "--user", **environment).returncode, 0)
                self.check_installed(self.path(folder))
                self.assertEqual(run("--uninstall", "--user", **environment).returncode, 0)
                self.assertFalse(os.path.exists(self.path(folder)))

    def test_into_the_environment_in_use(self):
        environment = {"VIRTUAL_ENV": self.path("v"), "CONDA_PREFIX": ""}
        self.assertEqual(run("--install", "--sys-prefix", **environment).returncode, 0)
        self.check_installed(self.path("v/share/jupyter/kernels/tide"))
        result = run("--install", "--sys-prefix", VIRTUAL_ENV="", CONDA_PREFIX="")
        self.assertEqual(result.returncode, 1)
        self.assertIn("VIRTUAL_ENV", result.stderr)

    def test_what_others_put_there_stays(self):
        run("--install", "--prefix", self.folder)
        mine = self.path("share/jupyter/kernels/tide/mine.js")
        open(mine, "w").close()
        self.assertEqual(run("--uninstall", "--prefix", self.folder).returncode, 0)
        self.assertEqual(os.listdir(os.path.dirname(mine)), ["mine.js"])

    def test_a_prefix_that_is_a_file(self):
        open(self.path("file"), "w").close()
        result = run("--install", "--prefix", self.path("file"))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("Not a directory", result.stderr)

    def test_an_error_leaves_the_old_files_whole(self):
        run("--install", "--prefix", self.folder)
        folder = self.path("share/jupyter/kernels/tide")
        before = {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in FILES}
        # The last file to be written cannot be: a folder is in its way.
        os.mkdir(os.path.join(folder, "kernel.json.new"))
        result = run("--install", "--prefix", self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        os.rmdir(os.path.join(folder, "kernel.json.new"))
        self.assertEqual(before, {n: os.stat(os.path.join(folder, n)).st_mtime_ns for n in os.listdir(folder)})

    def test_a_full_disk_leaves_nothing(self):
        limit = f"ulimit -f 0; exec '{KERNEL}' --install --prefix '{self.folder}'"
        result = subprocess.run(["bash", "-c", "trap '' XFSZ; " + limit], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("File too large", result.stderr)
        self.assertFalse(os.path.exists(self.path("share/jupyter/kernels/tide")))

    def test_jupyter_finds_it(self):
        kernelspec = self.module("jupyter_client.kernelspec")
        run("--install", "--prefix", self.folder)
        manager = kernelspec.KernelSpecManager(kernel_dirs=[self.path("share/jupyter/kernels")])
        spec = manager.get_kernel_spec("tide")
        self.assertEqual((spec.language, spec.interrupt_mode), ("lua", "message"))
        self.assertTrue(os.stat(spec.argv[0]).st_mode & stat.S_IXUSR)


if __name__ == "__main__":
    unittest.main()
