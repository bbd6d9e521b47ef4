"""The list of mutations applies to the tree as it is, and the reader of lists notices one that doesn't."""
import os
import sys
import tempfile
import unittest

import mutation

ROOT = os.path.dirname(os.path.dirname(mutation.HERE))
GOOD = "# about it\n[twice] a.c\n- x = 1;\n- y = 2;\n+ x = 2;\n= another x\n"


class Lists(unittest.TestCase):
    def problems(self, text, source):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "a.c"), "w", encoding="utf-8") as file:
                file.write(source)
            return list(mutation.problems(mutation.parse(text), root))

    def test_old_text_is_found_at_any_indentation(self):
        m, = mutation.parse(GOOD)
        self.assertEqual(m.apply("{\n\tx = 1;\n        y = 2;\n}\n"), "{\n\tx = 2;\n}\n")

    def test_a_mutation_that_applies_is_no_problem(self):
        self.assertEqual(self.problems(GOOD, "x = 1;\ny = 2;\n"), [])

    def test_old_text_that_is_gone_is_a_problem(self):
        self.assertIn("occurs 0 times", self.problems(GOOD, "x = 1;\n")[0])

    def test_old_text_in_two_places_is_a_problem(self):
        self.assertIn("occurs 2 times", self.problems(GOOD, "x = 1;\ny = 2;\nx = 1;\ny = 2;\n")[0])

    def test_a_file_that_is_gone_is_a_problem(self):
        self.assertIn("b.c", self.problems(GOOD.replace("a.c", "b.c"), "")[0])

    def test_two_of_one_name_are_a_problem(self):
        self.assertIn("named twice", self.problems(GOOD + GOOD, "x = 1;\ny = 2;\n")[0])

    def test_a_mutation_that_changes_nothing_is_a_problem(self):
        self.assertEqual(len(self.problems("[same] a.c\n- x\n+ x\n= nothing\n", "x")), 1)

    def test_a_mutation_without_what_a_user_sees_is_a_problem(self):
        self.assertEqual(len(self.problems("[same] a.c\n- x\n+ y\n", "x")), 1)

    def test_a_line_of_no_kind_is_refused(self):
        with self.assertRaises(mutation.Broken):
            mutation.parse("[name] a.c\nwhat is this\n")

    def test_every_mutation_of_the_list_applies_to_the_tree(self):
        self.assertEqual(list(mutation.problems(mutation.load(), ROOT)), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
