"""Pipelines by name and size."""

import pytest

from benchmarks.documents import pipeline_of


@pytest.mark.parametrize("name", ["harris", "lens_blur", "vdsr", "machado_blur"])
def test_other_sizes_than_the_estimates(name):
    sized, pipeline = pipeline_of(f"{name}@700x400"), pipeline_of(name)
    assert sized.stages == pipeline.stages
    before, after = dict(pipeline.estimates), dict(sized.estimates)
    for i in pipeline.inputs:
        for d, old, new in zip(i.dims, before[i.name], after[i.name], strict=True):
            assert new == ({"x": (0, 700), "y": (0, 400)}.get(d, old))
    (output,) = pipeline.outputs
    margins = [(old[1] - new[1]) for old, new in zip(before[output], after[output], strict=True)]
    (image,) = {before[i.name][:2] for i in pipeline.inputs if i.dims[:2] == ("x", "y")}
    assert margins[:2] == [image[0][1] - 700, image[1][1] - 400]
    assert not any(margins[2:])


def test_names_and_files(tmp_path):
    assert pipeline_of("blur").name == "blur"
    with pytest.raises(OSError, match="missing"):
        pipeline_of(str(tmp_path / "missing.json"))


def test_coarser_levels_keep_their_proportion():
    before, after = (dict(pipeline_of(name).estimates) for name in ("drawn_4", "drawn_4@640x240"))
    assert before["image_1"] == ((0, 1280), (0, 720))
    for name, region in before.items():
        (_, x), (_, y) = region
        assert after[name] == ((0, x // 2), (0, y // 3))


def test_tables_stay_as_they_are():
    before, after = (dict(pipeline_of(name).estimates) for name in ("camera_pipe", "camera_pipe@640x480"))
    assert after["matrix_3200"] == before["matrix_3200"] == ((0, 4), (0, 3))
