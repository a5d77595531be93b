"""Figures of a machine are its platform's: every number that has a name elsewhere is here, under what it is of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilesmith.platforms.core import Core, TlbLevel

PACKAGE = Path(__file__).parents[2] / "tilesmith"
FOLDERS = ("cost_models", "scheduler")
PARAMS = "scheduler/search/params.py"
"""The tunables of the search, each of which has its reason there (`tests/search/test_params.py`)."""

OF = {
    "types of data, their arithmetic, and the forms of documents and expressions": """
        cost_models/ecm/steps: BYTES
        scheduler/analysis/access_functions: ZERO
        scheduler/analysis/bounds_inference: _NOWHERE
        scheduler/analysis/dependence: _SIGNS
        scheduler/analysis/linear_combinations: ONE
        scheduler/analysis/neighbour_sums: GROUPS WIDEST_BITS
        scheduler/codegen/c/addresses: QUARTER_BYTES
        scheduler/codegen/c/bounds_overflow: COORDINATE LIMIT
        scheduler/codegen/c/types: FLT_DIG
        scheduler/errors: MOST_PROBLEMS
        scheduler/features/traffic/cache_traffic: POINT TILE WHOLE
        scheduler/features/operations/dependence_chains: NO_LOAD
        scheduler/features/groups/incremental_footprint: ONE
        scheduler/features/operations/operation_counts: MOST_PLACES
        scheduler/ir/pipeline/types: THIRD
        scheduler/frontends/halide/serialized: VERSIONS
        scheduler/frontends/halide/flatbuffer: UNIT
        scheduler/frontends/onnx/constants: _LARGEST
        scheduler/frontends/tensors/pointwise: _ERF
        scheduler/frontends/tensors/resize: _LARGEST
        scheduler/frontends/tensors/sizes: ONE
        scheduler/ir/pipeline/float_bounds: LARGEST_PARAM _LARGEST
        scheduler/ir/pipeline/printer: _OR _AND _NOT COMPARE UNARY _POWER ATOM
        scheduler/ir/pipeline/drawing: MOST_NODES _CHARACTER _DEPTH _GAP _HEIGHT _MARGIN
        scheduler/ir/pipeline/semantics: MOST_BITS RANDOM_SEED
        scheduler/ir/schedule/document: FORMAT
        scheduler/lowering/index_vectorization: ANYWHERE
        scheduler/rewrites/expression_rules/conditions: _MANTISSA
        scheduler/rewrites/expression_rules/error_bounds: _ROUNDOFF _SMALLEST _LIBRARY
        scheduler/rewrites/expression_rules/type_inference: _BY_FIRST
        scheduler/rewrites/narrow_integers: _WIDTHS
        scheduler/lowering/row_recurrences: NARROWER
        scheduler/lowering/transposed_scans: MOST_MISSED MOST_WRITTEN_OUT
        scheduler/rewrites/factor_exponentials: LARGEST_EXPONENTS LARGEST_EXACT
        scheduler/search/ecm/loop_structures: WIDEST
    """,
    "operations of the loop IR, and languages that it is printed in": """
        scheduler/codegen/opencl/emitter: DEVICE_TYPES
        scheduler/codegen/opencl/types: MOST_LANES
        scheduler/features/groups/inlined_places: INLINED_READS
        scheduler/features/pipeline/interleaved_channels: CHANNELS
        scheduler/frontends/tensors/graph: _CHANNELS
        scheduler/ir/loop/ops: PAIRED_BITS PAIRED_LANES PART_BYTES LOOKUP_PART
    """,
    "instructions that the C uses where its compiler says that the machine has them": """
        cost_models/ecm/steps: GATHERED_AT_ONCE
        scheduler/codegen/c/elementary_functions: _ROUNDING
        scheduler/codegen/c/integer_division: LEAST_BYTES
        scheduler/codegen/c/gathers: VECTOR_BITS ELEMENT_BITS SHARED
        scheduler/codegen/c/lane_gathers: PART
        scheduler/codegen/c/lookup_tables: LONGEST _SIXTEEN
        scheduler/codegen/c/masks: _PREDICATES _LEAST_BYTES WHOLE_BYTES _LEAST_BITS
        scheduler/ir/loop/program: AVX512_BYTES
        scheduler/codegen/c/neighbours: _REGISTER_BYTES _WORD_BYTES _SHORT_BYTES _QUARTER_BYTES
        scheduler/codegen/c/neon: _REGISTERS
        scheduler/codegen/c/permutations: _SHORTEST _LONGEST
        scheduler/codegen/c/vector_shifts: _REGISTERS
        scheduler/codegen/c/windows: _SHORTEST _PLACE_BITS
        scheduler/loop_passes/gather_pairing: FOUR_LANES
        scheduler/loop_passes/lane_order: _LONGEST_BITS _SHORT_BITS _CROSSES
        scheduler/loop_passes/vector_legalization: _PACKED_BITS
        scheduler/features/groups/transposed_reads: SHUFFLED_BYTES
        scheduler/lowering/interleaved_channels: PERMUTED_BYTES LONGEST_BYTES
    """,
    "the length of chains and the number of operations in the C, which are the same on every machine": """
        cost_models/ecm/steps: CLAMPED_LOAD NEAR_OPERATIONS NEXT_ELEMENTS PICKED TURNED_LOAD
        scheduler/features/operations/dependence_chains: CALL FUNCTIONS SIDE_BY_SIDE
        scheduler/features/work/row_edges: REMAINDER
        scheduler/lowering/code_size: CLAMPED DIVISION PICKED
    """,
    "the size and shape of the code: what is written out, what is a call, what is loaded once for several points": """
        scheduler/codegen/c/nesting: WIDTH LINES
        scheduler/codegen/c/outlining: WORTH_A_CALL
        scheduler/codegen/c/repeated_loops: BESIDE NUMBER
        scheduler/codegen/c/row_macros: ARGUMENT
        scheduler/lowering/alike_groups: NEARLY WORTH_A_FUNCTION
        scheduler/codegen/halide/directives: MOST_GUARDED
        scheduler/codegen/opencl/emitter: GROUPS
        cost_models/work: MOST_PIECES
        scheduler/features/pipeline/lookup_tables: FEWEST
        scheduler/analysis/flat_rows: MOST_CHANNELS FURTHEST_PIXELS
        scheduler/analysis/neighbour_sums: FEWEST
        scheduler/features/pipeline/merged_reads: SHORT_ROW
        scheduler/features/pipeline/reads: MOST_OFFSETS
        scheduler/features/pipeline/streaming_stores: MOST_OF_LINE HELD MOST_ROWS
        scheduler/features/groups/unroll_and_jam: ROWS_TOGETHER MOST_TOGETHER
        scheduler/loop_passes/choice_unswitching: MOST_LOOPS MOST_KEPT
        scheduler/loop_passes/held_sums: LONG TOGETHER
        scheduler/loop_passes/index_names: _LINE _NAME
        scheduler/loop_passes/index_set_splitting: LONG_TRIPS SMALL_BODY
        scheduler/loop_passes/scalar_replacement: NEIGHBOURS
        scheduler/loop_passes/strided_loads: MOST_LOADS
        scheduler/lowering/addresses: NEAR
        scheduler/lowering/group_plan: UNROLLED_EXTENT SPARE_VECTORS
        scheduler/lowering/interleaved_channels: MOST_LOADS
        scheduler/lowering/loop_nest: WORTH_A_CALL
        scheduler/features/operations/reduction_loops: UNROLLED_TRIPS CONTRACTED_TRIPS MOST_WRITTEN
        scheduler/lowering/reductions: UNROLLED_SCALAR_TRIPS WRITTEN_TERMS MOST_TOGETHER MOST_INSTRUCTIONS
        scheduler/lowering/reductions: WRITTEN_TOGETHER
        scheduler/lowering/row_room: VECTORS_OF_ROOM
        scheduler/lowering/residue_splitting: LARGEST_DIVISOR MOST_REMAINDERS
        scheduler/lowering/updates: SHARED_POINTS STEPS_TOGETHER
        scheduler/ir/pipeline/integer_functions: _DOUBLED
        scheduler/rewrites/interleave_updates: ALONG_ROWS ACROSS
    """,
    "models: how sharply a layer condition is met, and from when on work is enough or a dim is long": """
        cost_models/ecm/doubts: FEW_SETS
        cost_models/ecm/occupancy: USABLE SHARP
        cost_models/interface: A_CALL COUNTS
        scheduler/codegen/opencl/device_fit: ENOUGH
        scheduler/features/groups/fusion_group: FEW
        scheduler/features/groups/group_counts: SMALL_EXTENT
    """,
    "limits of effort, of what a pipeline may grow to, and of documents and schedules": """
        cost_models/ecm/model: KEPT
        scheduler/analysis/dead_points: MOST_OFFSETS
        scheduler/analysis/estimated_bounds: WIDEST
        scheduler/analysis/size_warnings: _NAMED
        scheduler/analysis/linear_combinations: _LARGEST
        scheduler/analysis/rank_one: _PLAIN
        scheduler/analysis/register_windows: MOST_ELEMENTS MOST_PLACES DEEPEST
        scheduler/analysis/row_recurrences: LEAST_LANES LEAST_FACTOR LARGEST_ERROR
        scheduler/analysis/update_sweeps: LEAST_ROWS
        scheduler/analysis/separability: _FEWEST
        scheduler/analysis/sliding_windows: LONGEST_PERIOD WARM_UP_LIMIT FAR
        scheduler/analysis/translation_equivalence: _FURTHEST
        scheduler/frontends/document/names: ALIKE
        scheduler/frontends/document/parser: _ATTEMPTS
        scheduler/frontends/halide/document: _FEW
        scheduler/frontends/halide/shared_parts: LARGE _WORTH
        scheduler/frontends/python/patterns: WRITTEN_OUT
        scheduler/interpreter/expressions: CHUNK
        scheduler/frontends/halide/flatbuffer: MOST_OF_A_BYTE MOST_READ
        scheduler/frontends/mlir/scalars: MOST_CHARACTERS
        scheduler/frontends/mlir/text: MOST_BYTES MOST_OPERATIONS
        scheduler/frontends/mlir/translation: MOST_DIMS MOST_WRITTEN_OUT
        scheduler/frontends/onnx/reader: MAX_NODES
        scheduler/frontends/tensors/graph: _DEEPEST _LONGEST
        scheduler/frontends/tensors/windows: _WIDEST
        scheduler/search/tile_costs: SHOWN_DIMS
        scheduler/ir/pipeline/value_bounds: ROUNDED_OFF _WHOLE_TYPE_BITS
        scheduler/ir/pipeline/value_ends: MOST_PARTS
        scheduler/ir/schedule/primitives/forms: MAX_STAGES
        scheduler/ir/schedule/primitives/prefetch: MAX_PREFETCH
        scheduler/ir/schedule/primitives/unroll: MAX_UNROLL
        scheduler/ir/schedule/primitives/vectorize: MAX_LANES
        scheduler/rare_collections: MOST_YOUNG
        scheduler/rewrites/expression_rules/application: MOST_PARTS DEEPEST STEPS_A_PART FURTHER_STEPS
        scheduler/rewrites/expression_rules/document: MOST_RULES
        scheduler/rewrites/expression_rules/matching: MOST_BINDINGS MOST_STEPS
        scheduler/rewrites/expression_rules/reader: MOST_VARIABLES MOST_CONDITIONS MOST_TYPES
        scheduler/rewrites/expression_rules/reductions: MOST_TERMS
        scheduler/rewrites/expression_rules/verification: ALL_VALUES SAMPLES FEW_SAMPLES ROUNDS ENOUGH APPROXIMATE
        scheduler/rewrites/expression_rules/verification: SAFETY
        scheduler/rewrites/fold_updates: SHORT_REDUCTION FEW_STEPS LARGEST_VALUE MOST_PARTS
        scheduler/rewrites/fuse_outputs: MOST MOST_PARTS
        scheduler/rewrites/initial_values: LARGEST_VALUE
        scheduler/rewrites/inline_stage: MOST_DIMS
        scheduler/rewrites/pair_terms: FEWEST_TERMS
        scheduler/rewrites/propagate_boundaries: FAR
        scheduler/rewrites/recurrence_order: _FEWEST
        scheduler/rewrites/rfactor: MOST_PARTS
        scheduler/rewrites/specialize_scans: MOST_LEVELS MOST_STAGES MOST_TERMS MOST_TERMS_IN_ALL BLOCK MOST_TABLE_TERMS
        scheduler/rewrites/symmetric_pairs: MOST_COMPARED
        scheduler/rewrites/tabulate_weights: MOST_DIMS MOST_POINTS
        scheduler/search/constraints/document: MAX_STAGES
        scheduler/strategies/combinators: MOST
        scheduler/strategies/document: MAX_STEPS MAX_NAMES
        scheduler/strategies/recorded: PLENTY
        scheduler/strategies/state: STEPS
    """,
    "messages, and names that are made": """
        scheduler/frontends/document/excerpts: EXCERPT
        scheduler/frontends/document/schema_errors: _CHANNELS _SIZE
        scheduler/frontends/onnx/reader: _BATCH _SPATIAL
        scheduler/frontends/halide/text: _LONGEST
        scheduler/ir/schedule/difference: SHOWN NAMED
        scheduler/rewrites/names: _LONGEST _ENDING _LISTED
        scheduler/search/explain: SHOWN
        scheduler/search/tile_sizes: LISTED
    """,
}


def listed() -> Iterator[tuple[str, str]]:
    for lines in OF.values():
        for line in lines.split("\n"):
            module, _, names = line.strip().partition(":")
            yield from ((module, name) for name in names.split())


def named_numbers(text: str) -> Iterator[str]:
    """The names in upper case that a module gives to numbers, and to tuples, sets and dicts of numbers."""
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets = [target]
            case _:
                continue
        names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        if all(name.isupper() for name in names) and is_number(value):
            yield from names


def is_number(e: ast.expr) -> bool:
    match e:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return all(map(is_number, parts)) and parts != []
        case ast.Call(args=parts, keywords=[]):  # such as range(3), float(4096), np.int64(1)
            return all(map(is_number, parts)) and parts != []
        case _:
            return False


def found() -> Iterator[tuple[str, str]]:
    for path in (p for folder in FOLDERS for p in (PACKAGE / folder).rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        if module != PARAMS:
            yield from ((module.removesuffix(".py"), name) for name in named_numbers(path.read_text(encoding="utf-8")))


def test_every_number_with_a_name_is_of_something_that_is_no_machine() -> None:
    assert sorted(found()) == sorted(listed())


def test_every_figure_of_a_core_is_read() -> None:
    files = [*(p for folder in FOLDERS for p in (PACKAGE / folder).rglob("*.py")), PACKAGE / "platforms" / "base.py"]
    nodes = (node for p in files for node in ast.walk(ast.parse(p.read_text(encoding="utf-8"))))
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    groups = [type(group) for _, group in Core()]
    assert [f"{g.__name__}.{f}" for g in (*groups, TlbLevel) for f in g.model_fields if f not in read] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("LINE = 64", ["LINE"]),
        ("_PAGE: Final = 1 << 12", ["_PAGE"]),
        ("LOAD, STORE = 0.5, -1.5", ["LOAD", "STORE"]),
        ("TLB = ((64, 7.0), (1536, 30.0))", ["TLB"]),
        ("CYCLES: Mapping[str, float] = {'add': 4.0}", ["CYCLES"]),
        ("AHEAD = float(4096)", ["AHEAD"]),
        ("NAME = 'L1'\nON = True\nNONE = ()\nMADE = Operations(add=1)\nlower = 3\nPAGE = page()", []),
    ],
)
def test_numbers_are_found_by_what_they_are_given_as(text: str, names: list[str]) -> None:
    assert list(named_numbers(text)) == names
