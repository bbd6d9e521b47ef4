"""A training run that saves a checkpoint at each step and is killed at random moments: what is left loads, is
of one step, and training goes on from it. TIDE_KILLS says how often (40).

usage: TIDE=path/to/tide test_checkpoint.py
"""
import os
import random
import re
import subprocess
import tempfile
import unittest

TIDE = os.environ["TIDE"]
KILLS = int(os.environ.get("TIDE_KILLS", "40"))
TRAIN = """
local path = {path!r}
tide.set_num_threads(1)
local model = tide.nn.Linear(200, 100)
local optimizer = tide.optim.Adam(model:parameters(), {{lr = 0.01}})
local step, file = 0, io.open(path)
if file then
    file:close()
    local state = tide.load(path)
    model:load_state_dict(state.model)
    optimizer:load_state_dict(state.optimizer)
    step = state.step
end
while true do
    optimizer:zero_grad()
    model(tide.full({{4, 200}}, step % 7 + 0.5)):pow(2):mean():backward()
    optimizer:step()
    step = step + 1
    tide.save({{model = model:state_dict(), optimizer = optimizer:state_dict(), step = step,
        ends = {{tide.full({{1000}}, step), tide.full({{1000}}, step, {{dtype = tide.int64}})}}}}, path)
    io.write(step, "\\n") io.flush()
end
"""
CHECK = """
local state = tide.load({path!r})
assert(state.ends[1]:eq(state.step):all():item() and state.ends[2]:eq(state.step):all():item())
assert(state.optimizer.state[1].step == state.step)
print(state.step)
"""


class Checkpoint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "run.safetensors")

    def train_until_killed(self, steps, delay):
        """The last step that was announced, after a kill some microseconds behind the given number of steps."""
        process = subprocess.Popen([TIDE, "-e", TRAIN.format(path=self.path)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        last = 0
        for _ in range(steps):
            line = process.stdout.readline()
            if not line:
                self.fail(process.communicate(timeout=120)[1])
            last = int(line)
        for _ in range(delay):
            pass
        process.kill()
        with process: # not communicate(), which doesn't know of lines that readline() has read ahead
            rest = process.stdout.read()
        lines = [int(line) for line in re.findall(r"(\d+)\n", rest)]
        return lines[-1] if lines else last

    def test_a_kill_leaves_a_whole_checkpoint(self):
        rng, before = random.Random(), 0
        for kill in range(KILLS):
            announced = self.train_until_killed(rng.randint(1, 5), rng.randint(0, 400000))
            done = subprocess.run([TIDE, "-e", CHECK.format(path=self.path)], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), f"kill {kill}")
            step = int(done.stdout)
            self.assertGreater(step, before)
            self.assertIn(step, (announced, announced + 1))
            self.assertLessEqual(len(os.listdir(self.folder)), 2, "drafts pile up")
            before = step

    def test_a_place_that_can_not_be_written_keeps_the_old_file(self):
        nobody = {}
        if os.geteuid() == 0:  # who may write anywhere
            nobody = {"user": 65534, "group": 65534, "extra_groups": []}
            os.chown(self.folder, 65534, 65534)
        save = "tide.save({1}, " + repr(self.path) + ")"
        try:
            subprocess.run([TIDE, "-e", save], check=True, timeout=120, **nobody)
        except PermissionError:
            self.skipTest("only root may run the program here")
        for path, mode in ((self.folder, 0o500), (self.path, 0o400)):
            before = os.stat(path).st_mode
            os.chmod(path, mode)
            done = subprocess.run([TIDE, "-e", save], capture_output=True, text=True, timeout=120, **nobody)
            os.chmod(path, before)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"save: cannot write '{self.path}': Permission denied", done.stderr)
            self.assertEqual(os.listdir(self.folder), ["run.safetensors"])

    def test_a_disk_that_is_full_keeps_the_old_file(self):
        save = "tide.save({tide.ones(%d)}, " + repr(self.path) + ")"
        subprocess.run([TIDE, "-e", save % 3], check=True, timeout=120)
        limited = f"trap '' XFSZ; ulimit -f 64; exec \"$TIDE\" -e \"{save % 1000000}\""
        done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"save: cannot write '{self.path}': File too large", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["run.safetensors"])


if __name__ == "__main__":
    unittest.main()
