"""Operations of linalg that xDSL does not define, in its terms: their indexing maps and their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AffineMapAttr, AnyFloat, ArrayAttr, ShapedType
from xdsl.dialects.linalg.abstract_ops import (
    ConvOperation,
    ElementwiseOperation,
    LinalgStructuredOperation,
    NamedOperation,
    PoolingOperation,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import AttrSizedOperandSegments, irdl_op_definition
from xdsl.parser import Parser

Combination: TypeAlias = tuple[type[Operation] | None, type[Operation] | None]
"""The operation of floats, and that of integers."""
Loops: TypeAlias = tuple[tuple[int, ...], ...]


def _dims(count: int) -> tuple[AffineDimExpr, ...]:
    return tuple(AffineDimExpr(d) for d in range(count))


def _body(op: type[NamedOperation], shaped: Sequence[SSAValue], made_by: Combination, taken: Sequence[int]) -> Region:
    """The body that yields one operation of the arguments `taken`."""
    types = op.body_arg_types(shaped)
    chosen = made_by[0 if isinstance(types[-1], AnyFloat) else 1]
    if chosen is None:
        raise ValueError(f"{op.name} is not defined for {types[-1]}")
    make = chosen

    @Builder.implicit_region(types)
    def body(args: tuple[BlockArgument, ...]) -> None:
        YieldOp(make.create(operands=[args[k] for k in taken], result_types=[types[-1]]))

    return body


class _OfTensors(NamedOperation):
    """A named operation whose results, if nothing is said of them, have the types of its outputs."""

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue] = (),
        res: Sequence[Attribute] | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        results = [o.type for o in outputs] if res is None else res
        super().__init__(inputs, outputs, (results,), None, attributes, self.get_hidden_region(inputs, outputs))


class _Elementwise(_OfTensors, ElementwiseOperation):
    MADE_BY: ClassVar[Combination]

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return _body(cls, (*inputs, *outputs), cls.MADE_BY, range(len(inputs)))


def _elementwise(op: str, floats: type[Operation], integers: type[Operation] | None = None) -> type[Operation]:
    @irdl_op_definition
    class Elementwise(_Elementwise):
        name = f"linalg.{op}"
        MADE_BY: ClassVar[Combination] = (floats, integers)

    return Elementwise


class _Pooling(PoolingOperation):
    MADE_BY: ClassVar[Combination]
    CHANNELS_LAST: ClassVar[bool] = True

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return _body(cls, (*inputs, *outputs), cls.MADE_BY, (2, 0))

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        n, a, b, c, kh, kw = _dims(6)
        h, w, channel = (a, b, c) if self.CHANNELS_LAST else (b, c, a)
        (sh, sw), (dh, dw) = self.strides.get_values(), self.dilations.get_values()
        place = (h * sh + kh * dh, w * sw + kw * dw)
        read = (n, *place, channel) if self.CHANNELS_LAST else (n, channel, *place)
        return AffineMap(6, 0, read), AffineMap(6, 0, (kh, kw)), AffineMap(6, 0, (n, a, b, c))


def _pooling(op: str, floats: type[Operation], integers: type[Operation]) -> type[Operation]:
    @irdl_op_definition
    class Pooling(_Pooling):
        name = f"linalg.pooling_{op}"
        MADE_BY: ClassVar[Combination] = (floats, integers)
        CHANNELS_LAST: ClassVar[bool] = op.startswith("nhwc")

    return Pooling


class _Depthwise(ConvOperation):
    CHANNELS_LAST: ClassVar[bool] = True

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return ArrayAttr((IteratorTypeAttr.parallel(),) * 4 + (IteratorTypeAttr.reduction(),) * 2)

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        n, h, w, c, kh, kw = _dims(6)
        (sh, sw), (dh, dw) = self.strides.get_values(), self.dilations.get_values()
        place = (h * sh + kh * dh, w * sw + kw * dw)
        if self.CHANNELS_LAST:
            return AffineMap(6, 0, (n, *place, c)), AffineMap(6, 0, (kh, kw, c)), AffineMap(6, 0, (n, h, w, c))
        return AffineMap(6, 0, (n, c, *place)), AffineMap(6, 0, (c, kh, kw)), AffineMap(6, 0, (n, c, h, w))


def _depthwise(op: str) -> type[Operation]:
    @irdl_op_definition
    class Depthwise(_Depthwise):
        name = f"linalg.depthwise_conv_2d_{op}"
        CHANNELS_LAST: ClassVar[bool] = op.startswith("nhwc")

    return Depthwise


class _Contraction(_OfTensors):
    """A sum of products over the last loop; `LOOPS` are those of the left operand, the right one and the result."""

    LOOPS: ClassVar[Loops]

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        types = cls.body_arg_types((*inputs, *outputs))
        add, mul = (arith.AddfOp, arith.MulfOp) if isinstance(types[-1], AnyFloat) else (arith.AddiOp, arith.MuliOp)

        @Builder.implicit_region(types)
        def body(args: tuple[BlockArgument, ...]) -> None:
            YieldOp(add(mul(args[0], args[1]), args[2]))

        return body

    def _count(self) -> int:
        return 1 + max(max(loops, default=0) for loops in self.LOOPS)

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return ArrayAttr((*(IteratorTypeAttr.parallel(),) * (self._count() - 1), IteratorTypeAttr.reduction()))

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        count = self._count()
        return tuple(AffineMap(count, 0, tuple(AffineDimExpr(d) for d in loops)) for loops in self.LOOPS)


def _contraction(op: str, *loops: tuple[int, ...]) -> type[Operation]:
    @irdl_op_definition
    class Contraction(_Contraction):
        name = f"linalg.{op}"
        LOOPS: ClassVar[Loops] = loops

    return Contraction


@irdl_op_definition
class Conv2DOp(_Contraction):
    name = "linalg.conv_2d"
    LOOPS: ClassVar[Loops] = ((0, 1), (2, 3), (0, 1))

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return ArrayAttr((IteratorTypeAttr.parallel(),) * 2 + (IteratorTypeAttr.reduction(),) * 2)

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        h, w, kh, kw = _dims(4)
        return AffineMap(4, 0, (h + kh, w + kw)), AffineMap(4, 0, (kh, kw)), AffineMap(4, 0, (h, w))


@irdl_op_definition
class MapOp(LinalgStructuredOperation):
    """`linalg.map`: a body of the elements of the inputs; the body may have that of the output as well."""

    name = "linalg.map"
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        return ArrayAttr([AffineMapAttr(AffineMap.identity(self._rank()))] * len(self.operands))

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return ArrayAttr((IteratorTypeAttr.parallel(),) * self._rank())

    def _rank(self) -> int:
        shaped = self.outputs[0].type
        assert isinstance(shaped, ShapedType)
        return len(shaped.get_shape())

    def verify_(self) -> None:
        """The body has one argument fewer than other structured operations, in MLIR before version 22."""
        if len(self.body.block.args) not in (len(self.inputs), len(self.inputs) + 1):
            raise ValueError("a body with an argument for each input")

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        short = None
        if parser.parse_optional_punctuation("{"):
            short = parser.parse_identifier()
            parser.parse_punctuation("}")
        ins = _operands(parser, "ins") if parser.parse_optional_keyword("ins") else []
        parser.parse_keyword("outs")
        outs = _operands(parser, "outs")
        if short is None:
            arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
            body = parser.parse_region(arguments)
        else:
            body = _short_body(parser, short, ins)
        return cls(operands=[ins, outs], result_types=[[o.type for o in outs]], regions=[body])


def _operands(parser: Parser, _: str) -> Sequence[SSAValue]:
    parser.parse_punctuation("(")
    position = parser.pos
    names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return parser.resolve_operands(names, types, position)


def _short_body(parser: Parser, op: str, ins: Sequence[SSAValue]) -> Region:
    """The body of the short form, `linalg.map { arith.addf } ins(...)`."""
    found = parser.ctx.get_optional_op(op)
    if found is None:
        parser.raise_error(f"unknown operation {op}")
    block = Block(arg_types=NamedOperation.body_arg_types(ins))
    made = found.create(operands=block.args, result_types=[block.args[0].type])
    block.add_ops([made, YieldOp(made)])
    return Region(block)


OPS: tuple[type[Operation], ...] = (
    _elementwise("div", arith.DivfOp, arith.DivSIOp),
    _elementwise("abs", math.AbsFOp, math.AbsIOp),
    _elementwise("negf", arith.NegfOp),
    _elementwise("floor", math.FloorOp),
    _elementwise("ceil", math.CeilOp),
    _elementwise("tanh", math.TanhOp),
    _elementwise("rsqrt", math.RsqrtOp),
    _elementwise("powf", math.PowFOp),
    _pooling("nhwc_sum", arith.AddfOp, arith.AddiOp),
    _pooling("nhwc_max", arith.MaximumfOp, arith.MaxSIOp),
    _pooling("nhwc_min", arith.MinimumfOp, arith.MinSIOp),
    _pooling("nchw_max", arith.MaximumfOp, arith.MaxSIOp),  # xDSL 0.74's takes that of an element and the window's
    _pooling("nchw_sum", arith.AddfOp, arith.AddiOp),
    _depthwise("nhwc_hwc"),
    _depthwise("nchw_chw"),
    _contraction("batch_matmul", (0, 1, 3), (0, 3, 2), (0, 1, 2)),
    _contraction("matvec", (0, 1), (1,), (0,)),
    _contraction("vecmat", (1,), (1, 0), (0,)),
    _contraction("dot", (0,), (0,), ()),
    Conv2DOp,
    MapOp,
)
