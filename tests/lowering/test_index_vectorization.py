"""Index vectorisation: places of lanes, the clamps that vectors do without, and where these hold."""

from __future__ import annotations

from support.lowered import evaluated, pipeline


def test_clamps_are_dropped_and_noted() -> None:
    lowered = evaluated(pipeline("f(clamp(x - 1, 0, 9))"))
    assert (
        "\n".join([lowered.text(), *lowered.required()]).splitlines()
        == """
%f_0 = load f[x - 1] : f32x8
-1*x+3
1*x+-1
""".strip().splitlines()
    )


def test_exact_places_are_clamped_lane_by_lane() -> None:
    p = pipeline("f(clamp(x - 1, 0, 9))")
    assert (
        evaluated(p, exact=True).text().splitlines()
        == """
%x_0 = lanes x [0, 1, 2, 3, 4, 5, 6, 7] : i32x8
%t_0 = %x_0 - 1:i32 : i32x8
%t_1 = call min(%t_0, 9:i32) : i32x8
%t_2 = call max(%t_1, 0:i32) : i32x8
%t_3 = cast %t_2 : u32x8
%f_0 = monotone_gather f[%t_3] enough f_x - 8 last f_x - 8 : f32x8
""".strip().splitlines()
    )


def test_data_is_a_place_without_a_sign() -> None:
    p = pipeline("f(int32(f(x)) + 1)", type="uint8")
    assert (
        evaluated(p).text().splitlines()
        == """
row f_1 = @f + 1
%f_0 = load f[x] : u8x8
%f_2 = gather f_1[<0; %f_0> origin 0 stride 1] : u8x8
""".strip().splitlines()
    )


def test_data_moves_a_row_by_what_all_lanes_share() -> None:
    p = pipeline("f(int32(f(x, y)), y + 1)", type="uint8", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
row f_0 = @f + mul(f_stride_y, y)
row f_2 = @f + mul(f_stride_y, y + 1)
%f_1 = load f_0[x] : u8x8
%f_3 = gather f_2[<0; %f_1> origin 0 stride 1] : u8x8
""".strip().splitlines()
    )
