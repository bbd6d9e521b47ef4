"""test_networks.py: networks.lua runs every network in all of its ways, tiny, so that a function that got another name is seen; and
networks_table.py puts what it says into a table. Nobody looks at a clock."""
import json
import math
import os
import subprocess
import sys
import unittest

BENCH = os.path.join(os.environ["TIDE_SOURCE"], "tests", "bench")
TIDE = os.environ["TIDE"]
sys.path.insert(0, BENCH)

import networks_table  # noqa: E402

IMAGES = {"tutorial", "resnet18", "resnet50", "resnet101", "diffusion"}
NO_BYTES = {"diffusion", "tacotron2", "waveglow", "dqn"}
LEARN = {"tutorial": "clothes", "resnet18": "clothes", "tanh_rnn": "clothes", "letters": "text", "gru_letters": "text", "gpt": "text",
         "vae": "clothes", "diffusion": "clothes"}
THERE = {"clothes": os.path.isdir("/usr/share/datasets/fashion-mnist"), "text": os.path.exists("/usr/share/common-licenses/GPL-3")}


def ways(network, what):
    return {way for way in networks_table.WAYS if (network in IMAGES or "channels_last" not in way)
            and (way != "int8" or what != "train" and network not in NO_BYTES)}


def run(command, *arguments):
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, "TIDE_BENCH_TINY": "1", "TIDE": TIDE, "PYTHON": "/bin/false"})


class Networks(unittest.TestCase):
    def test_every_network_runs_in_all_its_ways(self):
        wanted = {(network, what) for network in networks_table.NETWORKS for what in ("train", "run")}
        wanted |= {(network, "learn") for network, data in LEARN.items() if THERE[data]}
        result = run([TIDE, os.path.join(BENCH, "networks.lua")], *(f"{network}_{what}_" for network, what in sorted(wanted)))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        facts = {}
        for line in map(json.loads, result.stdout.splitlines()):
            facts[line["case"]] = {**facts.get(line["case"], {}), **line}
        self.assertEqual(sorted(facts), sorted(f"{network}_{what}_{way}" for network, what in wanted for way in ways(network, what)))
        for case, fact in facts.items():
            numbers = [fact["score"]] if "_learn_" in case else [fact["median_s"], fact["peak_mb"]]
            self.assertTrue(all(math.isfinite(n) for n in numbers), case)

    def test_the_table_has_a_row_for_each_case(self):
        result = run([sys.executable, os.path.join(BENCH, "networks_table.py"), "--rounds", "1"], "dqn_run")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"\Anetwork .*1 threads\n(dqn +run +(f32|amp|scripted) .*\n){3}\Z")


if __name__ == "__main__":
    unittest.main()
