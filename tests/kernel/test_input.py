"""What a cell reads from the person: lines, prompts, passwords, and what is left of them."""
import unittest

from harness import TIMEOUT, KernelCase, ask


class Input(KernelCase):
    def ask(self, code, *lines):
        """Runs a cell that asks for these lines; its answer, and the questions."""
        msg_id = self.client.execute(code, allow_stdin=True)
        questions = []
        for line in lines:
            questions.append(self.client.get_stdin_msg(timeout=TIMEOUT)["content"])
            self.client.input(line)
        return ask(self.client, msg_id), questions

    def test_what_a_cell_leaves_of_a_line_does_not_reach_the_next(self):
        for code in ("print(io.read(1))", "print(io.read('n'))", "print(io.read(3))"):
            with self.subTest(code=code):
                self.ask(code, "123 secret")
                answer, questions = self.ask("print(io.read('a'))", "new", "\x04")
                self.assertEqual(answer.text(), "new\n\n")
                self.assertEqual(len(questions), 2)

    def test_a_failed_cell_leaves_nothing_either(self):
        msg_id = self.client.execute("io.read(1) error('no')", allow_stdin=True, stop_on_error=False)
        self.client.get_stdin_msg(timeout=TIMEOUT)
        self.client.input("12345")
        ask(self.client, msg_id)
        self.assertEqual(self.ask("print(io.read())", "new")[0].text(), "new\n")

    def test_a_cell_keeps_what_it_left_itself(self):
        self.assertEqual(self.ask("print(io.read(1)) print(io.read())", "12345")[0].text(), "1\n2345\n")

    def test_prompt(self):
        for code in ("print(tide.input('Größe? '))", "print(tide.input{prompt = 'Größe? '})"):
            answer, questions = self.ask(code, "12")
            self.assertEqual(answer.text(), "12\n")
            self.assertEqual(questions, [{"prompt": "Größe? ", "password": False}])

    def test_password(self):
        answer, questions = self.ask("s = tide.input{prompt = 'key: ', password = true} print(#s)", "geheim")
        self.assertEqual(answer.text(), "6\n")
        self.assertEqual(questions, [{"prompt": "key: ", "password": True}])

    def test_the_end_of_input_is_nil(self):
        self.assertEqual(self.ask("print(tide.input())", "\x04")[0].text(), "nil\n")

    def test_a_front_end_without_input(self):
        answer = self.execute("print(tide.input('name? '))")
        self.assertEqual(answer.text(), "nil\n")
        self.assertIn("takes no input", answer.text("stderr"))

    def test_nul_in_an_answer_stays(self):
        self.assertEqual(self.ask("print(#io.read())", "a\0bc")[0].text(), "4\n")
        self.assertEqual(self.ask("print(#tide.input())", "\0")[0].text(), "1\n")

    def test_debug_asks_in_the_notebook(self):
        self.execute("local limit = 5 function inner(n) local t = {} return t.a.b + n + limit end inner(3)")
        answer, questions = self.ask("%debug", "n", "l", "c")
        self.assertEqual(len(questions), 3)
        self.assertIn("post mortem", answer.text())
        self.assertIn("debug> 3\n", answer.text())
        self.assertIn("limit = 5", answer.text())
        self.assertEqual(answer.reply["status"], "ok")

    def test_debug_without_input_leaves(self):
        self.execute("error('no')")
        self.assertEqual(self.execute("%debug").reply["status"], "ok")

    def test_wrong_arguments_are_refused(self):
        self.assertIn("input", self.execute("tide.input(print)").reply["evalue"])
        self.assertIn("prompts", self.execute("tide.input{prompts = 1}").reply["evalue"])


if __name__ == "__main__":
    unittest.main()
