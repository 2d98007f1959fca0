"""The kernel of ranking losses, which `akin.torch` uses on the CPU, with numpy alone."""

import json
from typing import Any

import akin
import numpy as np
import pytest
from akin import _akin
from conftest import golden
from numpy.typing import NDArray

UPPER = {"temperature": 0.01, "slope": 100.0, "threshold": 0.05, "offset": None, "start": 0.5}


def settings(**changes: Any) -> str:
    return json.dumps({"sigmoid": False, "upper": UPPER, "lower": None, "value": "precision", **changes})


@pytest.mark.parametrize("name", ["sup_ap", "smooth_ap"])
def test_golden_values_of_average_precision(name: str) -> None:
    checked = 0
    for case in golden(name):
        params, inputs, outputs = case["params"], case["inputs"], case["outputs"]
        # The others are of single precision, or have a query without a positive, whose loss is no number there.
        if "ref_embeddings" in inputs or "official" in case["case"] or "nopos1" in case["case"]:
            continue
        rows = np.array(inputs["embeddings"])
        fine = np.array(inputs["labels"]).reshape(len(rows), -1)[:, 0]
        if "rho" in params:
            line = {"slope": params["rho"] if params["rho"] >= 0 else None, "offset": params.get("offset")}
            upper = UPPER | line | {"temperature": params["tau"], "threshold": params.get("delta"), "start": params.get("start", 0.5)}
            chosen = settings(upper=upper)
        else:
            chosen = settings(sigmoid=True, upper={"temperature": params["tau"], "slope": None})
        places = (fine[:, None] == fine).astype(np.int64)
        losses, slopes, counts = _akin.rank_losses(rows @ rows.T, places, np.tile([0.0, 1.0], (len(rows), 1)), chosen)
        assert losses.sum() / counts.sum() == pytest.approx(outputs["loss"], rel=1e-9)
        gradient = (slopes @ rows + slopes.T @ rows) / counts.sum()
        expected = np.array(outputs["grad_embeddings"])
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        checked += 1
    assert checked >= 3


def test_float32_is_that_of_float64_and_any_row_order() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores, places = rows @ rows.T, rng.integers(0, 3, size=(40, 40))
    relevances: NDArray[np.float64] = np.tile([0.0, 0.5, 1.0], (40, 1))
    lower = {"slope": 25.0, "start": 0.5, "leak": 10.0}
    for value in ("precision", "discounted_gain", {"recall": {"cutoffs": [1, 4], "temperature": 1.0}}):
        chosen = settings(lower=lower, value=value)
        whole, slopes, counts = _akin.rank_losses(scores, places, relevances, chosen)
        assert (counts == 1).all()
        single, single_slopes, _ = _akin.rank_losses(scores.astype(np.float32), places, relevances, chosen)
        np.testing.assert_allclose(single, whole, atol=1e-2)
        assert single.dtype == single_slopes.dtype == np.float32
        some, _, _ = _akin.rank_losses(scores[20:], places[20:], relevances[20:], chosen)
        np.testing.assert_array_equal(some, whole[20:])
        order = rng.permutation(40)
        again, again_slopes, _ = _akin.rank_losses(
            np.ascontiguousarray(scores[:, order]), np.ascontiguousarray(places[:, order]), relevances, chosen
        )
        np.testing.assert_allclose(again, whole, rtol=1e-9)
        np.testing.assert_allclose(again_slopes, slopes[:, order], atol=1e-9)
    none, slopes, counts = _akin.rank_losses(scores, np.zeros_like(places), relevances, settings())
    assert not none.any() and not slopes.any() and not counts.any()


def test_what_it_is_not_given_is_refused() -> None:
    scores, places, relevances = np.zeros((2, 3)), np.zeros((2, 3), np.int64), np.ones((2, 1))
    for wrong in [
        (scores, places[:1], relevances, settings()),
        (scores, places, relevances[:1], settings()),
        (scores, places + 1, relevances, settings()),
        (scores, places - 1, relevances, settings()),
        (scores, places, relevances * np.nan, settings()),
        (scores, places, -relevances, settings()),
        (scores.T, places.T, relevances, settings()),
        (np.zeros((2, 0)), np.zeros((2, 0), np.int64), relevances, settings()),
        (scores, places, relevances, "{"),
        (scores, places, relevances, settings(upper={"temperature": 0.0})),
    ]:
        with pytest.raises(akin.Error):
            _akin.rank_losses(*wrong)
    with pytest.raises(TypeError):
        _akin.rank_losses(scores.astype(np.int64), places, relevances, settings())
    losses, slopes, _ = _akin.rank_losses(scores * np.nan, places, relevances, settings())
    assert np.isnan(losses).all() and np.isnan(slopes).all()
