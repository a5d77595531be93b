"""C to a shared object, by the compiler that the platform names; kept by content.

A build's key is a hash of the code, the flags, the target and what the compiler is (the macros it
predefines under those flags: its version, and what `-march=native` means here). An entry of the cache
is a folder that is renamed into place when it is complete, so that any number of processes may share one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform as host_system
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tilesmith.app.runtime import held_folders
from tilesmith.app.runtime.confinement import Confinement
from tilesmith.app.runtime.errors import LOST, CompileError, StoreError
from tilesmith.app.runtime.sandbox import Exceeded, Finished, Limits, execute
from tilesmith.platforms import Compiler, Platform
from tilesmith.scheduler.codegen.artifact import CSource

RUNNER_SOURCE = Path(__file__).with_name("runner.c")
SOURCE_NAME, LIBRARY_NAME, RUNNER_NAME, RECORD_NAME = "pipeline.c", "library.so", "runner", "build.json"
_FORMAT = 1  # of the cache: part of every key
_STALE_S = 24 * 3600
_IN_USE_S = 600
_OBJECT_BYTES = 256 << 20
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|File too large|File size limit exceeded")
_EXTENSION = re.compile(
    r"^#define (__(?:S?SSE|AVX|FMA|BMI|F16C|LZCNT|POPCNT|MOVBE|AES|PCLMUL|GFNI|VAES|VPCLMUL|ARM_FEATURE_)\w*) ",
    re.MULTILINE,
)
_X86_VECTORS = (("__AVX512F__", 64), ("__AVX__", 32), ("__SSE__", 16))
"""Macros of compilers by the bytes of the vectors that they say there are, the widest first."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9_]{1,200}\.h")


@dataclass(frozen=True, slots=True)
class BuiltLibrary:
    """A compiled schedule and what is needed to run it. `seconds` is what compiling took, once; `cached`
    says that it was taken from the cache; `log` is what the compiler printed. `starts_kernels`: it runs on a device.
    `buffers` are those of the C, with their bytes at the estimates."""

    path: Path
    key: str
    log: str
    seconds: float
    entry: str
    compiler: str
    flags: tuple[str, ...]
    runner: Path
    run_prefix: tuple[str, ...]
    cached: bool
    starts_kernels: bool = False
    buffers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler that was found: its program, and `identity`, which differs where the code it makes may. `extensions`
    are the macros of the instructions that it may use under the flags, `optimises` is False where these ask for no
    optimisation."""

    program: str
    version: str
    identity: str
    extensions: frozenset[str] = frozenset()
    optimises: bool = True


def build(
    source: CSource, platform: Platform, cache_dir: Path, timeout_s: float, cache_bytes: int | None = None
) -> BuiltLibrary:
    """The shared object of `source` for `platform`, from the cache or compiled now within `timeout_s` seconds.
    Libraries beyond `cache_bytes` in all leave the cache, those first that have not been asked for the longest.

    Raises CompileError: `compile_failure` with what the compiler said, `compile_timeout` (never remembered); StoreError
    where there is no space left (`store_full`) or the folder cannot be used. None of them leaves anything in the cache.
    """
    if not _HEADER_NAME.fullmatch(source.header_name):
        raise CompileError("compile_failure", "the header's name is not a file name")
    deadline = time.monotonic() + timeout_s
    cache_dir = cache_dir.resolve()
    with _storage_errors():
        toolchain = find_toolchain(platform.compiler, timeout_s)
        runner = _build_runner(toolchain, platform.compiler, cache_dir, deadline)
        folder, record, cached = _library(source, platform, toolchain, cache_dir, deadline)
        with suppress(OSError):
            os.utime(folder / RECORD_NAME)
        if cache_bytes is not None and not cached:
            _trim(folder.parent, cache_bytes)
    return BuiltLibrary(
        path=folder / LIBRARY_NAME,
        key=folder.name,
        log=record.log,
        seconds=record.seconds,
        entry=source.entry,
        compiler=toolchain.version,
        flags=tuple(f for f in record.flags if f not in ("-o", LIBRARY_NAME, SOURCE_NAME)),
        runner=runner,
        run_prefix=_run_prefix(platform),
        cached=cached,
        starts_kernels=platform.kind == "opencl",
        buffers=source.buffers,
    )


def build_program(code: str, compiler: Compiler, cache_dir: Path, timeout_s: float) -> Path:
    """A program of our own C, with OpenMP where the compiler has it, from the cache or compiled now.
    Raises CompileError as `build` does."""
    deadline = time.monotonic() + timeout_s
    with _storage_errors():
        toolchain = find_toolchain(compiler, timeout_s)
        openmp = ("-fopenmp",) if _knows_openmp(toolchain, compiler.flags) else ()
        arguments = (*compiler.flags, "-std=gnu11", *openmp, "-o", RUNNER_NAME, SOURCE_NAME)
        return _program(code, toolchain, compiler, arguments, cache_dir.resolve() / "programs", deadline)


def cannot_run_here(platform: Platform) -> str | None:
    """The reason why code for `platform` does not run on this processor by itself; None where it does. Raises
    CompileError where the platform's compiler is not there."""
    if platform.kind != "cpu":
        return f"it is of kind {platform.kind}"
    if platform.architecture != host_system.machine():
        return f"its architecture is {platform.architecture}, this machine's is {host_system.machine()}"
    native = "-mcpu=native" if platform.architecture == "aarch64" else "-march=native"
    here = find_toolchain(platform.compiler.model_copy(update={"flags": (native,)}))
    lacking = sorted(find_toolchain(platform.compiler).extensions - here.extensions)
    return f"this processor lacks {', '.join(name.strip('_') for name in lacking)}" if lacking else None


