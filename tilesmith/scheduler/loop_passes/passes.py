"""Passes over loop programs, from what lowering makes to what a backend prints: one list, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilesmith.scheduler.ir.loop.program import Program, Statement
from tilesmith.scheduler.ir.pass_manager import Observer, Pass, PassPipeline
from tilesmith.scheduler.loop_passes import choice_unswitching
from tilesmith.scheduler.loop_passes.bit_masks import masked
from tilesmith.scheduler.loop_passes.dead_code import prune
from tilesmith.scheduler.loop_passes.gather_pairing import paired
from tilesmith.scheduler.loop_passes.held_sums import held
from tilesmith.scheduler.loop_passes.index_names import named_indices
from tilesmith.scheduler.loop_passes.index_set_splitting import split
from tilesmith.scheduler.loop_passes.loop_unswitching import unswitched
from tilesmith.scheduler.loop_passes.scalar_replacement import carried, every_other, windows
from tilesmith.scheduler.loop_passes.strided_loads import widened
from tilesmith.scheduler.loop_passes.vector_legalization import by_registers

Body = tuple[Statement, ...]


def _of_body(run: Callable[[Body], Body]) -> Callable[[Program], Program]:
    return lambda program: replace(program, body=run(program.body))


def _legalize(program: Program) -> Program:
    return replace(program, body=by_registers(program.body, program.register_bytes))


def _mask(program: Program) -> Program:
    return replace(program, body=masked(program.body, program.strict)) if program.masks_are_bits else program


def _hold(program: Program) -> Program:
    # machines that have registers for masks have 32 for vectors: nothing is spilled there
    return program if program.masks_are_bits else replace(program, body=held(program.body))


def _prune(program: Program) -> Program:
    kept = {x for _, box in program.required for pair in box for x in pair}
    bounds, body = prune(program.bounds, program.body, kept)
    return replace(program, bounds=bounds, body=body)


def _share(program: Program) -> Program:
    return replace(program, body=every_other(program.body, program.permuted_bytes))


def _carry(program: Program) -> Program:
    return replace(program, body=carried(program.body, program.line_bytes, program.carried_vectors))


def _permute(program: Program) -> Program:
    return replace(program, body=windows(program.body, program.line_bytes, program.permuted_bytes))


PASSES = PassPipeline(
    (
        Pass("legalize-vectors", "vectors of any size", "no vector is wider than a register", _legalize),
        Pass(
            "share-strided-loads",
            "every other element of a row is picked of two vectors, each time anew",
            "even and odd elements are picked of the same two",
            _share,
        ),
        Pass(
            "widen-strided-loads",
            "short integers some way apart are picked of vectors, and converted to longer ones",
            "those of longer ones that they are parts of are picked, and the parts shifted into their place",
            _of_body(widened),
        ),
        Pass("pair-gathers", "gathers, lane by lane", "gathers of neighbours are of pairs or fours", _of_body(paired)),
        Pass(
            "mask-sums",
            "what is added is chosen, or 0",
            "where masks have registers of their own, it is added where it is chosen",
            _mask,
        ),
        Pass(
            "eliminate-dead-code",
            "definitions that may be unused",
            "what a store, a loop, a condition or a required box needs",
            _prune,
        ),
        Pass(
            "unswitch-loops",
            "a loop does something only where a condition holds that is the same in all of its iterations",
            "the condition stands around the loop",
            _of_body(unswitched),
        ),
        Pass(
            "unswitch-choices",
            "a loop chooses between vectors by a condition that is the same in all of its iterations",
            "it is one for each choice, where each takes work of its own",
            _of_body(choice_unswitching.unswitched),
        ),
        Pass(
            "carry-vectors",
            "neighbours in a row are loaded one by one",
            "some are permutations of vectors that the iteration has, or keeps for the next",
            _carry,
        ),
        Pass(
            "permute-windows",
            "long windows along a row load a vector for each of their places",
            "some are permutations of two that are loaded anyway",
            _permute,
        ),
        Pass(
            "hold-sums",
            "long sums of integers are added in any order",
            "what every few additions make is in a register before the next",
            _hold,
        ),
        Pass(
            "name-indices",
            "sums of indices are written out wherever they are used",
            "what is used more than once has a name",
            named_indices,
        ),
        Pass(
            "split-index-sets",
            "a clamp of an innermost loop's variable is worked out in every iteration",
            "those of long loops are worked out only in the iterations that they change",
            _of_body(split),
        ),
    )
)


def optimize(program: Program, observer: Observer | None = None) -> Program:
    """The program after all passes."""
    return PASSES(program, observer)
