"""read_csv from what is no file: pipes, process substitution, fifos that wait for a writer, Ctrl-C.

usage: TIDE=path/to/tide test_csv.py
"""
import os
import signal
import subprocess
import tempfile
import unittest

TIDE = os.environ["TIDE"]
READ = "x = tide.io.read_csv({path!r}) print(x:sum():item())"


class Csv(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.fifo = os.path.join(self.folder.name, "fifo")
        os.mkfifo(self.fifo)

    def start(self, path, **options):
        return subprocess.Popen([TIDE, "-e", READ.format(path=path)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def finish(self, process, text=None):
        out, err = process.communicate(text, timeout=120)
        return process.returncode, out, err

    def test_standard_input(self):
        process = self.start("/dev/stdin", stdin=subprocess.PIPE)
        self.assertEqual(self.finish(process, "1,2\n3,4\n"), (0, "10.0\n", ""))

    def test_an_empty_pipe_holds_no_rows(self):
        code, _, err = self.finish(self.start("/dev/stdin", stdin=subprocess.PIPE), "")
        self.assertEqual(code, 1)
        self.assertIn("'/dev/stdin' holds no rows", err)

    def test_process_substitution(self):
        command = f'exec "$TIDE" -e "{READ.format(path="/dev/fd/63")}" 63< <(echo 1,2; sleep 0.1; echo 3,4)'
        done = subprocess.run(["bash", "-c", command], text=True, capture_output=True, timeout=120)
        self.assertEqual((done.stdout, done.stderr), ("10.0\n", ""))

    def test_a_fifo_is_read_to_its_end_whenever_the_writer_comes(self):
        process = self.start(self.fifo)
        with open(self.fifo, "w") as writer:  # waits for the reader, who has waited for us
            for _ in range(50):
                writer.write("1,2\n" * 1000)
                writer.flush()
        self.assertEqual(self.finish(process), (0, "150000.0\n", ""))

    def test_an_interrupt_ends_the_waiting(self):
        process = self.start(self.fifo)
        with open(self.fifo, "w") as writer:
            writer.write("1,2\n")
            writer.flush()
            process.send_signal(signal.SIGINT)
            code, out, err = self.finish(process)
        self.assertEqual(out, "")
        self.assertIn("interrupted", err)
        self.assertNotEqual(code, 0)


if __name__ == "__main__":
    unittest.main()
