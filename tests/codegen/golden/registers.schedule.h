// Schedule of the pipeline blur by method hand, for Halide.
// funcs: the Func of every stage by its name; their Vars are named after the dims.
// Degraded: a reason of two lines
#pragma once

#include <map>
#include <string>

#include "Halide.h"

inline void tilesmith_schedule(std::map<std::string, Halide::Func> &funcs) {
    Halide::Var v_x("x");
    Halide::Var v_x_outer("x_outer");
    Halide::Var v_x_inner("x_inner");
    Halide::Var v_y("y");
    funcs.at("blur_y").compute_root().split(v_x, v_x_outer, v_x_inner, 256, Halide::TailStrategy::GuardWithIf).reorder(v_x_inner, v_y, v_x_outer).vectorize(v_x_inner, 16);
    funcs.at("blur_x").compute_at(funcs.at("blur_y"), v_y);
}
