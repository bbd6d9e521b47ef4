"""Comms with targets in Lua, the widgets over them, and what rich displays carry, as a front end sees them."""
import unittest

from harness import TIMEOUT, KernelCase, send

WIDGET = "jupyter.widget"


class CommCase(KernelCase):
    """What a page does."""

    def run_cell(self, code):
        answer = self.execute(code)
        self.assertEqual(answer.reply["status"], "ok", answer.reply)
        return answer

    def send(self, msg_type, content, buffers=()):
        """Sends a comm message; gives all that comes on iopub until its idle, whomever it belongs to."""
        message = self.client.session.msg(msg_type, content)
        self.client.session.send(self.client.shell_channel.socket, message, buffers=list(buffers))
        messages = []
        while True:
            got = self.client.get_iopub_msg(timeout=TIMEOUT)
            if got["content"].get("execution_state") != "busy" or got["msg_type"] != "status":
                messages.append(got)
            if got["content"].get("execution_state") == "idle" and got["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                self.last_id = message["header"]["msg_id"]
                return messages[:-1]

    def say(self, comm_id, data, buffers=()):
        return self.send("comm_msg", {"comm_id": comm_id, "data": data}, buffers)

    def update(self, comm_id, **state):
        return self.say(comm_id, {"method": "update", "state": state, "buffer_paths": []})

    def comms(self, target=None):
        content = {"target_name": target} if target else {}
        return self.request("comm_info_request", content).reply["comms"]

    def opened(self, answer, model):
        """The comm_open of a model of that name, the last one."""
        found = [c for c in answer.contents("comm_open") if c["data"].get("state", {}).get("_model_name") == model]
        self.assertTrue(found, answer.types)
        return found[-1]


class Comms(CommCase):
    def test_a_target_that_is_not_there_says_so_and_closes(self):
        messages = self.send("comm_open", {"comm_id": "x1", "target_name": "nobody", "data": {}})
        self.assertEqual([m["msg_type"] for m in messages], ["comm_close"])
        self.assertEqual(messages[0]["content"]["comm_id"], "x1")
        self.assertIn("no comm target 'nobody'", messages[0]["content"]["data"]["error"])
        self.assertEqual(self.comms("nobody"), {})

    def test_a_target_in_lua_answers_with_bytes(self):
        self.run_cell("""tide.comm.register_target('echo', function(c, data, buffers)
            c:send({opened = data.n, bytes = #buffers[1]})
            c:on_message(function(d, b) c:send({got = d}, {buffers = {b[1] .. '!', '\\0'}}) end)
            c:on_close(function(d) print('closed', d.why) end) end)""")
        first = self.send("comm_open", {"comm_id": "e1", "target_name": "echo", "data": {"n": 7}}, [b"abc"])
        self.assertEqual(first[0]["content"], {"comm_id": "e1", "data": {"opened": 7, "bytes": 3}})
        self.assertEqual(self.comms("echo"), {"e1": {"target_name": "echo"}})
        self.assertEqual(self.comms("other"), {})
        reply = self.say("e1", {"list": [1, None, "ä"], "deep": {"x": 1.5}}, [b"\xff\x00"])[0]
        self.assertEqual(reply["content"]["data"]["got"], {"list": [1, None, "ä"], "deep": {"x": 1.5}})
        self.assertEqual([bytes(b) for b in reply["buffers"]], [b"\xff\x00!", b"\0"])
        closed = self.send("comm_close", {"comm_id": "e1", "data": {"why": "done"}})
        self.assertEqual(closed[0]["content"]["text"], "closed\tdone\n")
        self.assertEqual(self.comms("echo"), {})
        self.assertEqual(self.say("e1", {}), [])

    def test_lua_opens_and_closes(self):
        answer = self.run_cell("c = tide.comm.open('page', {a = 1}, {metadata = {version = '2'}, buffers = {'xy'}})")
        message = [m for m in answer.messages if m["msg_type"] == "comm_open"][0]
        self.assertEqual((message["content"]["target_name"], message["content"]["data"]), ("page", {"a": 1}))
        self.assertEqual((message["metadata"]["version"], [bytes(b) for b in message["buffers"]]), ("2", [b"xy"]))
        answer = self.run_cell("c:close({bye = true}) c:close()")
        self.assertEqual([c["data"] for c in answer.contents("comm_close")], [{"bye": True}])
        refused = self.execute("c:send({})").reply
        self.assertIn("send: the comm to 'page' is closed", refused["evalue"])

    def test_what_a_callback_raises_and_prints_is_shown_at_the_cell_that_made_the_comm(self):
        answer = self.run_cell("c = tide.comm.open('page') c:on_message(function(d) print('in', d.n) error('boom') end)")
        cell = answer.messages[0]["parent_header"]["msg_id"]
        messages = self.say(answer.contents("comm_open")[0]["comm_id"], {"n": 1})
        self.assertEqual([m["msg_type"] for m in messages], ["stream", "error"])
        self.assertEqual([m["parent_header"]["msg_id"] for m in messages], [cell, cell])
        self.assertIn("boom", messages[1]["content"]["evalue"])
        self.assertTrue(messages[1]["content"]["traceback"])
        self.assertEqual(self.run_cell("print('next')").text(), "next\n")

    def test_a_comm_closed_in_mid_event(self):
        answer = self.run_cell("c = tide.comm.open('page') c:on_message(function() c:close() c:send({}) end)")
        messages = self.say(answer.contents("comm_open")[0]["comm_id"], {})
        self.assertEqual([m["msg_type"] for m in messages], ["comm_close", "error"])
        self.assertIn("the comm to 'page' is closed", messages[1]["content"]["evalue"])

    def test_a_callback_that_never_ends_is_interrupted(self):
        answer = self.run_cell("c = tide.comm.open('page') c:on_message(function() print('on') while true do end end)")
        comm_id = answer.contents("comm_open")[0]["comm_id"]
        msg_id = send(self.client, "comm_msg", {"comm_id": comm_id, "data": {}})
        names = []
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            names.append(message["content"].get("ename"))
            if message["msg_type"] == "stream":
                self.manager.interrupt_kernel()
            if message["content"].get("execution_state") == "idle" and message["parent_header"]["msg_id"] == msg_id:
                break
        self.assertIn("Interrupt", names)
        self.assertEqual(self.run_cell("print(1)").text(), "1\n")

    def test_content_that_is_none_gets_a_line(self):
        for content in ({}, {"comm_id": 7}, {"comm_id": "a", "target_name": 3}):
            for msg_type in ("comm_open", "comm_msg", "comm_close"):
                with self.subTest(type=msg_type, content=content):
                    for message in self.send(msg_type, content):
                        self.assertEqual(message["msg_type"], "error")
                        self.assertIn("is no string", message["content"]["evalue"])
        answer = self.run_cell("c = tide.comm.open('page') c:on_message(function(d) print(type(d)) end)")
        comm_id = answer.contents("comm_open")[0]["comm_id"]
        for data in (None, 3, [], "x"):
            self.say(comm_id, data)
        self.assertEqual(self.say(comm_id, [1])[0]["content"]["text"], "table\n")

    def test_wrong_arguments_are_refused(self):
        for code, problem in (
            ("tide.comm.open()", "argument 1 (target)"),
            ("tide.comm.open('x', {f = print})", "value.data.f is a function, which JSON can't hold"),
            ("tide.comm.open('x', {0/0})", "is nan"),
            ("tide.comm.open('x', {}, {buffers = {3}})", "buffers[1]: expected a string of bytes"),
            ("tide.comm.open('x', {}, {meta = {}})", "no option 'meta'"),
            ("tide.comm.register_target('x', 3)", "expected a function"),
        ):
            with self.subTest(code=code):
                self.assertIn(problem, self.execute(code).reply.get("evalue", ""))


class Widgets(CommCase):
    def test_a_slider_is_a_model_with_its_layout_and_style(self):
        answer = self.run_cell("s = tide.widgets.IntSlider(3, {min = 1, max = 10, description = 'n'})")
        models = [c["data"]["state"]["_model_name"] for c in answer.contents("comm_open")]
        self.assertEqual(models, ["LayoutModel", "SliderStyleModel", "IntSliderModel"])
        slider = self.opened(answer, "IntSliderModel")
        state = slider["data"]["state"]
        self.assertEqual((slider["target_name"], state["value"], state["min"], state["max"], state["description"]), (WIDGET, 3, 1, 10, "n"))
        self.assertEqual((state["_model_module"], state["_model_module_version"]), ("@jupyter-widgets/controls", "2.0.0"))
        ids = {c["comm_id"] for c in answer.contents("comm_open")}
        self.assertLessEqual({state[k].replace("IPY_MODEL_", "") for k in ("layout", "style")}, ids)
        shown = self.execute("s").contents("execute_result")[0]["data"]
        view = shown["application/vnd.jupyter.widget-view+json"]
        self.assertEqual((view["version_major"], view["model_id"]), (2, slider["comm_id"]))
        self.assertIn("IntSlider(", shown["text/plain"])

    def test_both_sides_hear_of_changes(self):
        answer = self.run_cell("s = tide.widgets.IntSlider(3) s:observe(function(c) print(c.old, c.new, c.owner == s) end)")
        slider = self.opened(answer, "IntSliderModel")["comm_id"]
        self.assertEqual(self.update(slider, value=8)[0]["content"]["text"], "3\t8\ttrue\n")
        self.assertEqual(self.update(slider, value=8), [])
        answer = self.run_cell("s.value = 20 s.max = 10")
        updates = [c["data"]["state"] for c in answer.contents("comm_msg")]
        self.assertEqual(updates, [{"value": 20}, {"max": 10, "value": 10}])
        self.assertEqual(answer.text(), "8\t20\ttrue\n20\t10\ttrue\n")
        state = self.say(slider, {"method": "request_state"})[0]["content"]["data"]
        self.assertEqual((state["method"], state["state"]["value"], state["state"]["max"]), ("update", 10, 10))

    def test_a_value_of_the_wrong_type_from_the_page_is_refused(self):
        answer = self.run_cell("s = tide.widgets.IntSlider(3)")
        slider = self.opened(answer, "IntSliderModel")["comm_id"]
        for value in ("x", 1.5, None, [1]):
            messages = self.update(slider, value=value)
            self.assertEqual([m["msg_type"] for m in messages], ["error"], value)
            self.assertIn("IntSlider: value: expected an integer", messages[0]["content"]["evalue"])
        self.assertEqual(self.update(slider, no_such_field=1), [])
        self.assertEqual(self.run_cell("print(s.value)").text(), "3\n")

    def test_a_choice_counts_from_1_here_and_from_0_there(self):
        answer = self.run_cell("d = tide.widgets.Dropdown({'a', {'two', 2}}) d:observe(function(c) print(c.new) end)")
        model = self.opened(answer, "DropdownModel")
        self.assertEqual((model["data"]["state"]["index"], model["data"]["state"]["_options_labels"]), (0, ["a", "two"]))
        self.assertEqual(self.update(model["comm_id"], index=1)[0]["content"]["text"], "2\n")
        self.assertEqual(self.run_cell("print(d.index, d.value)").text(), "2\t2\n")
        self.assertIn("the page chose", self.update(model["comm_id"], index=9)[0]["content"]["evalue"])
        answer = self.run_cell("d.options = {'x', 'y'}")
        self.assertEqual(answer.contents("comm_msg")[0]["data"]["state"], {"_options_labels": ["x", "y"], "index": 0})

    def test_buttons_texts_and_boxes(self):
        answer = self.run_cell("""b = tide.widgets.Button('go') b:on_click(function(w) print('clicked', w == b) end)
            t = tide.widgets.Text('hi') t:on_submit(function(w) print('got', w.value) end)
            box = tide.widgets.HBox{b, t} c = tide.widgets.Checkbox(true)""")
        click = {"method": "custom", "content": {"event": "click"}}
        button = self.opened(answer, "ButtonModel")["comm_id"]
        text = self.opened(answer, "TextModel")["comm_id"]
        self.assertEqual(self.say(button, click)[0]["content"]["text"], "clicked\ttrue\n")
        self.update(text, value="ho")
        self.assertEqual(self.say(text, {"method": "custom", "content": {"event": "submit"}})[0]["content"]["text"], "got\tho\n")
        children = self.opened(answer, "HBoxModel")["data"]["state"]["children"]
        self.assertEqual(children, ["IPY_MODEL_" + button, "IPY_MODEL_" + text])
        self.assertIs(self.opened(answer, "CheckboxModel")["data"]["state"]["value"], True)
        for data in ({"method": "custom"}, {"method": "custom", "content": 3}, {"method": "zzz"}, {}, None, {"method": "update", "state": 3}):
            self.assertEqual(self.say(button, data), [], data)

    def test_a_widget_closed_in_mid_event(self):
        answer = self.run_cell("""s = tide.widgets.IntSlider(1) n = 0
            s:observe(function() s:close() s.value = 7 n = n + 1 end) s:observe(function() n = n + 10 end)""")
        slider = self.opened(answer, "IntSliderModel")["comm_id"]
        messages = self.update(slider, value=2)
        self.assertEqual([m["msg_type"] for m in messages if m["msg_type"] != "stream"], ["comm_close"], messages)
        self.assertEqual(self.update(slider, value=3), [])
        self.assertEqual(self.run_cell("print(s.value)").text(), "7\n")
        self.assertNotIn(slider, self.comms(WIDGET))

    def test_bytes_travel_beside_the_state(self):
        answer = self.run_cell("i = tide.widgets.Image(tide.rand(4, 4))")
        message = [m for m in answer.messages if m["msg_type"] == "comm_open"][-1]
        self.assertEqual(message["content"]["data"]["buffer_paths"], [["value"]])
        self.assertNotIn("value", message["content"]["data"]["state"])
        self.assertEqual(bytes(message["buffers"][0])[:8], b"\x89PNG\r\n\x1a\n")

    def test_a_page_that_comes_later_gets_all_states(self):
        answer = self.run_cell("s = tide.widgets.FloatSlider(0.5) i = tide.widgets.Image(tide.rand(2, 2))")
        slider = self.opened(answer, "FloatSliderModel")["comm_id"]
        image = self.opened(answer, "ImageModel")["comm_id"]
        self.send("comm_open", {"comm_id": "ctl", "target_name": "jupyter.widget.control", "data": {}})
        message = self.say("ctl", {"method": "request_states"})[0]
        data = message["content"]["data"]
        self.assertEqual(data["method"], "update_states")
        self.assertEqual((data["states"][slider]["model_name"], data["states"][slider]["state"]["value"]), ("FloatSliderModel", 0.5))
        place = data["buffer_paths"].index([image, "state", "value"])
        self.assertEqual(bytes(message["buffers"][place])[:4], b"\x89PNG")

    def test_output_goes_into_its_widget(self):
        answer = self.run_cell("""o = tide.widgets.Output() b = tide.widgets.Button('go')
            b:on_click(function() o:capture(function() print('inside') error('wrong') end) print('outside') end)""")
        cell = answer.messages[0]["parent_header"]["msg_id"]
        button = self.opened(answer, "ButtonModel")["comm_id"]
        messages = self.say(button, {"method": "custom", "content": {"event": "click"}})
        mine = [(m["msg_type"], m["content"].get("name"), m["parent_header"]["msg_id"] == self.last_id) for m in messages]
        self.assertEqual(mine, [("comm_msg", None, True), ("stream", "stdout", True), ("stream", "stderr", True),
                                ("comm_msg", None, True), ("stream", "stdout", False)])
        self.assertEqual(messages[0]["content"]["data"]["state"], {"msg_id": self.last_id})
        self.assertEqual(messages[3]["content"]["data"]["state"], {"msg_id": ""})
        self.assertIn("wrong", messages[2]["content"]["text"])
        self.assertEqual(messages[4]["parent_header"]["msg_id"], cell)

    def outputs(self, answer):
        """What the Output that a cell made has been told to show, at the end."""
        comm = self.opened(answer, "OutputModel")["comm_id"]
        states = [c["data"]["state"]["outputs"] for c in answer.contents("comm_msg")
                  if c["comm_id"] == comm and "outputs" in c["data"].get("state", {})]
        return states[-1] if states else []

    def test_output_of_a_cell_is_the_state_of_its_widget(self):
        for code, expected in (
            ("o:capture(print, 'a') o:capture(print, 'b')", [("stream", "stdout", "a\nb\n")]),
            ("o:capture(function() io.write('a') io.stderr:write('e') io.write('b') end)",
             [("stream", "stdout", "a"), ("stream", "stderr", "e"), ("stream", "stdout", "b")]),
            ("o:capture(function() print('a') tide.display(7) print('b') end)",
             [("stream", "stdout", "a\n"), ("display_data", None, "7"), ("stream", "stdout", "b\n")]),
            ("o:capture(function() print('a') tide.clear_output() print('b') end)", [("stream", "stdout", "b\n")]),
            ("o:capture(function() print('a') tide.clear_output(true) end)", [("stream", "stdout", "a\n")]),
            ("o:capture(function() print('a') tide.clear_output(true) print('b') end)", [("stream", "stdout", "b\n")]),
            ("o:capture(function() tide.display(1, {id = 'k'}) tide.display(2, {id = 'k', update = true}) end)", [("display_data", None, "2")]),
            ("o:capture(error, 'wrong')", [("stream", "stderr", "wrong")]),
            ("o:capture(print, 'a') o:clear()", []),
            ("o:capture(os.execute, 'echo child')", [("stream", "stdout", "child\n")]),
            ("o:capture(function() local p = tide.widgets.Output() tide.display(p) p:capture(print, 'inner') print('outer') end)", None),
        ):
            answer = self.run_cell("o = tide.widgets.Output() " + code + " print('beside')")
            self.assertEqual(answer.text(), "beside\n", code)
            self.assertFalse(answer.contents("clear_output"), code)
            if expected is None:
                continue
            found = [(o["output_type"], o.get("name"), o.get("text") or o["data"]["text/plain"]) for o in self.outputs(answer)]
            self.assertEqual([f[:2] for f in found], [e[:2] for e in expected], code)
            for f, e in zip(found, expected):
                self.assertTrue(f[2] == e[2] or "wrong" in e[2] and f[2].startswith("wrong"), (code, f, e))
            messages = [c["data"]["state"] for c in answer.contents("comm_msg")]
            self.assertFalse([s for s in messages if s.get("msg_id")], "no request is named while the cell runs: " + code)

    def test_output_of_a_long_cell_is_told_of_as_it_comes(self):
        answer = self.run_cell("o = tide.widgets.Output() o:capture(function() for i = 1, 4 do print(i) tide.sleep(0.25) end end)")
        comm = self.opened(answer, "OutputModel")["comm_id"]
        states = [c for c in answer.contents("comm_msg") if c["comm_id"] == comm]
        self.assertGreater(len(states), 2)
        self.assertEqual(self.outputs(answer)[0]["text"], "1\n2\n3\n4\n")

    def test_a_capture_that_is_left_ends_with_its_cell(self):
        self.run_cell("o = tide.widgets.Output() co = coroutine.wrap(function() o:capture(function() print('in') coroutine.yield() print('late') end) end) co()")
        answer = self.run_cell("print('next')")
        self.assertEqual(answer.text(), "next\n")

    def test_interact_makes_controls_and_runs_anew(self):
        answer = self.run_cell("tide.interact(function(lr, n, kind) print(lr, n, kind) return n end, "
                               "{n = {1, 10}, lr = {0.01, 1}, kind = {'a', 'b'}})")
        self.assertEqual([o.get("text") or o["data"]["text/plain"] for o in self.outputs(answer)], ["0.505\t5\ta\n", "5"])
        box = self.opened(answer, "VBoxModel")
        order = [self.opened(answer, m)["comm_id"] for m in ("FloatSliderModel", "IntSliderModel", "DropdownModel", "OutputModel")]
        self.assertEqual(box["data"]["state"]["children"], ["IPY_MODEL_" + c for c in order])
        shown = [d["data"] for d in answer.contents("display_data")]
        self.assertEqual(shown[0]["application/vnd.jupyter.widget-view+json"]["model_id"], box["comm_id"])
        messages = self.update(order[1], value=7)
        self.assertEqual([m["msg_type"] for m in messages], ["comm_msg", "clear_output", "stream", "display_data", "comm_msg"])
        self.assertEqual(messages[2]["content"]["text"], "0.505\t7\ta\n")
        self.assertEqual(messages[3]["content"]["data"]["text/plain"], "7")

    def test_a_page_that_comes_later_is_told_of_outputs(self):
        answer = self.run_cell("o = tide.widgets.Output() o:capture(print, 'kept')")
        comm = self.opened(answer, "OutputModel")["comm_id"]
        state = self.say(comm, {"method": "request_state"})[-1]["content"]["data"]["state"]
        self.assertEqual(state["outputs"], [{"output_type": "stream", "name": "stdout", "text": "kept\n"}])
        self.update(comm, outputs=[])
        state = self.say(comm, {"method": "request_state"})[-1]["content"]["data"]["state"]
        self.assertEqual(state["outputs"], [])


class Displays(CommCase):
    def data(self, code):
        answer = self.run_cell(code)
        return (answer.contents("display_data") + answer.contents("execute_result"))[0]

    def test_tensors_modules_and_tables_have_html(self):
        for code in ("tide.ones(2, 3)", "tide.nn.Sequential{tide.nn.Linear(2, 3)}", "{a = {1, 2}}"):
            data = self.data(code)["data"]
            self.assertIn("<", data["text/html"], code)
            self.assertTrue(data["text/plain"])
        for code in ("1", "'x'", "{1, 2}", "tide.tensor(3)", "print"):
            self.assertEqual(list(self.data(code)["data"]), ["text/plain"], code)

    def test_metadata_and_json_arrive(self):
        content = self.data("tide.display.png(tide.rand(2, 2), {width = 40, height = 30})")
        self.assertEqual(content["metadata"], {"image/png": {"width": 40, "height": 30}})
        content = self.data("tide.display.json({a = {1, 2}}, {expanded = true})")
        self.assertEqual((content["data"]["application/json"], content["metadata"]["application/json"]), ({"a": [1, 2]}, {"expanded": True}))

    def test_a_display_is_replaced_by_its_id(self):
        answer = self.run_cell("p = tide.plot.line({1, 2}) p:show{id = 'loss'} p:show{id = 'loss', update = true}")
        self.assertEqual(answer.types, ["execute_input", "display_data", "update_display_data"])
        self.assertEqual(answer.contents("update_display_data")[0]["transient"], {"display_id": "loss"})

    def test_a_plot_is_one_bundle(self):
        data = self.data("tide.plot.line({3, 1, 2}, {title = 'Loss'})")["data"]
        self.assertEqual(set(data), {"text/plain", "image/svg+xml", "application/vnd.vegalite.v5+json"})
        self.assertEqual(data["application/vnd.vegalite.v5+json"]["title"], "Loss")
        self.assertEqual(set(self.data("tide.plot.image(tide.rand(4, 4))")["data"]), {"text/plain", "image/png"})

    def test_wrong_entries_of_a_hook_are_left_out_with_a_line(self):
        answer = self.run_cell("setmetatable({}, {__display = function() return {['text/html'] = '<b>x</b>', ['image/png'] = 'zz'} end})")
        self.assertEqual(set(answer.contents("execute_result")[0]["data"]), {"text/plain", "text/html"})
        self.assertIn("image/png doesn't begin as a PNG file does: left out", answer.text())


if __name__ == "__main__":
    unittest.main()
