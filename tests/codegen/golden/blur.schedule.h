// Schedule of the pipeline blur by method taco2019, for Halide.
// funcs: the Func of every stage by its name; their Vars are named after the dims.
#pragma once

#include <map>
#include <string>

#include "Halide.h"

inline void tilesmith_schedule(std::map<std::string, Halide::Func> &funcs) {
    Halide::Var v_y("y");
    Halide::Var v_y_outer("y_outer");
    Halide::Var v_y_inner("y_inner");
    Halide::Var v_x("x");
    funcs.at("blur_y").compute_root().split(v_y, v_y_outer, v_y_inner, 1280, Halide::TailStrategy::GuardWithIf).reorder(v_x, v_y_inner, v_y_outer).vectorize(v_x, 32, Halide::TailStrategy::GuardWithIf).parallel(v_y_outer);
    funcs.at("blur_x").store_at(funcs.at("blur_y"), v_y_outer).compute_at(funcs.at("blur_y"), v_y_inner).reorder(v_x, v_y).vectorize(v_x, 32, Halide::TailStrategy::ShiftInwards).fold_storage(v_y, 4);
}
