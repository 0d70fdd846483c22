"""The measurements: the document's shape, wherever it can be had."""

import platform
from typing import Any

import poach
import pytest

X86 = platform.machine() in ("x86_64", "AMD64")


def measured(*arguments: Any, **more: Any) -> dict[str, Any]:
    """A measurement; where this machine has one processor or lets no thread be bound, the test is left out."""
    try:
        return poach.measure(*arguments, **more)
    except RuntimeError as error:
        pytest.skip(f"cannot be measured here: {error}")


@pytest.mark.skipif(not X86, reason="no total store order")
def test_the_classic_tests_show_store_buffering_alone() -> None:
    found = measured("classic", runs=300)
    assert found["schema"] == 1 and found["host"]["cpu"]
    assert found["capacity"] is None or found["host"]["documented"]
    counts = {each["test"]: each for each in found["classic"]}
    assert len(counts) >= 4
    assert all(each["allowed"] or each["seen"] == 0 for each in counts.values())


@pytest.mark.skipif(not X86, reason="no total store order")
def test_the_litmus_test_has_points_with_rounds() -> None:
    found = measured(["capacity", "litmus", "cost"], seconds=0.0)
    assert found["sweeps"] is not None and found["classic"] == []
    for run in found["litmus"]:
        assert run["points"] and all(point["rounds"] >= 1 for point in run["points"])


def test_bad_input_is_refused_with_words() -> None:
    for words, parts, more in [
        ("parts", "weight", {}),
        ("seconds", "classic", {"seconds": -1.0}),
        ("runs", "classic", {"runs": 0}),
    ]:
        with pytest.raises(ValueError, match=words):
            poach.measure(parts, **more)  # type: ignore[arg-type]
