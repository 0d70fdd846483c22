"""The scan: what it finds, tells, refuses; the documents."""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import poach
import pytest


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two directories, four files, of which two are equal, a link that leads nowhere."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one.txt").write_bytes(b"1" * 5000)
    (tmp_path / "a" / "b" / "two.txt").write_bytes(b"1" * 5000)
    (tmp_path / "a" / "b" / "three.dat").write_bytes(b"3" * 100)
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("nowhere")
    return tmp_path


def test_totals_are_those_of_the_tree(tree: Path) -> None:
    scan = poach.scan(tree)
    totals = scan.totals
    assert (totals["directories"], totals["files"], totals["symlinks"]) == (3, 4, 1)
    assert (totals["entries"], totals["errors"], scan.errors) == (8, 0, [])
    lengths = [p.lstat().st_size for p in [tree, *tree.rglob("*")]]
    assert totals["apparent_bytes"] == sum(lengths)
    assert not scan.interrupted and scan.elapsed > 0 and scan.threads >= 1
    assert "8 entries" in repr(scan)


@pytest.mark.parametrize("engine", poach.ENGINES)
def test_every_engine_finds_the_same(tree: Path, engine: str) -> None:
    expected = poach.scan(tree, engine="sequential")
    scan = poach.scan(tree, engine=engine, threads=3)
    assert scan.totals == expected.totals
    assert scan.engine == engine
    assert {e.path for e in scan} == {e.path for e in expected}


def test_entries_come_after_the_directory_that_they_are_in(tree: Path) -> None:
    scan = poach.scan(str(tree), facts=True)
    seen: set[str] = set()
    for entry in scan:
        if entry.depth > 0:
            assert os.path.dirname(entry.path) in seen
        seen.add(entry.path)
        stat = os.lstat(entry)
        assert entry.modified == int(stat.st_mtime)
        assert entry.mode == stat.st_mode & 0xFFFF
        assert (entry.owner, entry.group) == (stat.st_uid, stat.st_gid)
        if not entry.is_directory:
            assert entry.apparent_bytes == stat.st_size
    assert seen == {str(tree), *(str(p) for p in tree.rglob("*"))}
    assert {e.path for e in scan.directories()} == {
        str(tree),
        str(tree / "a"),
        str(tree / "a" / "b"),
    }


def test_an_entry_leads_to_those_in_it_and_outlives_its_scan(tree: Path) -> None:
    (root,) = poach.scan(tree).roots
    assert (root.kind, root.depth, root.entries) == ("directory", 0, 7)
    assert {e.name for e in root.files()} == {"empty", "link"}
    (a,) = root.directories()
    assert (a.name, a.depth, a.modified) == ("a", 1, None)
    assert {e.name for e in a.walk()} == {"a", "b", "one.txt", "two.txt", "three.dat"}
    assert sum(e.apparent_bytes for e in a.files()) == 5000
    (same,) = root.directories()
    assert a == same and hash(a) == hash(same) and a != root
    assert "directory" in repr(a)


def test_without_files_there_are_directories_alone(tree: Path) -> None:
    scan = poach.scan(tree, files=False)
    assert scan.totals["files"] == 4
    assert {e.kind for e in scan} == {"directory"}
    assert scan.roots[0].files() == []


def test_a_limit_of_memory_leaves_the_totals_as_they_are(tree: Path) -> None:
    whole, scan = poach.scan(tree), poach.scan(tree, memory=1)
    assert scan.totals == whole.totals
    assert len(list(scan)) < len(list(whole)) == 8
    assert any(entry.summed for entry in scan) and not any(entry.summed for entry in whole)


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes there")
def test_names_that_are_no_text_lead_to_their_files(tmp_path: Path) -> None:
    name = b"\xff\n\xfe"
    with open(os.fsencode(tmp_path) + b"/" + name, "wb") as file:
        file.write(b"content")
    scan = poach.scan(os.fsencode(tmp_path), reports="largest-files")
    (entry,) = (e for e in scan if e.kind == "file")
    assert os.fsencode(entry.name) == name
    with open(entry, "rb") as file:
        assert file.read() == b"content"
    assert os.fsencode(scan.reports["largest-files"][0]["path"]).endswith(name)


def test_what_counts_can_be_chosen(tree: Path) -> None:
    def names(**choice: Any) -> set[str]:
        return {e.name for e in poach.scan(tree, **choice) if e.kind != "directory"}

    assert names(exclude="*.txt") == {"three.dat", "empty", "link"}
    assert names(exclude=["*.txt", "a/b"]) == {"empty", "link"}
    assert names(include="*.txt") == {"one.txt", "two.txt"}
    assert names(include_regex=r"b/t[a-z]+\.") == {"two.txt", "three.dat"}
    assert names(kinds="symlink") == {"link"}
    assert names(min_length=100, max_length=100) == {"three.dat"}
    assert names(before=0) == set()
    assert names(since=0, kinds=["file"]) == {"one.txt", "two.txt", "three.dat", "empty"}


