"""What goes on while a scan or a search runs: Ctrl-C, callbacks, other threads."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import poach
import pytest

# No machine for regular expressions has so many states as these names lead these patterns to: 5 ms a name, or 80 ms without optimisation. So the
# scan lasts for seconds at least, of processor time.
SLOW = [f"a[ab]{{{length}}}[^ab]" for length in range(130, 160)]
FILES = 1000


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree that takes seconds to scan with the patterns."""
    tree = tmp_path_factory.mktemp("slow")
    letters = random.Random(1)
    for number in range(FILES):
        directory = tree / str(number // 2)
        directory.mkdir(exist_ok=True)
        (directory / "".join(letters.choices("ab", k=200))).touch()
    return tree


SCAN = f"""
import sys
import poach

told = []

def progress(progress):
    told.append(progress.entries)
    if len(told) == 1:
        print("under way", flush=True)

try:
    # It ends between two directories.
    poach.scan(sys.argv[1], exclude_regex={SLOW!r}, progress=progress, interval=0, threads=1)
    print("ran to its end")
except KeyboardInterrupt:
    print("KeyboardInterrupt", "at the end" if told[-1] > {FILES * 3 // 2} else "in the midst")
"""

SEARCH = """
import poach

try:
    print("under way", flush=True)
    # Hours of executions.
    poach.check("chase-lev", tasks=12, thieves=4, steals=8, seconds=None)
    print("ran to its end")
except KeyboardInterrupt:
    print("KeyboardInterrupt in the midst")
"""


def interrupted(program: str, *arguments: str) -> str:
    """What a child says that is sent SIGINT once it has said that it is under way."""
    child = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "under way\n"
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=300)
    finally:
        child.kill()
    assert child.returncode == 0
    return said.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent")
def test_ctrl_c_ends_a_scan(slow: Path) -> None:
    assert interrupted(SCAN, str(slow)) == "KeyboardInterrupt in the midst"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent")
def test_ctrl_c_ends_a_search() -> None:
    assert interrupted(SEARCH) == "KeyboardInterrupt in the midst"


def test_a_callback_that_returns_false_ends_the_scan_with_what_it_has(slow: Path) -> None:
    calls = 0

    def progress(_: poach.Progress) -> bool:
        nonlocal calls
        calls += 1
        return False

    scan = poach.scan(slow, exclude_regex=SLOW, progress=progress, interval=0, threads=1)
    assert scan.interrupted and calls >= 1
    assert scan.totals["files"] < FILES


def test_an_exception_of_the_callback_is_raised(slow: Path) -> None:
    class Mine(Exception):
        pass

    def progress(_: poach.Progress) -> None:
        raise Mine

    with pytest.raises(Mine):
        poach.scan(slow, exclude_regex=SLOW, progress=progress, interval=0)


def test_other_threads_run_meanwhile() -> None:
    found: list[dict[str, Any]] = []

    def search() -> None:
        found.append(poach.check("chase-lev", tasks=12, thieves=4, steals=8, seconds=2.0))

    thread = threading.Thread(target=search)
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    # With the GIL held there would be one or two: before the search, and after it.
    assert turns >= 5
    assert found[0]["verdict"] == "incomplete"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fork")
def test_a_child_of_fork_scans(tmp_path: Path) -> None:
    poach.scan(tmp_path)
    child = os.fork()
    if child == 0:
        os._exit(poach.scan(tmp_path).totals["directories"])
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
