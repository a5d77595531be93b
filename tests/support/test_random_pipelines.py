"""The generator of random pipelines keeps what it promises."""

import numpy as np
import pytest
from random_pipelines import disagreement, random_inputs, random_params, random_pipeline, random_regions

from tilesmith.scheduler.frontends.document.document import load, to_document
from tilesmith.scheduler.interpreter.interpreter import interpret

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pipeline_is_valid_tame_and_cheap(seed):
    pipeline = load(random_pipeline(seed))
    assert 1 <= len(pipeline.stages) <= 8
    assert load(to_document(pipeline)) == pipeline
    params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
    inputs = random_inputs(pipeline, seed, regions, params)
    outputs = interpret(pipeline, inputs, params, regions)
    assert set(outputs) == set(pipeline.outputs)
    for name, components in outputs.items():
        for array, type_ in zip(components, pipeline.stage(name).types, strict=True):
            assert array.dtype == type_.numpy
            assert array.shape == tuple(extent for _, extent in reversed(regions[name]))
            assert array.dtype.kind != "f" or np.abs(array).max(initial=0) < 200


def test_the_same_seed_makes_the_same_pipeline_and_data():
    assert random_pipeline(7) == random_pipeline(7)
    pipeline = load(random_pipeline(7))
    assert random_params(pipeline, 3) == random_params(pipeline, 3)
    assert random_regions(pipeline, 3) == random_regions(pipeline, 3)
    one, two = random_inputs(pipeline, 3), random_inputs(pipeline, 3)
    assert all(np.array_equal(one[n].array, two[n].array) and one[n].min == two[n].min for n in one)


def test_the_whole_language_occurs():
    texts = " ".join(str(random_pipeline(seed)) for seed in range(200))
    words = (
        "sum( product( min( max( any( all( argmin( argmax( select( mux( lerp( clamp( abs( absd( sat_add( sat_sub( "
        "halving_add( rounding_halving_add( rounding_shift_right( mul_shift_right( random( sqrt( exp( log( pow( sin( "
        "cos( tan( asin( acos( atan( atan2( tanh( floor( ceil( round( trunc( sat_uint8( 'updates' 'where' 'storage' "
        "'boundary' 'params' // % ** << >> & | ^ ~ -> repeat_edge repeat_image mirror_image mirror_interior constant "
        "float64 int64 uint64 bool .min. .extent."
    )
    missing = [w for w in words.replace("->", "not").split() if w not in texts]
    assert missing == []


def test_disagreement():
    a = np.array([[1, 2], [3, 4]], np.int32)
    assert disagreement(a, a) is None
    assert "1 of 4 wrong, at (1, 0): 3 instead of 9" in disagreement(a, np.array([[1, 2], [9, 4]], np.int32))
    assert "instead of int64" in disagreement(a, a.astype(np.int64))
    x = np.array([1.0, 1000.0], np.float32)
    assert disagreement(x + np.float32(0.005), x) is None
    assert disagreement(x + np.float32(0.02), x) is not None
    assert disagreement(np.array([np.nan, 1000.0], np.float32), x) is not None
