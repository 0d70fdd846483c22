from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict, Union, final

__all__ = [
    "ENGINES",
    "QUEUES",
    "REPORTS",
    "Entries",
    "Entry",
    "Progress",
    "Report",
    "Scan",
    "__version__",
    "check",
    "diff",
    "measure",
    "read",
    "scan",
]

__version__: str
REPORTS: tuple[str, ...]
ENGINES: tuple[str, ...]
QUEUES: tuple[str, ...]

_Path = Union[str, bytes, PathLike[str], PathLike[bytes]]
_Names = Union[str, Sequence[str]]
_By = Literal["disk", "apparent", "entries"]
_Kind = Literal["directory", "file", "symlink", "other"]
_Format = Literal["json", "ndjson", "csv", "ncdu", "snapshot", "html"]

class _Totals(TypedDict):
    entries: int
    directories: int
    files: int
    symlinks: int
    other: int
    errors: int
    apparent_bytes: int
    disk_bytes: int

class _Failure(TypedDict):
    path: str
    message: str

class _Sizes(TypedDict):
    disk_bytes: int
    apparent_bytes: int

class _ReportDict(TypedDict):
    rows: list[dict[str, Any]]
    left_out: int
    totals: _Sizes | None

@final
class Progress:
    @property
    def entries(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def compared(self) -> int | None: ...
    @property
    def to_compare(self) -> int: ...
    @property
    def elapsed(self) -> float: ...

@final
class Entry:
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def kind(self) -> _Kind: ...
    @property
    def is_directory(self) -> bool: ...
    @property
    def depth(self) -> int: ...
    @property
    def apparent_bytes(self) -> int: ...
    @property
    def disk_bytes(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def counted_elsewhere(self) -> bool: ...
    @property
    def unread(self) -> bool: ...
    @property
    def summed(self) -> bool: ...
    @property
    def modified(self) -> int | None: ...
    @property
    def mode(self) -> int | None: ...
    @property
    def owner(self) -> int | None: ...
    @property
    def group(self) -> int | None: ...
    def directories(self) -> list[Entry]: ...
    def files(self) -> list[Entry]: ...
    def walk(self) -> Entries: ...
    def __fspath__(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Entries(Iterator[Entry]):
    def __iter__(self) -> Entries: ...
    def __next__(self) -> Entry: ...

@final
class Report:
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def left_out(self) -> int: ...
    @property
    def totals(self) -> _Sizes | None: ...
    def rows(self) -> list[dict[str, Any]]: ...
    def to_dict(self) -> _ReportDict: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> dict[str, Any]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Scan:
    @property
    def totals(self) -> _Totals: ...
    @property
    def errors(self) -> list[_Failure]: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def taken(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def roots(self) -> list[Entry]: ...
    @property
    def repeated(self) -> list[str]: ...
    @property
    def reports(self) -> dict[str, Report]: ...
    def __iter__(self) -> Entries: ...
    def directories(self) -> Entries: ...
    def to_dict(
        self,
        *,
        depth: int | None = None,
        top: int | None = None,
        min_size: int = 0,
        directories_only: bool = False,
        by: _By = "disk",
    ) -> dict[str, Any]: ...
    def write(self, path: _Path, /, format: _Format = "json", *, by: _By = "disk") -> None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def scan(
    paths: _Path | Iterable[_Path],
    /,
    *,
    threads: int | None = None,
    engine: str = "split",
    files: bool = True,
    facts: bool = False,
    sizes: bool = True,
    one_file_system: bool = False,
    follow_paths: bool = False,
    handles: int | None = None,
    memory: int | None = None,
    exclude: _Names | None = None,
    exclude_regex: _Names | None = None,
    include: _Names | None = None,
    include_regex: _Names | None = None,
    kinds: _Names | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    since: float | None = None,
    before: float | None = None,
    ignore_files: bool = False,
    exclude_caches: bool = False,
    exclude_pseudo: bool = False,
    reports: _Names | None = None,
    # 20.
    top: int | None = ...,
    by: _By = "disk",
    recent: int = 86400,
    progress: Callable[[Progress], object] | None = None,
    interval: float = 0.1,
) -> Scan: ...
def read(path: _Path, /) -> Scan: ...
def diff(old: Scan, new: Scan, /, *, by: _By = "disk") -> dict[str, Any]: ...
def measure(
    parts: _Names | None = None,
    /,
    *,
    seconds: float = 30.0,
    runs: int = 200_000,
    seed: int = 1,
) -> dict[str, Any]: ...
def check(
    queue: str,
    /,
    *,
    policy: str | None = None,
    memory: Literal["tso", "c11"] = "tso",
    store_buffer: int = 2,
    egress: bool = True,
    delta: int | None = None,
    stores_between: int | None = None,
    tasks: int | None = None,
    thieves: int = 1,
    steals: int = 2,
    scenes: _Names | None = None,
    preemptions: int | None = None,
    random: int | None = None,
    seed: int = 1,
    replay: str | None = None,
    seconds: float | None = 60.0,
    quick: bool = True,
) -> dict[str, Any]: ...