def slow_flags(platform: Platform) -> str | None:
    """The reason why the flags of a platform's compiler make slow code for it; None where none is known. Raises
    CompileError where the compiler is not there."""
    if platform.kind != "cpu":
        return None
    toolchain = find_toolchain(platform.compiler)
    if not toolchain.optimises:
        return "they ask for no optimisation: add -O3"
    widest = next((size for macro, size in _X86_VECTORS if macro in toolchain.extensions), None)
    if platform.architecture == "x86_64" and widest is not None and platform.vector_bytes > widest:
        return (
            f"they allow vectors of {widest} bytes, and the platform says vector_bytes: {platform.vector_bytes}: every "
            f"vector becomes several, or scalars; write vector_bytes: {widest}, or other flags"
        )
    return None


def _run_prefix(platform: Platform) -> tuple[str, ...]:
    """The emulator, where this host is not of the platform's architecture."""
    return () if host_system.machine() == platform.architecture else platform.compiler.run_prefix


def find_toolchain(compiler: Compiler, timeout_s: float = 30.0) -> Toolchain:
    """The compiler's program on the search path, and what it is; raises CompileError where there is none."""
    program = shutil.which(compiler.command)
    if program is None:
        raise CompileError("compile_failure", f"the compiler {compiler.command} is not installed here")
    stamp = os.stat(program)
    asked = (program, compiler.flags, stamp.st_mtime_ns, stamp.st_size)
    if asked not in _TOOLCHAINS:
        _TOOLCHAINS[asked] = _probe(program, compiler.flags, timeout_s)
    return _TOOLCHAINS[asked]


# Of this process; the stamp of the program tells an updated one from the old one.
_TOOLCHAINS: dict[tuple[str, tuple[str, ...], int, int], Toolchain] = {}


def _probe(program: str, flags: tuple[str, ...], timeout_s: float) -> Toolchain:
    """The compiler's version and what it predefines under `flags`."""
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as name:
        folder = Path(name).resolve()
        done = _run_compiler(program, (*flags, "-dM", "-E", "-x", "c", "/dev/null"), folder, timeout_s, 1 << 20)
    if done.timed_out:
        raise CompileError("compile_timeout", "the compiler does not answer")
    if done.returncode != 0:
        raise _failure(done, folder)
    macros = done.stdout.decode("utf-8", "replace")
    match = re.search(r'^#define __VERSION__ "(.*)"$', macros, re.MULTILINE)
    version = f"{Path(program).name} {match[1] if match else 'of unknown version'}"
    extensions = frozenset(_EXTENSION.findall(macros))
    identity = hashlib.sha256(macros.encode()).hexdigest()
    return Toolchain(program, version, identity, extensions, "#define __OPTIMIZE__ " in macros)


@lru_cache(maxsize=256)
def _knows_openmp(toolchain: Toolchain, flags: tuple[str, ...]) -> bool:
    """True if the compiler has OpenMP, its header and its library; tried once a process. CompileError `worker_lost`."""
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as name:
        folder = Path(name).resolve()
        (folder / SOURCE_NAME).write_text("#include <omp.h>\nint f(void) { return omp_get_max_threads(); }\n")
        arguments = (*flags, "-shared", "-fPIC", "-fopenmp", "-Wl,-z,defs", "-o", LIBRARY_NAME, SOURCE_NAME)
        done = _run_compiler(toolchain.program, arguments, folder, 30.0)
        if done.returncode != 0 and (error := _failure(done, folder)).code == LOST:
            raise error  # which says nothing of the compiler, and is not to be remembered
    return done.returncode == 0 and not done.timed_out


@dataclass(frozen=True, slots=True)
class _Record:
    """Record beside a compiled file; `digest` is the file's, so that a damaged entry is not used."""

    digest: str
    log: str
    seconds: float
    flags: tuple[str, ...]