def test_every_report_is_a_sequence_of_dictionaries(tree: Path) -> None:
    scan = poach.scan(tree, reports=list(poach.REPORTS), facts=True)
    reports = scan.reports
    assert list(reports) == list(poach.REPORTS)
    for name, report in reports.items():
        assert report.name == name
        assert list(report) == report.rows() == [report[at] for at in range(len(report))]
        assert all(list(row) == report.columns for row in report)
        assert report.to_dict()["rows"] == report.rows()
        with pytest.raises(IndexError, match="row"):
            report[len(report)]
    assert reports["largest-files"][-1]["path"].endswith("empty")
    assert {row["path"] for row in reports["duplicates"]} == {
        str(tree / "a" / "one.txt"),
        str(tree / "a" / "b" / "two.txt"),
    }
    assert [row["path"] for row in reports["empty-files"]] == [str(tree / "empty")]
    assert reports["symlinks"][0]["state"] == "broken"
    assert reports["owners"][0]["uid"] == os.getuid()
    assert len(poach.scan(tree, reports="largest-files", top=1).reports["largest-files"]) == 1


def test_what_cannot_be_read_is_listed(tmp_path: Path) -> None:
    scan = poach.scan([tmp_path, tmp_path / "not there"], reports="errors")
    (error,) = scan.errors
    assert error["path"] == str(tmp_path / "not there") and error["message"]
    assert scan.totals["errors"] == 1 and scan.totals["directories"] == 1
    assert scan.reports["errors"][0]["path"] == error["path"]


def test_documents_are_written_and_read_back(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    scan = poach.scan(tree)
    document = scan.to_dict()
    assert document["totals"]["files"] == 4 and document["complete"]
    assert len(document["tree"]) == 8
    assert len(scan.to_dict(depth=0)["tree"]) == 1
    out = tmp_path_factory.mktemp("documents")
    for format in ("json", "ndjson", "csv", "ncdu", "snapshot", "html"):
        scan.write(out / format, format)
        assert (out / format).stat().st_size > 0
    assert json.loads((out / "json").read_text())["totals"] == document["totals"]
    for format in ("ncdu", "snapshot"):
        again = poach.read(out / format)
        assert again.totals == scan.totals
        assert {e.name for e in again if e.depth} == {e.name for e in scan if e.depth}
    before = poach.read(out / "snapshot")
    (tree / "new").write_bytes(b"x" * 10_000)
    differences = poach.diff(before, poach.scan(tree), by="apparent")
    (new,) = (d for d in differences["differences"] if d["change"] == "new")
    assert new["path"].endswith("new") and new["delta"] == 10_000


def test_bad_input_is_refused_with_words(tree: Path) -> None:
    bad: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ValueError, "threads", {"threads": 0}),
        (ValueError, "threads", {"threads": 100_000}),
        (OverflowError, "negative", {"threads": -1}),
        (ValueError, "split", {"engine": "diesel"}),
        (ValueError, "largest-files", {"reports": "smallest"}),
        (ValueError, "entries", {"by": "weight"}),
        (ValueError, "symlink", {"kinds": "door"}),
        (ValueError, "exclude", {"exclude": "a["}),
        (ValueError, "include", {"include_regex": "a("}),
        (ValueError, "interval", {"interval": -1.0}),
        (TypeError, "callable", {"progress": 5}),
    ]
    for error, words, arguments in bad:
        with pytest.raises(error, match=words):
            poach.scan(tree, **arguments)
    with pytest.raises(ValueError, match="no path"):
        poach.scan([])
    with pytest.raises(ValueError, match="NUL"):
        poach.scan("a\0b")
    with pytest.raises(TypeError):
        poach.scan(5)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        poach.read(tree / "not there")
    with pytest.raises(ValueError, match="neither"):
        poach.read(tree / "a" / "one.txt")
    scan = poach.scan(tree, files=False)
    with pytest.raises(ValueError, match="files"):
        scan.write(tree / "out", "snapshot")
    with pytest.raises(ValueError, match="format"):
        scan.write(tree / "out", "pdf")  # type: ignore[arg-type]
    with pytest.raises(OSError):
        scan.write(tree / "no" / "such" / "directory", "json")


def test_progress_is_told_at_the_end(tree: Path) -> None:
    told: list[poach.Progress] = []
    poach.scan(tree, progress=told.append)
    last = told[-1]
    assert last.entries == 8 and last.elapsed >= 0 and last.to_compare == 0
    assert last.compared is None and isinstance(last.path, str) and last.bytes >= 0


def test_an_exception_of_the_callback_is_raised(tree: Path) -> None:
    class Mine(Exception):
        pass

    def progress(_: poach.Progress) -> None:
        raise Mine

    with pytest.raises(Mine):
        poach.scan(tree, progress=progress)


def test_threads_scan_at_once(tree: Path) -> None:
    totals: list[Any] = []
    threads = [
        threading.Thread(target=lambda: totals.append(poach.scan(tree).totals)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(totals) == 4 and all(each == totals[0] for each in totals)
