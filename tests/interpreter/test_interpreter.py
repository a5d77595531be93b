"""Whole pipelines against loops in plain Python."""

import math

import numpy as np
import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import ArgumentError, Image, RegionError, interpret, required_regions


def pipeline(*stages, inputs=(), outputs=None, params=()):
    names = [s["name"] for s in stages]
    outputs = outputs or [names[-1]]
    dims = {s["name"]: s["dims"] for s in stages}
    return load(
        {
            "format": 1,
            "name": "test",
            "params": list(params),
            "inputs": list(inputs) or [{"name": "unused", "type": "uint8", "dims": ["x"]}],
            "stages": list(stages),
            "outputs": outputs,
            "estimates": {n: [[0, 4]] * len(dims[n]) for n in outputs},
        }
    )


def stage(name, dims, value, **more):
    return {"name": name, "dims": list(dims), "value": value, **more}


def image(array, *low):
    array = np.asarray(array)
    return Image(array, low or (0,) * array.ndim)


UNUSED = {"unused": image(np.zeros(1, np.uint8))}
IN1 = {"name": "f", "type": "int32", "dims": ["x"]}
IN2 = {"name": "f", "type": "int32", "dims": ["x", "y"]}


def run(p, regions, inputs=None, params=None):
    """The only component of the only output."""
    (result,) = interpret(p, UNUSED if inputs is None else inputs, params or {}, regions).values()
    (component,) = result
    return component


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-100, 100, shape).astype(np.int32)