def _library(
    source: CSource, platform: Platform, toolchain: Toolchain, cache_dir: Path, deadline: float
) -> tuple[Path, _Record, bool]:
    """The entry, its record, and whether it was there already; without OpenMP where the compiler has none."""
    own = (*platform.compiler.flags, *platform.compiler.scalar_flags(platform.architecture))
    flags = (*own, *(f for f in source.flags if f != "-fopenmp"))
    for openmp in (("-fopenmp",), ()):
        parts = (platform.triple, flags, openmp, source.code, source.header_name, source.header)
        folder = cache_dir / "libraries" / _key("library", toolchain, *parts)
        record = _read_record(folder, LIBRARY_NAME)
        if record is not None:
            return folder, record, True
        if openmp and not _knows_openmp(toolchain, platform.compiler.flags):
            continue
        arguments = (*flags, "-shared", "-fPIC", *openmp, "-o", LIBRARY_NAME, SOURCE_NAME, "-lm")
        arguments += tuple(f"-l{name}" for name in source.libraries)
        files = {SOURCE_NAME: source.code, source.header_name: source.header}
        break
    return folder, _compile(toolchain, arguments, files, LIBRARY_NAME, folder, deadline), False


def _build_runner(toolchain: Toolchain, compiler: Compiler, cache_dir: Path, deadline: float) -> Path:
    """The program that calls compiled pipelines, for the same target; compiled once."""
    code = RUNNER_SOURCE.read_text(encoding="utf-8")
    arguments = (*compiler.flags, "-std=gnu11", "-o", RUNNER_NAME, SOURCE_NAME, "-ldl")
    return _program(code, toolchain, compiler, arguments, cache_dir / "runners", deadline)


def _program(
    code: str, toolchain: Toolchain, compiler: Compiler, arguments: tuple[str, ...], parent: Path, deadline: float
) -> Path:
    folder = parent / _key("runner", toolchain, compiler.flags, code)
    if _read_record(folder, RUNNER_NAME) is None:
        _compile(toolchain, arguments, {SOURCE_NAME: code}, RUNNER_NAME, folder, deadline)
    return folder / RUNNER_NAME


