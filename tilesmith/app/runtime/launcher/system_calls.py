"""The filter of system calls (seccomp) that every confined program runs under, as a classic BPF program.

It refuses what no compiler and no compiled pipeline needs and what escapes are made of: sockets, tracing, namespaces,
mounts, keys, other processes' memory, attributes of files, memory that no limit counts. Everything else is allowed.
"""

from __future__ import annotations

import errno
import os
import struct

_X86_64 = 0xC000003E
_AARCH64 = 0xC00000B7
_RISCV64 = 0xC00000F3
_AUDIT = {"x86_64": _X86_64, "aarch64": _AARCH64, "riscv64": _RISCV64}

# name: (x86_64, the generic table of aarch64 and riscv64); None where there is no such call
_OLDER = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # Landlock has no say in who may change a file's attributes
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "truncate": (76, 45),
    # all that a program starts stays in the process group that it is stopped with
    "setpgid": (109, 154),
    "setsid": (112, 157),
}
# the same number everywhere
_NEWER = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "open_tree_attr": 467,
    "file_setattr": 469,
}
_SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}
_FORKS = {"fork": (57, None), "vfork": (58, None)}
_CLONE = (56, 220)
_MMAP = (9, 222)
_PRLIMIT = (302, 261)
_CLONE3 = 435

_THREAD = 0x0001_0000
_NAMESPACES = 0x7E02_0080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}
_SHARED_ANONYMOUS = 0x21
_X32 = 0x4000_0000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _ARGUMENT_BYTES = 0, 4, 16, 8

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _KILL, _REFUSE = 0x7FFF_0000, 0x8000_0000, 0x0005_0000

INSTRUCTION_BYTES = 8

Instruction = tuple[int, int, int, int]
_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)
_REFUSED: Instruction = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
_ABSENT: Instruction = (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)
_TOO_MANY: Instruction = (_RETURN, 0, 0, _REFUSE | errno.EAGAIN)


def numbers(machine: str) -> dict[str, int] | None:
    """The numbers of the calls that are refused whatever their arguments; None on a machine whose calls are unknown."""
    if machine not in _AUDIT:
        return None
    column = int(machine != "x86_64")
    found = {name: both[column] for name, both in _OLDER.items()}
    return {name: number for name, number in found.items() if number is not None} | _NEWER


def filter_program(machine: str | None = None, own_pid: int | None = None, processes: bool = True) -> bytes | None:
    """The BPF program (`struct sock_filter` after another), or None where this machine's calls are unknown.

    With `own_pid` only the process of that number gets signals: for where no namespace hides the others. Without
    `processes` threads may be started, but no processes, as if there were too many already.
    """
    machine = machine or os.uname().machine
    refused = numbers(machine)
    if refused is None:
        return None
    column = int(machine != "x86_64")
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _AUDIT[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    for number in sorted(refused.values()):
        program += [(_EQUAL, 0, 1, number), _REFUSED]
    # glibc then uses clone, whose flags can be seen
    program += [(_EQUAL, 0, 1, _CLONE3), _ABSENT]
    started = () if processes else ((_ANY_BIT, 1, 0, _THREAD), _TOO_MANY)
    program += _where(_CLONE[column], 0, (_ANY_BIT, 0, 1, _NAMESPACES), _REFUSED, *started, _ALLOWED)
    if not processes:
        forks = (both[column] for both in _FORKS.values())
        program += [i for one in forks if one is not None for i in ((_EQUAL, 0, 1, one), _TOO_MANY)]
    # memory that RLIMIT_DATA does not count
    both = (_AND, 0, 0, _SHARED_ANONYMOUS), (_EQUAL, 0, 1, _SHARED_ANONYMOUS)
    program += _where(_MMAP[column], 3, *both, _REFUSED, _ALLOWED)
    program += _where(_PRLIMIT[column], 0, (_EQUAL, 1, 0, 0), _REFUSED, _ALLOWED)
    if own_pid is not None:
        for number in (both[column] for both in _SIGNALS.values()):
            program += _where(number, 0, (_EQUAL, 1, 0, own_pid), _REFUSED, _ALLOWED)
    return b"".join(struct.pack("<HBBI", *i) for i in (*program, _ALLOWED))


def _where(number: int, argument: int, *then: Instruction) -> list[Instruction]:
    """`then`, with the low half of an argument loaded, for the call of that number. It must end the program."""
    load = (_LOAD, 0, 0, _FIRST_ARGUMENT + _ARGUMENT_BYTES * argument)
    return [(_EQUAL, 0, 1 + len(then), number), load, *then]
