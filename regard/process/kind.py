"""The kind of machine, in a word or two: figures of one kind say little about another.

By what runs, not by what is claimed; instructions that were ruled out by the user are named too.
"""

import os
import platform

from regard.process.cpu import advertises_tiles, processor
from regard.process.machine import ATEN, ISA, OLD_ISA, facts, set_by_user

FORCING = (ATEN, ISA, OLD_ISA, "REGARD_ENGINE_PATH")
# The first of a list that the processor has all of; the flags are those of /proc/cpuinfo.
X86 = (
    ("avx512-vnni-bf16", {"avx512f", "avx512bw", "avx512_vnni", "avx512_bf16"}),
    ("avx512-vnni", {"avx512f", "avx512bw", "avx512_vnni"}),
    ("avx512", {"avx512f", "avx512bw"}),
    ("avx-vnni", {"avx2", "avx_vnni"}),
    ("avx2", {"avx2"}),
)
ARM = (("aarch64-i8mm", {"i8mm"}), ("aarch64-dotprod", {"asimddp"}))


def kind() -> str:
    """What results are kept under: avx2; avx512-vnni-bf16, tiles die; avx512-vnni machine, forced to avx2."""
    flags = processor().flags
    name = next((word for word, needed in (*X86, *ARM) if needed <= flags), platform.machine())
    forced = sorted({os.environ[each].lower().replace("_", "-") for each in FORCING if set_by_user(each)})
    if forced:
        return f"{name} machine, forced to {' and '.join(forced)}"
    if not advertises_tiles():
        return name
    return f"{name}, tiles" if facts().tiles else f"{name}, tiles die"
