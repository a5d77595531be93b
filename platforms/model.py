"""Platforms: the descriptions of machines that schedules are made for.

A description is a document like any other (JSON or YAML, unknown keys refused); inside it is frozen
and compared by value. One class per kind of machine, told apart by the key `kind`; the CPU with caches
is the only kind so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from platforms.ecm import EcmParameters, LevelCycles, TypeCycles, derived
from platforms.errors import PlatformError, PlatformProblem
from platforms.toolchain import Compiler

Text = Annotated[str, Field(strict=True, max_length=2000)]
Count = Annotated[int, Field(strict=True, ge=1)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]

CPU_FIGURES = (
    "threads", "threads_per_core", "clock_ghz", "vector_bytes", "vector_registers",
    "memory_bandwidth_gb_s", "memory_latency_ns", "prefetcher", "load_weight",
)  # fmt: skip
CACHE_FIGURES = (
    "size_bytes", "line_bytes", "ways", "shared_by_threads", "latency_cycles", "bandwidth_bytes_per_cycle",
)  # fmt: skip


class Cache(BaseModel):
    """One level of data cache: one instance of it, as the threads that share that instance see it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Annotated[int, Field(strict=True, ge=1, le=4)]
    size_bytes: Annotated[Count, Field(ge=1024, le=1 << 36)] = Field(description="bytes of one instance")
    line_bytes: Annotated[Count, Field(ge=8, le=4096)] = Field(description="bytes of a line; a power of two")
    ways: Annotated[Count, Field(le=65536)]
    shared_by_threads: Annotated[Count, Field(le=4096)] = Field(description="hardware threads that share one instance")
    latency_cycles: Annotated[Positive, Field(le=10_000)] = Field(description="cycles from load to use on a hit")
    bandwidth_bytes_per_cycle: Annotated[Positive, Field(le=65_536)] = Field(
        description="bytes a cycle that one core takes from this level"
    )

    @field_validator("line_bytes")
    @classmethod
    def _power_of_two(cls, line: int) -> int:
        if line & (line - 1):
            raise PydanticCustomError("not_a_power_of_two", "the line must be a power of two bytes")
        return line

    @model_validator(mode="after")
    def _room_for_a_set(self) -> Self:
        if self.size_bytes < self.line_bytes * self.ways:
            raise PydanticCustomError("cache_smaller_than_a_set", "the cache is smaller than its ways times its line")
        return self


class CpuPlatform(BaseModel):
    """A multi-core CPU with caches.

    `load_weight` is w of TACO 2019: what a load costs relative to an arithmetic operation. `sources` says
    of each figure where it is from: keys are names of figures (`threads`, `l2.latency_cycles`), or `l2`
    for all of a cache's figures that have no entry of their own, `ecm` for all of that model's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["cpu"]
    name: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    description: Text = ""
    triple: Annotated[str, Field(strict=True, pattern=r"^[a-z0-9_]{1,32}(-[a-z0-9_.]{1,32}){1,3}$")] = Field(
        description="target triple, such as x86_64-linux-gnu"
    )
    threads: Annotated[Count, Field(le=4096)] = Field(description="hardware threads to use")
    threads_per_core: Annotated[Count, Field(le=16)] = 1
    clock_ghz: Annotated[Positive, Field(le=20)]
    vector_bytes: Annotated[int, Field(strict=True, ge=0, le=256)] = Field(
        description="bytes of a SIMD register: 0 (none) or a power of two from 8"
    )
    vector_registers: Annotated[int, Field(strict=True, ge=0, le=1024)]
    caches: Annotated[tuple[Cache, ...], Field(min_length=1, max_length=4)] = Field(description="innermost first")
    memory_bandwidth_gb_s: Annotated[Positive, Field(le=100_000)] = Field(description="10^9 bytes/s, all threads")
    memory_latency_ns: Annotated[Positive, Field(le=100_000)]
    prefetcher: Annotated[bool, Field(strict=True)] = Field(
        default=True, description="whether hardware streams rows that are read in order"
    )
    load_weight: Annotated[Positive, Field(le=10_000)]
    ecm: EcmParameters | None = Field(
        default=None, description="parameters of the cost model `ecm`; derived from the other figures where missing"
    )
    compiler: Compiler
    sources: Annotated[
        tuple[tuple[Text, Text], ...],
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
    ] = Field(default=(), max_length=64, description="where each figure is from, by its name")

    def __hash__(self) -> int:
        """The hash of the fields that tell most platforms apart."""
        return hash(self.name)

    @property
    def architecture(self) -> str:
        """The instruction set, as triples begin: x86_64, aarch64."""
        return self.triple.partition("-")[0]

    @property
    def line_bytes(self) -> int:
        """Bytes of a line of the innermost cache."""
        return self.caches[0].line_bytes

    @property
    def cores(self) -> int:
        """Cores that the threads make."""
        return max(1, self.threads // self.threads_per_core)

    @property
    def l1_bytes(self) -> int:
        """Bytes of the innermost data cache."""
        return self.caches[0].size_bytes

    @property
    def l2_bytes(self) -> int:
        """Bytes of second-level cache per core (a shared one divided by its cores); of the first, without a second."""
        if len(self.caches) < 2:
            return self.l1_bytes
        second = self.caches[1]
        return second.size_bytes // max(1, second.shared_by_threads // self.threads_per_core)

    @property
    def llc_bytes(self) -> int:
        """Bytes of one instance of the outermost cache."""
        return self.caches[-1].size_bytes

    @property
    def ecm_parameters(self) -> EcmParameters:
        """Parameters of the cost model `ecm`: the platform's own, or what follows from its other figures."""
        return self.ecm if self.ecm is not None else derived(self)

    def source_of(self, figure: str) -> str | None:
        """The source of `figure` (`threads`, `l2.ways`), if the description names it."""
        entries = dict(self.sources)
        return entries.get(figure) or entries.get(figure.partition(".")[0])

    def figures(self) -> dict[str, int | float | bool]:
        """Every figure of the machine by name, caches as `l1.size_bytes`."""
        found = {figure: getattr(self, figure) for figure in CPU_FIGURES}
        for cache in self.caches:
            found.update({f"l{cache.level}.{figure}": getattr(cache, figure) for figure in CACHE_FIGURES})
        return found

    @field_validator("vector_bytes")
    @classmethod
    def _vector_width(cls, width: int) -> int:
        if width and (width < 8 or width & (width - 1)):
            raise PydanticCustomError("not_a_power_of_two", "vectors have 0 bytes (none) or a power of two from 8")
        return width

    @field_validator("sources", mode="before")
    @classmethod
    def _pairs(cls, sources: object) -> object:
        return tuple(sorted(sources.items(), key=str)) if isinstance(sources, Mapping) else sources

    @field_serializer("sources")
    def _as_mapping(self, sources: tuple[tuple[str, str], ...]) -> dict[str, str]:
        return dict(sources)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for index, (near, far) in enumerate(zip(self.caches, self.caches[1:], strict=False)):
            at = ("caches", index + 1)
            if far.level <= near.level:
                raise PydanticCustomError("caches_out_of_order", "levels must increase outwards", {"at": at})
            if far.size_bytes <= near.size_bytes:
                raise PydanticCustomError(
                    "caches_not_growing", "a cache must be larger than the one inside", {"at": at}
                )
            if far.shared_by_threads < near.shared_by_threads:
                raise PydanticCustomError("caches_not_growing", "sharing cannot shrink outwards", {"at": at})
        known = {*self.figures(), *(f"l{c.level}" for c in self.caches), "ecm"}
        known |= {f"ecm.{name}" for name in EcmParameters.model_fields}
        for figure, _ in self.sources:
            if figure not in known:
                hint = nearest(figure, known)
                raise PydanticCustomError(
                    "unknown_figure",
                    "a source for a figure that there is not",
                    {"at": ("sources", figure), "hint": hint},
                )
        return self


