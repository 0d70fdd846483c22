"""Tables, as others read them by Arrow's protocol."""

import os
import sys
from pathlib import Path

import poach
import pytest


def tree(path: Path) -> Path:
    (path / "a").mkdir()
    (path / "a" / "x.txt").write_bytes(b"1" * 5000)
    (path / "a" / "y.txt").write_bytes(b"1" * 5000)
    return path


def test_the_capsule_has_the_protocols_name(tmp_path: Path) -> None:
    scan = poach.scan(tmp_path, reports="stats")
    for table in (scan, scan.reports["stats"]):
        assert "arrow_array_stream" in repr(table.__arrow_c_stream__())
        # Who asks may ask for a schema. What nobody reads is released all the same.
        assert "arrow_array_stream" in repr(table.__arrow_c_stream__(None))


def test_pyarrow_reads_entries_and_reports(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    scan = poach.scan(tree(tmp_path), facts=True, reports=list(poach.REPORTS))
    table = pyarrow.table(scan)
    table.validate(full=True)
    assert table.column("path").to_pylist() == [entry.path for entry in scan]
    assert table.column("disk_bytes").to_pylist() == [entry.disk_bytes for entry in scan]
    assert table.column("mode").to_pylist() == [entry.mode for entry in scan]
    modified = [int(time.timestamp()) for time in table.column("modified").to_pylist()]
    assert modified == [entry.modified for entry in scan]
    for name, report in scan.reports.items():
        table = pyarrow.table(report)
        table.validate(full=True)
        assert table.num_rows == len(report), name
        assert set(report.columns) <= set(table.column_names)
    largest = pyarrow.table(scan.reports["largest-files"]).to_pylist()
    assert [row["path"] for row in largest] == [row["path"] for row in scan.reports["largest-files"]]
    # A report without rows has its columns and their types.
    empty = pyarrow.table(poach.scan(tmp_path / "a", reports="empty-files").reports["empty-files"])
    assert empty.num_rows == 0 and empty.schema.field("path").type == pyarrow.string()


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes there")
def test_a_path_that_is_no_text_has_its_bytes(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with open(os.fsencode(tmp_path) + b"/\xff", "wb"):
        pass
    rows = pyarrow.table(poach.scan(tmp_path)).to_pylist()
    assert [row["path_bytes"] for row in rows] == [None, os.fsencode(tmp_path) + b"/\xff"]
    assert rows[1]["path"].endswith("\ufffd")


def test_many_batches_are_one_table(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    for number in range(16_400):
        os.mknod(tmp_path / str(number)) if hasattr(os, "mknod") else (tmp_path / str(number)).touch()
    stream = pyarrow.RecordBatchReader.from_stream(poach.scan(tmp_path))
    assert [batch.num_rows for batch in stream] == [16_384, 17]


def test_pandas_makes_a_frame_of_it(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    scan = poach.scan(tree(tmp_path), reports="largest-files")
    frame = (
        pandas.DataFrame.from_arrow(scan)
        if hasattr(pandas.DataFrame, "from_arrow")
        else pyarrow.table(scan).to_pandas()
    )
    files = frame[frame["kind"] == "file"]
    assert files["apparent_bytes"].sum() == 10_000 and len(frame) == 4
