"""The compiler of a platform, and what a description may say about it.

Descriptions come from outside, and the compiler is run with what they say: so commands, flags and
run prefixes are held against lists of what is harmless. Nothing here can name a file, load a plugin,
or change what a program means (that is for the generated code's own flags to say).
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

COMMANDS = re.compile(r"((x86_64|aarch64)-linux-gnu-|arm-linux-gnueabihf-)?(gcc|clang)(-[1-9][0-9]?)?")

_ISA = (
    r"mmx|sse|sse2|sse3|ssse3|sse4|sse4\.1|sse4\.2|sse4a|avx|avx2|avxvnni|fma|fma4|f16c|bmi|bmi2|lzcnt|popcnt|movbe|aes|"
    r"pclmul|avx512f|avx512cd|avx512bw|avx512dq|avx512vl|avx512ifma|avx512vbmi|avx512vbmi2|avx512vnni|avx512bf16|"
    r"avx512fp16|avx512bitalg|avx512vpopcntdq|gfni|vaes|vpclmulqdq|outline-atomics|vzeroupper|unaligned-access"
)
_F_SWITCHES = (
    r"tree-vectorize|tree-slp-vectorize|tree-loop-vectorize|vectorize|slp-vectorize|unroll-loops|unroll-all-loops|"
    r"peel-loops|prefetch-loop-arrays|omit-frame-pointer|plt|semantic-interposition|inline|inline-functions|"
    r"strict-aliasing|schedule-insns|schedule-insns2|ivopts|tree-loop-distribution|tree-loop-distribute-patterns|"
    r"split-loops|unswitch-loops|loop-interchange|loop-nest-optimize|gcse|tree-pre|ipa-cp-clone|align-loops|"
    r"align-functions|stack-protector"
)
_WORD = r"[a-z0-9][a-z0-9.+_-]{0,63}"
FLAGS = re.compile(
    "|".join(
        (
            r"-O[0-3s]",
            r"-g0",
            r"-pipe",
            rf"-m(arch|tune|cpu|fpu)={_WORD}",
            r"-mfloat-abi=(soft|softfp|hard)",
            r"-mprefer-vector-width=(none|128|256|512)",
            r"-msve-vector-bits=(scalable|128|256|512|1024|2048)",
            r"-mcmodel=(small|medium|large|tiny)",
            r"-m(32|64|arm|thumb)",
            rf"-m(no-)?({_ISA})",
            rf"-f(no-)?({_F_SWITCHES})",
            r"-falign-(loops|functions)=[0-9]{1,3}",
            r"-fvect-cost-model=(unlimited|dynamic|cheap|very-cheap)",
        )
    )
)
EMULATORS = re.compile(r"qemu-(aarch64|arm|x86_64)(-static)?")
# An emulator can name a file (-L, the folder of the target's libraries), so its options are held to a list as well.
_EMULATOR_OPTIONS = {
    "-L": re.compile(r"/usr/(aarch64-linux-gnu|arm-linux-gnueabihf|x86_64-linux-gnu)"),
    "-cpu": re.compile(_WORD),
}


class Compiler(BaseModel):
    """A C compiler: the name of a command on the search path, the flags that suit the machine, and, where
    this host is not that machine, the emulator that runs what was compiled."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: Annotated[str, Field(strict=True)] = Field(
        description="gcc or clang, perhaps with a version (gcc-13) or a target in front (aarch64-linux-gnu-gcc)"
    )
    flags: tuple[Annotated[str, Field(strict=True)], ...] = Field(
        default=("-O3",), max_length=64, description="optimisation and target flags, from a list of harmless ones"
    )
    run_prefix: tuple[Annotated[str, Field(strict=True)], ...] = Field(
        default=(), max_length=5, description="the emulator to run under: empty, or qemu-user with -L and -cpu"
    )

    def scalar_flags(self, architecture: str) -> tuple[str, ...]:
        """Flags by which scalars stay in general registers: GCC for x86-64 has integers whose least or greatest is
        taken, such as places in rows, in vector registers, and moves them back wherever they are an address."""
        return ("-mno-stv",) if architecture == "x86_64" and "gcc" in self.command else ()

    @field_validator("command")
    @classmethod
    def _known_command(cls, command: str) -> str:
        if not COMMANDS.fullmatch(command):
            raise PydanticCustomError(
                "compiler_not_allowed", "this compiler is not allowed", {"hint": "gcc or clang, or a cross gcc by name"}
            )
        return command

    @field_validator("flags")
    @classmethod
    def _known_flags(cls, flags: tuple[str, ...]) -> tuple[str, ...]:
        for index, flag in enumerate(flags):
            if not FLAGS.fullmatch(flag):
                raise PydanticCustomError(
                    "flag_not_allowed",
                    "the flag '{flag}' is not allowed",
                    {"flag": flag[:80], "at": (index,), "hint": "-O0 to -O3, -march=, -mtune=, -mcpu=, ISA switches"},
                )
        return flags

    @field_validator("run_prefix")
    @classmethod
    def _known_prefix(cls, prefix: tuple[str, ...]) -> tuple[str, ...]:
        if prefix and not _is_emulator(prefix):
            raise PydanticCustomError(
                "prefix_not_allowed",
                "this run prefix is not allowed",
                {"hint": "empty, or qemu-aarch64 or qemu-arm with -L /usr/<target> and -cpu <name>"},
            )
        return prefix


def _is_emulator(prefix: tuple[str, ...]) -> bool:
    options = prefix[1:]
    if not EMULATORS.fullmatch(prefix[0]) or len(options) % 2:
        return False
    pairs = zip(options[::2], options[1::2], strict=True)
    return all(o in _EMULATOR_OPTIONS and _EMULATOR_OPTIONS[o].fullmatch(value) is not None for o, value in pairs)