class TestStages:
    def test_axes_are_the_reverse_of_the_dims(self):
        p = pipeline(stage("g", "xyc", "x + 10 * y + 100 * c"))
        result = run(p, {"g": ((1, 4), (2, 3), (5, 2))})
        assert result.shape == (2, 3, 4)
        assert result.dtype == np.int32
        assert result.tolist() == [[[x + 10 * y + 100 * c for x in range(1, 5)] for y in (2, 3, 4)] for c in (5, 6)]

    def test_inputs_have_a_place(self):
        p = pipeline(stage("g", "xy", "f(x, y) + f.min.x + 1000 * f.extent.y"), inputs=[IN2])
        data = numbers(3, 5)
        result = run(p, {"g": ((-2, 5), (7, 3))}, {"f": image(data, -2, 7)})
        assert np.array_equal(result, data - 2 + 3000)

    def test_stencils_through_a_chain(self):
        p = pipeline(
            stage("a", "xy", "f(x - 1, y) + f(x + 1, y)"), stage("b", "xy", "a(x, y - 1) * a(x, y + 2)"), inputs=[IN2]
        )
        data = numbers(8, 6)
        result = run(p, {"b": ((1, 4), (1, 5))}, {"f": image(data)})

        def a(x, y):
            return int(data[y, x - 1]) + int(data[y, x + 1])

        assert result.tolist() == [[a(x, y - 1) * a(x, y + 2) for x in range(1, 5)] for y in range(1, 6)]

    def test_sampling_down_and_up(self):
        p = pipeline(
            stage("down", "x", "f(2 * x - 1) + f(2 * x)"),
            stage("up", "x", "down(x // 2) - down((x + 1) // 3)"),
            inputs=[IN1],
        )
        data = numbers(40)
        result = run(p, {"up": ((-5, 12),)}, {"f": image(data, -20)})

        def down(x):
            return int(data[2 * x - 1 + 20]) + int(data[2 * x + 20])

        assert result.tolist() == [down(x // 2) - down((x + 1) // 3) for x in range(-5, 7)]

    def test_transposed_diagonal_and_constant_reads(self):
        p = pipeline(stage("g", "xy", "f(y, x) + 1000 * f(x, x) + f(2, y - x)"), inputs=[IN2])
        data = numbers(12, 12)
        result = run(p, {"g": ((0, 4), (4, 4))}, {"f": image(data, 0, 0)})
        expected = [
            [int(data[x, y]) + 1000 * int(data[x, x]) + int(data[y - x, 2]) for x in range(4)] for y in range(4, 8)
        ]
        assert result.tolist() == expected

    def test_data_dependent_gather(self):
        p = pipeline(
            stage("table", "i", "i * i - 5"),
            stage("g", "xy", "table(clamp(f(x, y), -3, 9)) + f(clamp(f(y, x) % 4, 0, 3), y)"),
            inputs=[IN2],
        )
        data = numbers(4, 4)
        result = run(p, {"g": ((0, 4), (0, 4))}, {"f": image(data)})
        expected = [
            [min(max(int(data[y, x]), -3), 9) ** 2 - 5 + int(data[y, int(data[x, y]) % 4]) for x in range(4)]
            for y in range(4)
        ]
        assert result.tolist() == expected

    def test_tuples(self):
        p = pipeline(
            stage("pair", "x", ["f(x) // 3", "float32(f(x)) * 0.5"]),
            stage("g", "x", "float32(pair(x + 1)[0]) - pair(x)[1]"),
            inputs=[IN1],
            outputs=["pair", "g"],
        )
        data = numbers(6)
        result = interpret(p, {"f": image(data)}, {}, {"pair": ((0, 5),), "g": ((0, 5),)})
        first, second = result["pair"]
        assert first.tolist() == [int(v) // 3 for v in data[:5]]
        assert second.dtype == np.float32
        assert second.tolist() == [v / 2 for v in data[:5]]
        assert result["g"][0].tolist() == [int(data[x + 1]) // 3 - data[x] / 2 for x in range(5)]

    def test_a_scalar_stage(self):
        p = pipeline(stage("s", "", "sum(f(r) for r in range(0, 4))"), stage("g", "x", "s() + x"), inputs=[IN1])
        data = numbers(4)
        assert run(p, {"g": ((0, 2),)}, {"f": image(data)}).tolist() == [data.sum(), data.sum() + 1]

    def test_a_scalar_output(self):
        p = pipeline(stage("s", "", "max(f(r) for r in range(0, 4))"), inputs=[IN1])
        data = numbers(4)
        assert run(p, {"s": ()}, {"f": image(data)}) == data.max()

    def test_params_and_their_defaults(self):
        params = [{"name": "k", "type": "int32", "default": 7}, {"name": "w", "type": "float32"}]
        p = pipeline(stage("g", "x", "w * float32(x + k)"), params=params)
        assert run(p, {"g": ((0, 2),)}, params={"w": 0.5}).tolist() == [3.5, 4.0]
        assert run(p, {"g": ((0, 2),)}, params={"w": 0.5, "k": 1}).tolist() == [0.5, 1.0]

    def test_select_logic_and_compare(self):
        p = pipeline(stage("g", "x", "select(f(x) > 0 and not (f(x) == 3 or x >= 4), f(x), -1) if x != 2 else 77"),
                     inputs=[IN1])  # fmt: skip
        data = np.array([5, 3, 4, -2, 8, 9], np.int32)
        assert run(p, {"g": ((0, 6),)}, {"f": image(data)}).tolist() == [5, -1, 77, -1, -1, -1]

    def test_several_outputs_over_different_regions(self):
        p = pipeline(stage("a", "x", "x * 2"), stage("b", "x", "a(x + 5)"), outputs=["a", "b"])
        result = interpret(p, UNUSED, {}, {"a": ((0, 2),), "b": ((-3, 1),)})
        assert result["a"][0].tolist() == [0, 2]
        assert result["b"][0].tolist() == [4]

    def test_random_is_the_same_everywhere(self):
        p = pipeline(stage("g", "xy", "random(x, y, 5)"))
        whole = run(p, {"g": ((-3, 9), (-2, 7))})
        part = run(p, {"g": ((1, 3), (0, 2))})
        assert whole.dtype == np.float32
        assert np.array_equal(whole[2:4, 4:7], part)


class TestReductions:
    DATA = numbers(5, 6, seed=3)

    def value(self, text, x=1, y=1):
        p = pipeline(stage("g", "xy", text), inputs=[IN2])
        return run(p, {"g": ((x, 1), (y, 1))}, {"f": image(self.DATA)})[0, 0]

    def window(self):
        return [(r, s, int(self.DATA[1 + s, 1 + r])) for r in range(-1, 3) for s in range(-1, 2)]

    LOOPS = "for r in range(-1, 3) for s in range(-1, 2)"

    def test_sum_product_min_max(self):
        values = [v for _, _, v in self.window()]
        assert self.value(f"sum(f(x + r, y + s) {self.LOOPS})") == sum(values)
        assert self.value(f"min(f(x + r, y + s) {self.LOOPS})") == min(values)
        assert self.value(f"max(f(x + r, y + s) {self.LOOPS})") == max(values)
        product = math.prod(values) % 2**32
        assert self.value(f"product(f(x + r, y + s) {self.LOOPS})") == product - (product >> 31) * 2**32

    def test_a_predicate(self):
        kept = [v for r, s, v in self.window() if v % 2 == 0 and r != s]
        assert self.value(f"sum(f(x + r, y + s) {self.LOOPS} if f(x + r, y + s) % 2 == 0 and r != s)") == sum(kept)

    def test_any_all(self):
        top = max(v for _, _, v in self.window())
        assert self.value(f"any(f(x + r, y + s) == {top} {self.LOOPS})")
        assert not self.value(f"any(f(x + r, y + s) > {top} {self.LOOPS})")
        assert self.value(f"all(f(x + r, y + s) <= {top} {self.LOOPS})")
        assert not self.value(f"all(f(x + r, y + s) < {top} {self.LOOPS})")

    def test_argmin_and_argmax_take_the_first_hit_the_last_loop_being_innermost(self):
        for name, pick in (("argmin", min), ("argmax", max)):
            best = pick(v // 50 for _, _, v in self.window())
            r, s = next((r, s) for r, s, v in self.window() if v // 50 == best)
            found = [self.value(f"{name}(f(x + r, y + s) // 50 {self.LOOPS})[{k}]") for k in range(3)]
            assert found == [r, s, best]

    def test_an_empty_domain(self):
        params = [{"name": "n", "type": "int32"}]

        def empty(text):
            return run(pipeline(stage("g", "x", text), params=params), {"g": ((0, 1),)}, params={"n": 3})[0]

        loop = "for r in range(3, n)"
        assert empty(f"sum(r {loop})") == 0
        assert empty(f"product(r {loop})") == 1
        assert empty(f"min(int16(r) {loop})") == 2**15 - 1
        assert empty(f"max(uint8(r) {loop})") == 0
        assert empty(f"min(float32(r) {loop})") == math.inf
        assert empty(f"max(float32(r) {loop})") == -math.inf
        assert not empty(f"any(r > 0 {loop})")
        assert empty(f"all(r > 0 {loop})")
        assert empty(f"argmin(uint8(r) {loop})[0]") == 3
        assert empty(f"argmin(uint8(r) {loop})[1]") == 255
        assert empty(f"argmax(float32(r) {loop})[1]") == -math.inf

    def test_nothing_better_than_the_worst_is_the_first_point(self):
        p = pipeline(stage("g", "x", "argmin(uint8(255) + uint8(0) * uint8(r) for r in range(4, 9) if r > 5)[0]"))
        assert run(p, {"g": ((0, 1),)}).tolist() == [4]

    def test_bounds_from_params_and_inputs(self):
        p = pipeline(
            stage("g", "x", "sum(f(r) * k for r in range(f.min.x, f.min.x + f.extent.x - k))"),
            inputs=[IN1], params=[{"name": "k", "type": "int32"}],
        )  # fmt: skip
        data = numbers(9)
        assert run(p, {"g": ((0, 1),)}, {"f": image(data, 4)}, {"k": 2}).tolist() == [2 * data[:7].sum()]

    def test_sums_of_floats_are_in_order_and_in_their_type(self):
        p = pipeline(stage("g", "x", "sum(f(x + r) for r in range(0, 50))"),
                     inputs=[{"name": "f", "type": "float32", "dims": ["x"]}])  # fmt: skip
        data = np.random.default_rng(1).uniform(-1, 1, 53).astype(np.float32)
        expected = []
        for x in range(4):
            total = np.float32(0)
            for r in range(50):
                total = total + data[x + r]
            expected.append(total)
        assert run(p, {"g": ((0, 4),)}, {"f": image(data)}).tolist() == expected

    def test_reductions_inside_each_other(self):
        p = pipeline(stage("g", "x", "max(sum(f(x + r * s) for s in range(0, 3)) for r in range(-1, 2))"), inputs=[IN1])
        data = numbers(12)
        result = run(p, {"g": ((3, 4),)}, {"f": image(data)})
        assert result.tolist() == [max(sum(data[x + r * s] for s in range(3)) for r in (-1, 0, 1)) for x in range(3, 7)]

    def test_an_argmin_as_the_value_of_a_stage(self):
        p = pipeline(stage("g", "x", "argmax(f(x + r) for r in range(-1, 2))"), inputs=[IN1])
        data = np.array([3, 9, 9, -4, 5], np.int32)
        place, value = interpret(p, {"f": image(data)}, {}, {"g": ((1, 3),)})["g"]
        assert place.tolist() == [0, -1, -1]
        assert value.tolist() == [9, 9, 9]

    def test_chunks_make_no_difference(self, monkeypatch):
        text = "sum(f(x + r, y + s) * (r + 2 * s) for r in range(-1, 3) for s in range(-1, 2) if r != s)"
        whole = self.value(text)
        monkeypatch.setattr("tilesmith.scheduler.interpreter.expressions.CHUNK", 5)
        assert self.value(text) == whole

    def test_a_body_without_the_variable(self):
        assert self.value("sum(1 for r in range(0, 7))") == 7
        assert self.value("sum(x + 1 for r in range(0, 7) if r < 3)") == 6


class TestBoundaries:
    KINDS = {  # noqa: RUF012
        "repeat_edge": [0, 0, 0, 0, 1, 2, 2, 2, 2],
        "repeat_image": [0, 1, 2, 0, 1, 2, 0, 1, 2],
        "mirror_image": [2, 1, 0, 0, 1, 2, 2, 1, 0],
        "mirror_interior": [1, 2, 1, 0, 1, 2, 1, 0, 1],
    }

    @pytest.mark.parametrize("kind", KINDS)
    def test_of_an_input(self, kind):
        p = pipeline(stage("g", "x", "f(x)"), inputs=[{**IN1, "boundary": {"kind": kind}}])
        result = run(p, {"g": ((2, 9),)}, {"f": image(np.array([10, 11, 12], np.int32), 5)})
        assert result.tolist() == [10 + i for i in self.KINDS[kind]]

    def test_constant_of_an_input(self):
        inputs = [{**IN2, "boundary": {"kind": "constant", "value": "-k"}}]
        p = pipeline(stage("g", "xy", "f(x, y)"), inputs=inputs, params=[{"name": "k", "type": "int32"}])
        result = run(p, {"g": ((-1, 4), (-1, 3))}, {"f": image(numbers(1, 2), 0, 0)}, {"k": 9})
        expected = np.full((3, 4), -9)
        expected[1, 1:3] = numbers(1, 2)[0]
        assert np.array_equal(result, expected)

    @pytest.mark.parametrize("kind", KINDS)
    def test_of_a_stage(self, kind):
        boundary = {"kind": kind, "domain": [["5", "n"]]}
        p = pipeline(
            stage("a", "x", "x + 100", boundary=boundary), stage("g", "x", "a(x)"),
            params=[{"name": "n", "type": "int32", "min": 1, "max": 9}],
        )  # fmt: skip
        assert run(p, {"g": ((2, 9),)}, params={"n": 3}).tolist() == [105 + i for i in self.KINDS[kind]]

    def test_constant_of_a_stage(self):
        boundary = {"kind": "constant", "value": "0.5", "domain": [["f.min.x", "f.extent.x"]]}
        p = pipeline(
            stage("a", "x", "float32(f(x))", boundary=boundary), stage("g", "x", "a(x - 1) + a(x + 1)"), inputs=[IN1]
        )
        result = run(p, {"g": ((3, 4),)}, {"f": image(np.array([10, 20], np.int32), 4)})
        assert result.tolist() == [10.5, 20.5, 10.5, 20.5]

    def test_a_domain_that_is_empty_at_run_time(self):
        for kind, value, seen in (("repeat_edge", None, [105] * 3), ("constant", "-1", [-1] * 3)):
            boundary = {"kind": kind, "domain": [["5", "n"]], **({"value": value} if value else {})}
            p = pipeline(
                stage("a", "x", "x + 100", boundary=boundary), stage("g", "x", "a(x)"),
                params=[{"name": "n", "type": "int32"}],
            )  # fmt: skip
            assert run(p, {"g": ((4, 3),)}, params={"n": 0}).tolist() == seen

    def test_the_caller_and_its_own_updates_see_the_stage_without_it(self):
        boundary = {"kind": "repeat_edge", "domain": [[0, 3]]}
        updates = [{"domain": {"r": [1, 5]}, "at": ["r"], "value": "a(r - 1) + 1"}]
        p = pipeline(
            stage("a", "x", "0", boundary=boundary, updates=updates), stage("g", "x", "a(x)"), outputs=["a", "g"]
        )
        result = interpret(p, UNUSED, {}, {"a": ((-1, 8),), "g": ((-1, 8),)})
        assert result["a"][0].tolist() == [0, 0, 1, 2, 3, 4, 5, 0]
        assert result["g"][0].tolist() == [0, 0, 1, 2, 2, 2, 2, 2]


class TestUpdates:
    def test_histogram(self):
        p = pipeline(
            stage("hist", "i", "uint32(0)", updates=[
                {"domain": {"rx": [0, "f.extent.x"], "ry": [0, "f.extent.y"]},
                 "at": ["f(rx, ry) % 10"], "value": "hist(f(rx, ry) % 10) + 1"}]),
            inputs=[IN2],
        )  # fmt: skip
        data = numbers(7, 9)
        result = run(p, {"hist": ((-2, 14),)}, {"f": image(data)})
        assert result.dtype == np.uint32
        assert result.tolist() == [0, 0, *np.bincount((data % 10).ravel(), minlength=10), 0, 0]

    def test_scans_in_both_directions(self):
        p = pipeline(
            stage("g", "x", "f(x)", updates=[
                {"domain": {"r": [1, 9]}, "at": ["r"], "value": "g(r) + g(r - 1)"},
                {"domain": {"r": [1, 9]}, "at": ["9 - r"], "value": "g(9 - r) - 2 * g(10 - r)"}]),
            inputs=[IN1],
        )  # fmt: skip
        expected = [int(v) for v in numbers(10)]
        for r in range(1, 10):
            expected[r] += expected[r - 1]
        for r in range(1, 10):
            expected[9 - r] -= 2 * expected[10 - r]
        expected = [(v + 2**31) % 2**32 - 2**31 for v in expected]
        assert run(p, {"g": ((0, 10),)}, {"f": image(numbers(10))}).tolist() == expected

    def test_what_an_update_touches_is_computed_whatever_is_asked(self):
        update = {"domain": {"r": [1, 20]}, "at": ["r"], "value": "g(r - 1) + 1"}
        p = pipeline(stage("g", "x", "100", updates=[update]))
        assert run(p, {"g": ((20, 3),)}).tolist() == [120, 100, 100]

    def test_the_last_variable_is_the_outermost_loop(self):
        update = {"domain": {"r": [0, 2], "s": [0, 3]}, "at": ["0"], "value": "10 * g(0) + r + 3 * s"}
        p = pipeline(stage("g", "x", "int64(0)", updates=[update]))
        expected = 0
        for s in range(3):
            for r in range(2):
                expected = 10 * expected + r + 3 * s
        assert run(p, {"g": ((0, 1),)}).tolist() == [expected]

    def test_free_dims_run_through_whole_rows(self):
        p = pipeline(
            stage("g", "xy", "x", updates=[
                {"domain": {"r": [0, 4]}, "at": ["x", "r + 1"], "value": "g(x, r) + y_of(r) + f(x, r)"}]),
            stage("y_of", "x", "x * x"), inputs=[IN2], outputs=["g"],
        )  # fmt: skip
        data = numbers(4, 6)
        result = run(p, {"g": ((1, 4), (0, 6))}, {"f": image(data)})
        rows = [np.arange(1, 5)]
        for r in range(4):
            rows.append(rows[-1] + r * r + data[r, 1:5])
        rows.append(np.arange(1, 5))
        assert np.array_equal(result, rows)

    def test_a_predicate(self):
        update = {"domain": {"r": [0, 10]}, "where": "r % 3 == 1 and f(r) > 0", "at": ["r"], "value": "g(r) + f(r)"}
        p = pipeline(stage("g", "x", "1", updates=[update]), inputs=[IN1])
        data = numbers(10)
        expected = [1 + (int(data[r]) if r % 3 == 1 and data[r] > 0 else 0) for r in range(10)]
        assert run(p, {"g": ((0, 10),)}, {"f": image(data)}).tolist() == expected

    def test_a_predicate_over_a_free_dim(self):
        update = {"domain": {"r": [0, 3]}, "where": "x > r", "at": ["x"], "value": "g(x) + 1"}
        p = pipeline(stage("g", "x", "0", updates=[update]))
        assert run(p, {"g": ((-1, 6),)}).tolist() == [0, 0, 1, 2, 3, 3]

    def test_all_components_are_read_before_any_is_written(self):
        update = {"domain": {"r": [0, 3]}, "at": ["r"], "value": ["g(r)[1]", "g(r)[0] + 1"]}
        p = pipeline(stage("g", "x", ["x", "10 * x"], updates=[update]))
        result = interpret(p, UNUSED, {}, {"g": ((0, 4),)})["g"]
        assert [c.tolist() for c in result] == [[0, 10, 20, 3], [1, 2, 3, 30]]

    def test_a_scatter_to_a_place_that_the_stage_itself_says(self):
        updates = [{"domain": {"r": [0, 6]}, "at": ["clamp(g(r), 0, 30)"], "value": "r + 50"}]
        p = pipeline(stage("g", "x", "x * 7 % 20", updates=updates))
        expected = [x * 7 % 20 for x in range(31)]
        for r in range(6):
            expected[min(expected[r], 30)] = r + 50
        assert run(p, {"g": ((0, 31),)}).tolist() == expected
        assert run(p, {"g": ((3, 1),)}).tolist() == [expected[3]]

    def test_updates_feed_other_stages_and_reductions(self):
        p = pipeline(
            stage("cdf", "i", "f(i)", updates=[{"domain": {"r": [1, 7]}, "at": ["r"], "value": "cdf(r) + cdf(r - 1)"}]),
            stage("g", "x", "sum(cdf(clamp(x + r, 0, 7)) for r in range(0, 2))"),
            inputs=[IN1],
        )
        data = numbers(8)
        total = np.cumsum(data)
        result = run(p, {"g": ((0, 8),)}, {"f": image(data)})
        assert result.tolist() == [total[x] + total[min(x + 1, 7)] for x in range(8)]


class TestRegions:
    BLUR = (stage("a", "xy", "f(x - 1, y) + f(x + 1, y)"), stage("b", "xy", "a(x, y) + a(x, y + 2)"))

    def test_what_is_required(self):
        p = pipeline(*self.BLUR, inputs=[IN2])
        required = required_regions(p, {"f": image(np.zeros((1, 1), np.int32))}, {}, {"b": ((10, 4), (20, 5))})
        assert required == {"b": ((10, 4), (20, 5)), "a": ((10, 4), (20, 7)), "f": ((9, 6), (20, 7))}

    def test_an_input_that_is_too_small(self):
        p = pipeline(*self.BLUR, inputs=[IN2])
        with pytest.raises(RegionError, match=r"input f, dim y: 3\.\.6 is required, the image has 0\.\.5") as error:
            interpret(p, {"f": image(np.zeros((6, 9), np.int32))}, {}, {"b": ((1, 4), (3, 2))})
        assert error.value.code == "region_outside_input"

    def test_a_boundary_needs_no_more_than_the_image(self):
        p = pipeline(*self.BLUR, inputs=[{**IN2, "boundary": {"kind": "repeat_edge"}}])
        required = required_regions(p, {"f": image(np.zeros((3, 4), np.int32))}, {}, {"b": ((2, 9), (-9, 5))})
        assert required["f"] == ((1, 3), (0, 1))

    @pytest.mark.parametrize(
        ("inputs", "params", "regions", "message"),
        [
            ({}, {"k": 1}, {"g": ((0, 1),)}, "input f is missing"),
            ({"f": image(np.zeros(3, np.int16))}, {"k": 1}, {"g": ((0, 1),)}, "input f is int32, the image is int16"),
            ({"f": image(np.zeros((3, 3), np.int32))}, {"k": 1}, {"g": ((0, 1),)}, "input f has 1 dims"),
            ({"f": image(np.zeros(0, np.int32))}, {"k": 1}, {"g": ((0, 1),)}, "the image is empty"),
            ({"f": image(np.zeros(3, np.int32))}, {}, {"g": ((0, 1),)}, "param k is missing"),
            ({"f": image(np.zeros(3, np.int32))}, {"k": 300}, {"g": ((0, 1),)}, "param k is uint8, the value is 300"),
            ({"f": image(np.zeros(3, np.int32))}, {"k": 9}, {"g": ((0, 1),)}, r"param k: 9 is outside of 0\.\.5"),
            ({"f": image(np.zeros(3, np.int32))}, {"k": 1, "j": 1}, {"g": ((0, 1),)}, "there is no param j"),
            ({"f": image(np.zeros(3, np.int32))}, {"k": 1}, {"g": ((0, 0),)}, "output g, dim x: the region is empty"),
            ({"f": image(np.zeros(3, np.int32))}, {"k": 1}, {"g": ()}, "output g has 1 dims"),
            ({"f": image(np.zeros(3, np.int32))}, {"k": 1}, {"f": ((0, 1),)}, "f is not an output"),
        ],
    )
    def test_arguments_that_do_not_fit(self, inputs, params, regions, message):
        p = pipeline(
            stage("g", "x", "f(x) + int32(k)"), inputs=[IN1],
            params=[{"name": "k", "type": "uint8", "min": 0, "max": 5}],
        )  # fmt: skip
        with pytest.raises(ArgumentError, match=message):
            interpret(p, inputs, params, regions)


def test_what_an_update_reaches_beyond_what_is_asked_for_has_the_updates_before_it_when_it_is_read() -> None:
    document = {
        "format": 1,
        "name": "reached",
        "inputs": [{"name": "a", "type": "uint8", "dims": ["x"]}],
        "stages": [
            {
                "name": "f",
                "dims": ["x", "b"],
                "value": "int32(0)",
                "updates": [
                    {"domain": {"r": [0, 4]}, "at": ["r", "b"], "value": "f(r, b) + 1"},
                    {"domain": {}, "at": ["x", "int32(a(x)) % 4"], "value": "f(x, int32(a(x)) % 4) * 2"},
                ],
            },
            {"name": "g", "dims": ["x"], "value": "f(f(x, 1) % 2, 3)"},
        ],
        "outputs": ["g"],
        "estimates": {"a": [[0, 4]], "g": [[0, 1]]},
    }
    a = Image(np.array([1, 1, 1, 3], np.uint8), (0,))
    assert interpret(load(document), {"a": a}, {}, {"g": ((0, 1),)})["g"][0].tolist() == [1]
