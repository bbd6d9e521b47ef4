"""Run All stops at the cell that fails: what was sent behind it is not run, all else is served."""
import datetime
import time
import unittest

from harness import Gate, ask, kernel, send

FIRST_S = 0.02  # where clocks differ, cells that are sent so soon after the failure may not be run


def cell(client, code, date=None, session=None):
    """Sends a cell as if another clock or another front end had; gives its id."""
    message = client.session.msg(
        "execute_request",
        {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "stop_on_error": True},
    )
    if date:
        message["header"]["date"] = date
    if session:
        message["header"]["session"] = session
    client.shell_channel.send(message)
    return message["header"]["msg_id"]


def now(hours=0):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)


class Abort(unittest.TestCase):
    def setUp(self):
        started = kernel()
        _, self.client, _ = started.__enter__()
        self.addCleanup(started.__exit__, None, None, None)
        ask(self.client, self.client.kernel_info())

    def answer(self, msg_id):
        return ask(self.client, msg_id)

    def check_aborted(self, answer):
        self.assertEqual((answer.reply["status"], answer.reply["ename"]), ("error", "Aborted"))
        self.assertNotIn("execution_count", answer.reply)
        self.assertEqual(answer.types, [])

    def test_cells_sent_with_the_one_that_fails_are_not_run(self):
        """As a notebook sends them: one request after the other, the first of which fails at once."""
        date = now()
        first = cell(self.client, "error('first')", date)
        self.assertEqual(self.answer(first).reply["ename"], "Error")
        rest = [cell(self.client, "ran = true", date) for _ in range(79)]
        for msg_id in rest:
            self.check_aborted(self.answer(msg_id))
        answer = self.answer(cell(self.client, "print(ran)"))
        self.assertEqual(answer.text(), "nil\n")
        self.assertEqual(answer.reply["execution_count"], 2)

    def test_cells_that_wait_behind_a_long_one_are_not_run(self):
        gate = Gate()
        first = cell(self.client, gate.wait + "error('late')")
        rest = [cell(self.client, "ran = true") for _ in range(20)]
        gate.open()
        self.assertEqual(self.answer(first).reply["ename"], "Error")
        for msg_id in rest:
            self.check_aborted(self.answer(msg_id))

    def test_a_client_that_waits_for_its_answers_loses_no_cell(self):
        for _ in range(5):
            self.assertEqual(self.answer(cell(self.client, "error('first')")).reply["ename"], "Error")
            for _ in range(24):
                self.assertEqual(self.answer(cell(self.client, "return 1")).reply["status"], "ok")

    def test_the_date_decides_not_the_arrival(self):
        before = now()
        left = self.answer(cell(self.client, "error('first')")).message["header"]["date"]
        time.sleep(0.25)  # a busy machine may send an answer long after it was dated
        later = left + datetime.timedelta(milliseconds=200)
        self.assertEqual(self.answer(cell(self.client, "return 1", later)).reply["status"], "ok")
        self.check_aborted(self.answer(cell(self.client, "return 1", before)))

    def check_wrong_clock(self, hours):
        date = now(hours)
        self.answer(cell(self.client, "error('first')", date, "elsewhere"))
        self.check_aborted(self.answer(cell(self.client, "return 1", date, "elsewhere")))
        time.sleep(FIRST_S)
        later = cell(self.client, "return 1", now(hours), "elsewhere")
        self.assertEqual(self.answer(later).reply["status"], "ok")

    def test_a_clock_that_is_behind(self):
        self.check_wrong_clock(-2)

    def test_a_clock_that_is_ahead(self):
        self.check_wrong_clock(2)

    def test_cells_of_another_front_end_run(self):
        date = now()
        self.answer(cell(self.client, "error('first')", date))
        other = cell(self.client, "return 1", date, "another")
        self.assertEqual(self.answer(other).reply["status"], "ok")
        self.check_aborted(self.answer(cell(self.client, "return 1", date)))

    def test_other_requests_are_served(self):
        date = now()
        self.answer(cell(self.client, "error('first')", date))
        complete = send(self.client, "complete_request", {"code": "pri", "cursor_pos": 3})
        self.assertIn("print", self.answer(complete).reply["matches"])
        self.check_aborted(self.answer(cell(self.client, "return 1", date)))


if __name__ == "__main__":
    unittest.main()
