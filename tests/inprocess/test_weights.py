"""Weights: images that a compiled pipeline has already, since what it was made of has their values."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import tilesmith as ts

DOCUMENT = """
format: 1
name: scaled
inputs:
  - {name: image, type: float32, dims: [x]}
  - {name: factors, type: float32, dims: [x]}
stages:
  - {name: result, dims: [x], value: image(x) * factors(x)}
outputs: [result]
estimates: {result: [[0, 4]]}
"""
IMAGE, FACTORS = np.arange(4, dtype=np.float32), np.float32([1, 2, 3, 4])


@pytest.fixture(scope="module")
def scaled():
    imported = ts.ImportedPipeline(ts.pipeline_of_text(DOCUMENT), weights={"factors": FACTORS})
    return ts.compile(imported)


def test_a_call_need_not_give_them(scaled):
    np.testing.assert_array_equal(scaled(IMAGE), IMAGE * FACTORS)
    np.testing.assert_array_equal(scaled(image=IMAGE), IMAGE * FACTORS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(scaled))(IMAGE), IMAGE * FACTORS)
    out = np.empty(4, np.float32)
    scaled(IMAGE, out=out)
    np.testing.assert_array_equal(out, IMAGE * FACTORS)


def test_a_call_may_give_others(scaled):
    np.testing.assert_array_equal(scaled(IMAGE, factors=-FACTORS), IMAGE * -FACTORS)
    np.testing.assert_array_equal(scaled(IMAGE, -FACTORS), IMAGE * -FACTORS)


def test_the_signature_has_what_is_asked(scaled):
    assert str(scaled.signature).startswith("scaled(image, *, out=None")
    assert list(inspect.signature(scaled).parameters)[:2] == ["image", "out"]
    with pytest.raises(ts.ArgumentError, match="input 'image' is missing"):
        scaled()
    with pytest.raises(ts.ArgumentError, match="given twice"):
        scaled(IMAGE, FACTORS, factors=FACTORS)


def test_what_is_not_imported_has_none():
    with pytest.raises(ts.ArgumentError, match="input 'factors' is missing"):
        ts.compile(DOCUMENT)(IMAGE)
