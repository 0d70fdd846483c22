"""A parallel file-system scan, measurements of this processor's store buffer, and a model checker of work-stealing queues.

>>> import poach
>>> scan = poach.scan(".", reports=["largest-files"])
>>> scan.totals["files"] > 0
True
"""

from ._poach import (
    ENGINES,
    QUEUES,
    REPORTS,
    Entries,
    Entry,
    Progress,
    Report,
    Scan,
    __version__,
    check,
    diff,
    measure,
    read,
    scan,
)

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
