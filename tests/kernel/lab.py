"""JupyterLab in a headless browser, with a hand at its buttons: run by a person, not by ctest.

    python3 -m venv build/lab && build/lab/bin/pip install jupyterlab==4.* playwright
    TIDE_KERNEL=build/release/tide-kernel build/lab/bin/python tests/kernel/lab.py [folder for pictures]

needs a Chromium (CHROMIUM names it, else /usr/bin/chromium). Each check says what it saw; the pictures
are to be looked at. It takes a minute and wants a machine that is not busy, so it is no test.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from playwright.sync_api import sync_playwright

KERNEL = os.path.abspath(os.environ["TIDE_KERNEL"])
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PORT, TOKEN = 18888, "tide"
URL = f"http://127.0.0.1:{PORT}"
CELLS = 80
failures = []


def check(what, holds, seen=""):
    print("ok  " if holds else "FAIL", what, seen)
    if not holds:
        failures.append(what)


def notebook(path, *cells):
    with open(path, "w") as file:
        json.dump(
            {
                "cells": [
                    {"cell_type": "code", "id": f"c{i}", "execution_count": None, "metadata": {}, "outputs": [], "source": c}
                    for i, c in enumerate(cells)
                ],
                "metadata": {"kernelspec": {"name": "tide", "display_name": "Tide", "language": "lua"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            },
            file,
        )


@contextlib.contextmanager
def lab(folder):
    """JupyterLab over a folder of notebooks, with the kernel installed."""
    environment = {
        **os.environ,
        "JUPYTER_PATH": folder + "/share/jupyter",
        "JUPYTER_CONFIG_DIR": folder + "/config",
        "JUPYTER_DATA_DIR": folder + "/data",
        "JUPYTER_RUNTIME_DIR": folder + "/runtime",
        "XDG_STATE_HOME": folder + "/state",
        "HOME": folder,
    }
    subprocess.run([KERNEL, "--install", "--prefix", folder], check=True, stdout=subprocess.DEVNULL)
    settings = folder + "/config/lab/user-settings/@jupyterlab/notebook-extension"
    os.makedirs(settings)
    with open(settings + "/tracker.jupyterlab-settings", "w") as file:
        json.dump({"windowingMode": "none"}, file)  # all cells are there to be looked at
    log = open(folder + "/lab.log", "w")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={PORT}",
         f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}/books"],
        env=environment, stdout=log, stderr=log,
    )
    try:
        for _ in range(3000):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{URL}/api?token={TOKEN}")
                break
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


class Book:
    """An open notebook."""

    def __init__(self, page, name, pictures):
        self.page, self.name, self.pictures = page, name, pictures
        page.goto(f"{URL}/doc/tree/{name}.ipynb?token={TOKEN}&reset")
        page.wait_for_selector(".jp-CodeCell", timeout=90000)
        page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=90000)
        self.answer_questions()

    def answer_questions(self):
        """About the kernel, where JupyterLab did not know it yet, and about news."""
        time.sleep(3)
        with contextlib.suppress(Exception):
            self.page.locator(".jp-Dialog select").select_option(label="Tide (Lua 5.4)", timeout=1000)
            self.page.locator(".jp-Dialog .jp-mod-accept").click(timeout=1000)
            self.page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=90000)
        with contextlib.suppress(Exception):
            self.page.get_by_role("button", name="No", exact=True).click(timeout=1000)

    def menu(self, *names):
        self.page.get_by_role("menuitem", name=names[0], exact=True).first.click()
        self.page.get_by_text(names[1], exact=True).first.click()

    def prompts(self):
        return [p.strip() for p in self.page.locator(".jp-CodeCell .jp-InputPrompt").all_inner_texts()]

    def picture(self, what):
        self.page.screenshot(path=f"{self.pictures}/{self.name}-{what}.png")

    def focus(self, cell):
        self.page.locator(".jp-CodeCell .cm-content").nth(cell).click()

    def wait_output(self, text):
        self.page.get_by_text(text).first.wait_for(timeout=90000)


def run_all(page, pictures):
    book = Book(page, "failing", pictures)
    book.menu("Run", "Run All Cells")
    page.wait_for_selector(".jp-OutputArea-output", timeout=90000)
    time.sleep(3)
    prompts = book.prompts()
    book.picture("run-all")
    check("the failing cell is the first", prompts[0] == "[1]:", prompts[0])
    shown = len(prompts)
    check("cells behind it bear no number", shown > 1 and all(p == "[ ]:" for p in prompts[1:]), f"{shown} seen: {set(prompts[1:])}")
    page.keyboard.press("Escape")
    page.locator(".jp-CodeCell").first.click()
    book.focus(0)
    page.keyboard.press("Control+A")
    page.keyboard.type("print('ran ' .. tostring(ran))")
    page.keyboard.press("Control+Enter")
    book.wait_output("ran nil")
    check("none of them ran", True)


def buttons(page, pictures):
    book = Book(page, "buttons", pictures)
    book.focus(0)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="busy"]', timeout=90000)
    time.sleep(1)
    page.locator('[data-command="notebook:interrupt-kernel"]').first.click()
    book.wait_output("interrupted")
    check("a loop is interrupted", True)
    book.focus(1)
    page.keyboard.press("Control+Enter")
    book.wait_output("kept 7")
    book.picture("interrupted")
    page.locator('[data-command="notebook:restart-kernel"]').first.click()
    page.locator(".jp-Dialog .jp-mod-accept").click()
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=90000)
    time.sleep(1)
    book.focus(2)
    page.keyboard.press("Control+Enter")
    book.wait_output("after nil")
    check("a restart forgets", True)
    book.focus(3)
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    page.wait_for_selector(".jp-Completer", timeout=90000)
    words = page.locator(".jp-Completer-match").all_inner_texts()
    check("completion offers", "ones_like" in words, words[:6])
    book.picture("completion")
    page.keyboard.press("Escape")
    book.focus(4)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".jp-Stdin-input", timeout=90000)
    check("a password is hidden", page.locator(".jp-Stdin-input").get_attribute("type") == "password")
    check("the prompt is shown", "key? " in page.locator(".jp-Stdin-prompt").inner_text() + " ")
    page.locator(".jp-Stdin-input").fill("geheim")
    page.keyboard.press("Enter")
    book.wait_output("6 bytes")
    book.focus(5)
    page.keyboard.press("Control+Enter")
    book.wait_output("are left out here")
    check("a flood is cut", True)
    book.picture("flood")


def main():
    pictures = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tide-lab-")
    os.makedirs(pictures, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="tide-lab-")
    os.makedirs(folder + "/books")
    notebook(folder + "/books/failing.ipynb", "error('first')", *[f"ran = (ran or 0) + 1 -- {i}" for i in range(CELLS - 1)])
    notebook(
        folder + "/books/buttons.ipynb",
        "while true do end", "kept = 7 print('kept ' .. kept)", "print('after ' .. tostring(kept))", "tide.ones",
        "print(#tide.input{prompt = 'key? ', password = true} .. ' bytes')", "for i = 1, 1000000 do print(i) end",
    )
    try:
        with lab(folder), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=900000)
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            for scene in (run_all, buttons):
                try:
                    scene(page, pictures)
                except Exception as problem:  # noqa: BLE001  (the next scene is worth a look)
                    page.screenshot(path=f"{pictures}/{scene.__name__}-failed.png")
                    check(scene.__name__, False, str(problem).splitlines()[0])
            browser.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("pictures:", pictures)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
