"""README.md does what it says: the session in it is typed and must answer with the very text that stands
there; blocks marked `lua` run; code in the running text gives a value."""
import os
import re
import subprocess
import tempfile
import unittest

TIDE = os.environ["TIDE"]
README = os.path.join(os.environ["TIDE_SOURCE"], "README.md")
PROMPT = "tide> "


def blocks(text):
    """(language, text) of every fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def spans(text):
    """Code in the running text, without the fenced blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(README, encoding="utf-8") as file:
            cls.text = file.read()

    def tide(self, *arguments, stdin="", merge=False):
        with tempfile.TemporaryDirectory() as home:
            environment = dict(os.environ, HOME=home, NO_COLOR="1")
            environment.pop("XDG_STATE_HOME", None)
            return subprocess.run([TIDE, *arguments], input=stdin, text=True, stdout=subprocess.PIPE, timeout=60,
                                  stderr=subprocess.STDOUT if merge else subprocess.PIPE, env=environment, cwd=home)

    def test_sessions_answer_as_they_stand(self):
        sessions = [text for _, text in blocks(self.text) if PROMPT in text]
        self.assertTrue(sessions)
        for text in sessions:
            shown = text[text.index(PROMPT):]
            typed = "".join(line[len(PROMPT):] for line in shown.splitlines(True) if line.startswith(PROMPT))
            said = self.tide("-i", stdin=typed, merge=True).stdout
            self.assertEqual(said.removesuffix("\n").removesuffix(PROMPT), shown)

    def test_banners_are_the_programs(self):
        version = self.tide("--version").stdout.split()[1].rstrip(",")
        for banner in re.findall(r"^Tide (\S+), ", self.text, re.M):
            self.assertEqual(banner, version)

    def test_lua_blocks_run(self):
        for language, text in blocks(self.text):
            if language == "lua":
                done = self.tide("-", stdin=text)
                self.assertEqual((done.returncode, done.stderr), (0, ""), text)

    def test_code_in_the_text_gives_a_value(self):
        code = [s for s in spans(self.text) if re.match(r"tide\.\w|x[:\[]\S|local p =|p:|print\(p\)", s)]
        self.assertGreater(len(code), 8)
        lines = ["x = tide.randn(3, 4)", "fn = function() return x + x end"]
        for s in code:
            s = s.removeprefix("local ")
            lines.append(s if re.match(r"\w+ = |print|p:", s) else f"assert(({s}) ~= nil, [==[{s}]==])")
        done = self.tide("-", stdin="\n".join(line + ";" for line in lines))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_commands_of_one_line_run(self):
        commands = re.findall(r"`tide -e '([^`']+)'`", self.text)
        self.assertTrue(commands)
        for command in commands:
            done = self.tide("-e", command)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertTrue(done.stdout, command)

    def test_files_it_names_are_there(self):
        for name in re.findall(r"\b(?:notebooks|tests|repl)/[\w./-]+\w", self.text):
            self.assertTrue(os.path.exists(os.path.join(os.path.dirname(README), name)), name)


if __name__ == "__main__":
    unittest.main()