Platform: TypeAlias = CpuPlatform
KINDS: dict[str, type[CpuPlatform]] = {"cpu": CpuPlatform}


def parse(document: object) -> Platform:
    """The platform that `document` (parsed JSON or YAML) describes; raises PlatformError with every problem."""
    if not isinstance(document, Mapping):
        raise PlatformError((PlatformProblem("not_an_object", "", "a platform is an object with keys"),))
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        code, message = ("missing_key", "the key is missing") if kind is None else ("unknown_kind", "no such kind")
        raise PlatformError((PlatformProblem(code, "/kind", message, "kinds: " + ", ".join(KINDS)),))
    try:
        return KINDS[kind].model_validate(document)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise PlatformError(tuple(_problem(d) for d in details if not _follows_from_another(d, details))) from None


def to_document(platform: Platform) -> dict[str, Any]:
    """The description as plain data: parse(to_document(p)) == p."""
    return platform.model_dump(mode="json", exclude_none=True)


def _follows_from_another(detail: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """True if a tuple is called too short only because its items are wrong themselves."""
    at = detail["loc"]
    return detail["type"] == "too_short" and any(len(d["loc"]) > len(at) and d["loc"][: len(at)] == at for d in details)


def _problem(detail: ErrorDetails) -> PlatformProblem:
    """Pydantic's words for one error, in ours."""
    context = detail.get("ctx", {})
    path = [str(part) for part in detail["loc"]]
    path.extend(str(part) for part in context.get("at", ()))
    hint = context.get("hint")
    match detail["type"]:
        case "extra_forbidden":
            code, message = "unknown_key", "there is no such key"
            hint = nearest(path[-1], _keys_at(path))
        case "missing":
            code, message = "missing_key", "the key is missing"
        case kind if "hint" in context or "at" in context or kind in _OWN_CODES:
            code, message = kind, detail["msg"]
        case _:
            code, message = "bad_value", detail["msg"][:1].lower() + detail["msg"][1:]
    pointer = "".join("/" + part[:80].replace("~", "~0").replace("/", "~1") for part in path)
    return PlatformProblem(code, pointer, message, hint)


_OWN_CODES = frozenset({"not_a_power_of_two", "cache_smaller_than_a_set"})


def _keys_at(path: list[str]) -> set[str]:
    match path[:-1]:
        case ["caches", _]:
            return set(Cache.model_fields)
        case ["compiler"]:
            return set(Compiler.model_fields)
        case ["ecm"]:
            return set(EcmParameters.model_fields)
        case ["ecm", "levels", _]:
            return set(LevelCycles.model_fields)
        case ["ecm", _]:
            return set(TypeCycles.model_fields)
        case _:
            return set(CpuPlatform.model_fields)


def nearest(word: str, known: set[str]) -> str | None:
    close = get_close_matches(word[:80], sorted(known), n=1)
    return f"did you mean '{close[0]}'?" if close else None