def _compile(
    toolchain: Toolchain, arguments: tuple[str, ...], files: dict[str, str], result: str, folder: Path, deadline: float
) -> _Record:
    """Compile `files` to `result` aside, and move the complete entry to `folder`."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sweep(folder.parent)
    with held_folders.new_folder(folder.parent, f".building-{_here()}-") as aside:
        for name, text in files.items():
            (aside / name).write_text(text, encoding="utf-8")
        done = _run_compiler(toolchain.program, arguments, aside, max(0.0, deadline - time.monotonic()))
        if done.timed_out:
            raise CompileError("compile_timeout", "the compiler took too long", _text(done, aside))
        if done.returncode != 0 or not (aside / result).is_file():
            raise _failure(done, aside)
        (aside / result).chmod(0o700)  # the linker could not: confined programs change no attributes
        digest = hashlib.sha256((aside / result).read_bytes()).hexdigest()
        record = _Record(digest, _text(done, aside), done.seconds, arguments)
        written = {"digest": digest, "log": record.log, "seconds": record.seconds, "flags": arguments}
        (aside / RECORD_NAME).write_text(json.dumps(written, indent=1), encoding="utf-8")
        return _move_into_place(aside, folder, result, record)


def _move_into_place(aside: Path, folder: Path, result: str, record: _Record) -> _Record:
    """Rename the entry; where another process was first, theirs is kept, unless it is damaged."""
    for _ in range(3):
        try:
            os.rename(aside, folder)
            return record
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        theirs = _read_record(folder, result)
        if theirs is not None:
            return theirs
        damaged = Path(tempfile.mkdtemp(prefix=".damaged-", dir=folder.parent))
        with suppress(FileNotFoundError):
            os.rename(folder, damaged / "entry")
        shutil.rmtree(damaged, ignore_errors=True)
    raise CompileError("compile_failure", "the cache of builds is being changed by others")


def _read_record(folder: Path, result: str) -> _Record | None:
    """The entry in `folder`; None where there is none or it is damaged."""
    try:
        record = json.loads((folder / RECORD_NAME).read_text(encoding="utf-8"))
        digest = hashlib.sha256((folder / result).read_bytes()).hexdigest()
        found = _Record(record["digest"], record["log"], float(record["seconds"]), tuple(record["flags"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.digest == digest else None


def sweep(cache_dir: Path) -> None:
    """Removes what builds that were killed have left in a cache."""
    for parent in cache_dir.glob("*/"):
        _sweep(parent)


def _here() -> str:
    """The host, as names of folders that are being filled have it."""
    return re.sub("[^A-Za-z0-9]", "", host_system.node())


def _sweep(parent: Path) -> None:
    """Removes folders that nobody of this host is at; those of others, whose locks may not be seen here, when nobody
    can be at them any more."""
    held_folders.sweep(parent.glob(f".*-{_here()}-*"))
    for entry in parent.glob(".*-*"):
        with suppress(OSError):
            if time.time() - entry.stat().st_mtime > _STALE_S:
                shutil.rmtree(entry, ignore_errors=True)


def make_room(cache_dir: Path, wanted: int) -> int:
    """Removes entries of a cache, the least recently used first, until so many bytes are gone, or all but those of the
    last minutes; the bytes that are."""
    return _remove([entry for parent in cache_dir.glob("*/") for entry in _entries(parent)], wanted)


def _trim(parent: Path, limit: int) -> None:
    """Removes entries until what is left has `limit` bytes."""
    entries = _entries(parent)
    _remove(entries, sum(size for _, size, _ in entries) - limit)


def _entries(parent: Path) -> list[tuple[float, int, Path]]:
    """Last uses of entries, in seconds since 1970, with their bytes and folders."""
    entries = []
    for folder in parent.iterdir():
        with suppress(OSError):
            size = sum(f.stat().st_size for f in folder.iterdir())
            entries.append(((folder / RECORD_NAME).stat().st_mtime, size, folder))
    return entries


def _remove(entries: list[tuple[float, int, Path]], wanted: int) -> int:
    """Removes entries, the least recently used first, until `wanted` bytes are gone; the bytes that are. Those of the
    last minutes stay: they may be about to run."""
    gone = 0
    for used, size, folder in sorted(entries):
        if gone >= wanted or time.time() - used < _IN_USE_S:
            break
        shutil.rmtree(folder, ignore_errors=True)
        gone += size
    return gone


def _key(kind: str, toolchain: Toolchain, *parts: object) -> str:
    """A hash of everything that the result depends on."""
    return hashlib.sha256(json.dumps([_FORMAT, kind, toolchain.identity, *parts]).encode()).hexdigest()[:32]


def _run_compiler(
    program: str, arguments: tuple[str, ...], folder: Path, wall_s: float, output_bytes: int = 64 << 10
) -> Finished:
    """The compiler in `folder`, with nothing but what it needs: its path, and a place for its temporary files."""
    path = os.pathsep.join(dict.fromkeys((str(Path(program).parent), "/usr/local/bin", "/usr/bin", "/bin")))
    return execute(
        (program, *arguments),
        cwd=folder,
        limits=Limits(wall_s=wall_s, cpu_s=int(wall_s) + 2, file_bytes=_OBJECT_BYTES, output_bytes=output_bytes),
        environment={"PATH": path, "TMPDIR": str(folder), "LC_ALL": "C"},
        confinement=Confinement(writable=(folder,), readable=_of_compiler(program), processes=True),
    )


def _of_compiler(program: str) -> tuple[Path, ...]:
    """The folders of a compiler that lies outside of the system's: those of all it came with."""
    places = [Path(program).parent, Path(os.path.realpath(program)).parent]
    return tuple(dict.fromkeys(place.parent if place.name in ("bin", "sbin") else place for place in places))


def _failure(done: Finished, folder: Path) -> CompileError:
    text = _text(done, folder)
    if _NO_SPACE.search(text):
        return StoreError("store_full", "there is no space left to compile in", text)
    if done.exceeded is not None:
        return CompileError("compile_failure", _EXCEEDED[done.exceeded], text)
    killed = _KILLED.search(text)
    if done.signal == signal.SIGKILL or (killed is not None and "killed" in killed[0].lower()):
        return CompileError(LOST, "the compiler was killed from outside, not for want of memory or time", text)
    if done.signal is not None:
        return CompileError("compile_failure", f"the compiler was killed by signal {done.signal}", text)
    if killed is not None:
        return CompileError("compile_failure", f"a process of the compiler was killed: {killed[0]}", text)
    return CompileError("compile_failure", "the compiler refused the code", text)


_EXCEEDED: dict[Exceeded, str] = {
    "memory": "the compiler needs more memory than a build may",
    "processes": "the compiler started too many processes",
    "files": "the compiler wrote more files than a build may",
}
# what the drivers of GCC and Clang say of their own children
_KILLED = re.compile(
    r"(?i)killed signal terminated program \w+|terminated with signal .*|unable to execute command: killed"
    r"|command failed due to signal.*"
)


def _text(done: Finished, folder: Path) -> str:
    """Output of a compiler, without the paths of the folder it worked in."""
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    return text.replace(f"{folder}{os.sep}", "").replace(str(folder), "")


@contextmanager
def _storage_errors() -> Iterator[None]:
    """A full or unwritable file system, as the error of a job."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreError("store_full", "there is no space left to compile in") from None
        raise StoreError("compile_failure", f"the cache of builds cannot be used: {error.strerror}") from None
