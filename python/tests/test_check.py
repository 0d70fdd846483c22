"""The model checker: clean where it must be, refuted where it must be."""

from typing import Any

import poach
import pytest


def test_chase_lev_is_clean_and_without_its_fence_it_is_not() -> None:
    clean = poach.check("chase-lev", store_buffer=1, steals=1, scenes="brief", seconds=None)
    assert clean["verdict"] == "clean" and clean["complete"] and clean["executions"] > 1
    found = poach.check("unfenced", store_buffer=1)
    assert found["verdict"] == "violation"
    run = found["runs"][-1]
    assert run["kind"] == "duplicate" and run["why"]
    again = poach.check("unfenced", store_buffer=1, replay=run["choices"], scenes=run["scene"])
    assert again["verdict"] == "violation"


def test_a_delta_one_too_small_is_found() -> None:
    bound = poach.check("ff-cl", scenes="drain")
    assert bound["verdict"] == "clean"
    below = poach.check("ff-cl", delta=bound["delta"] - 1, tasks=bound["delta"] + 1, scenes="drain")
    assert below["verdict"] == "violation"


def test_the_machine_is_that_of_the_x86_tso_paper() -> None:
    found = poach.check("litmus")
    assert found["verdict"] == "clean"
    assert {test["found"] for test in found["tests"]} == {"allowed", "forbidden"}
    cut = poach.check("litmus", seconds=0.0)
    assert cut["verdict"] == "incomplete" and not cut["complete"]
    laws = poach.check("laws")
    assert laws["verdict"] == "clean" and len(laws["laws"]) == 5


def test_at_random_from_a_seed() -> None:
    one, same = (poach.check("chase-lev", random=50, seed=7, scenes="brief") for _ in range(2))
    assert one["runs"][0]["executions"] == same["runs"][0]["executions"] == 50
    assert one["verdict"] == "incomplete" and "7" in one["runs"][0]["why"]


def test_bad_input_is_refused_with_words() -> None:
    bad: list[tuple[str, str, dict[str, Any]]] = [
        ("there is no queue", "nothing", {}),
        ("memory", "chase-lev", {"memory": "psc"}),
        ("policy", "chase-lev", {"policy": "soft"}),
        ("policy", "mutex", {"policy": "full"}),
        ("delta", "chase-lev", {"delta": 2}),
        ("delta", "ff-cl", {"delta": 0}),
        ("total store order", "ff-cl", {"memory": "c11"}),
        ("tasks", "chase-lev", {"tasks": 61}),
        ("thieves", "chase-lev", {"thieves": 8}),
        ("steals", "chase-lev", {"thieves": 7, "steals": 9}),
        ("store_buffer", "chase-lev", {"store_buffer": 101}),
        ("scenes", "chase-lev", {"scenes": "opera"}),
        ("replay", "chase-lev", {"replay": "!"}),
        ("one of them", "chase-lev", {"replay": "0", "random": 5}),
        ("seconds", "chase-lev", {"seconds": -1.0}),
    ]
    for words, queue, arguments in bad:
        with pytest.raises(ValueError, match=words):
            poach.check(queue, **arguments)


def test_every_queue_can_be_asked_of() -> None:
    for queue in poach.QUEUES:
        found = poach.check(queue, random=2, scenes="drain", tasks=2, store_buffer=1)
        assert found["algorithm"] == queue and found["executions"] >= 1
