"""The whole gate on tiny benchmarks whose values were worked out with the design."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from conftest import SHARED
from tiny import Qrels, Run

from falsify_cli import gate

pytestmark = pytest.mark.shared
N_BOOT = 4000


def worked_examples() -> list[Any]:
    path = SHARED / "worked_examples.json"
    if not path.exists():
        return [pytest.param({}, id="absent")]
    examples = json.loads(path.read_text(encoding="utf-8"))
    return [pytest.param(example, id=example["name"]) for example in examples]


def mappings_of(example: dict[str, Any]) -> tuple[Run, Qrels]:
    run: Run = {}
    qrels: Qrels = {}
    for query, _, doc, _, score, _ in map(str.split, example["run"]):
        run.setdefault(query, {})[doc] = float(score)
    for query, _, doc, grade in map(str.split, example["qrels"]):
        qrels.setdefault(query, {})[doc] = int(grade)
    return run, qrels


@pytest.mark.parametrize("example", worked_examples())
def test_the_gate_finds_the_values_of_the_worked_example(
    example: dict[str, Any],
) -> None:
    found = gate(
        *mappings_of(example),
        example["metric"],
        top_k=example["top_k"],
        corpus=example["corpus"],
        n_boot=N_BOOT,
    )
    assert found.benchmark.queries_judged == example["queries"]
    assert found.score == pytest.approx(example["score"], abs=1e-12)
    for letter, null in found.nulls.items():
        error = 1e-12 if null.exact else 6 * null.standard_error + 1e-12
        expected, delta = example["null"][letter], example["delta"][letter]
        assert null.expected == pytest.approx(expected, abs=error), letter
        assert null.delta == pytest.approx(delta, abs=error), letter
        assert null.delta == pytest.approx(found.score - null.expected, abs=1e-12)
    p = example["p_A"]
    error = 5 * math.sqrt(p * (1 - p) / N_BOOT) + 1 / N_BOOT
    assert found.nulls["A"].p_value == pytest.approx(p, abs=error)


@pytest.mark.parametrize("example", worked_examples())
def test_files_and_mappings_are_judged_alike(
    example: dict[str, Any], tmp_path: Any
) -> None:
    run, qrels = tmp_path / "run", tmp_path / "qrels"
    run.write_text("\n".join(example["run"]))
    qrels.write_text("\n".join(example["qrels"]))
    asked: dict[str, Any] = {
        "metric": example["metric"],
        "top_k": example["top_k"],
        "corpus": example["corpus"],
        "n_boot": 200,
    }
    from_files = gate(run, qrels, **asked).to_dict(per_query=True)
    from_mappings = gate(*mappings_of(example), **asked).to_dict(per_query=True)
    assert from_files["results"] == from_mappings["results"]
    assert from_files["benchmark"] == from_mappings["benchmark"]
    assert from_files["verdict"] == from_mappings["verdict"]
