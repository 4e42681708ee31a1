"""Compiles programs for GPUs that are not here, and prints what memory each of them takes.

This must run where Triton does not interpret kernels.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from pyg_recmetrics.kernels.fast.blocks import Blocks
from pyg_recmetrics.kernels.gpu import fused_products, programs

NVIDIA = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"

#: How many bytes of shared memory a program may take on the smallest of these GPUs.
MAX_SHARED = 99 * 2**10

#: The dtypes of all that is no constant.
TYPES = {
    "user": "*fp16",
    "item": "*fp16",
    "best": "*fp32",
    "limit": "*fp32",
    "slope": "*fp32",
    "least": "*fp32",
    "norm": "*fp32",
    "num_above": "*i32",
    "is_open": "*u8",
    "values": "*fp32",
    "row": "*i64",
    "block": "*i64",
    "num_rows": "i32",
    "num_values": "i32",
    "num_columns": "i32",
    "num_blocks": "i32",
}
CONSTANTS = {
    "block_size": Blocks.block_size,
    "num_limits": fused_products.NUM_LIMITS,
    "blocks_at_once": fused_products.NUM_BLOCKS,
    "values_at_once": fused_products.NUM_VALUES,
}
ROWS_AT_ONCE = {
    programs.find_largest: fused_products.NUM_ROWS,
    programs.count_above: fused_products.NUM_ROWS_COUNTED,
}


def compiled(kernel, capability, dim):
    """A program for a GPU of some compute capability."""
    constants = CONSTANTS | {"dim": dim, "padded_dim": max(16, triton.next_power_of_2(dim))}
    constants["rows_at_once"] = ROWS_AT_ONCE.get(kernel)
    names = kernel.arg_names
    signature = {name: TYPES.get(name, "constexpr") for name in names}
    constants = {(names.index(name),): constants[name] for name in names if name in constants}
    # Triton finds out for itself what is divisible by 16.
    is_even = [("*" in TYPES.get(name, "")) or name == "num_blocks" for name in names]
    attributes = {(i,): [["tt.divisibility", 16]] for i, found in enumerate(is_even) if found}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    target, options = GPUTarget("cuda", capability, 32), {"num_warps": fused_products.NUM_WARPS}
    return triton.compile(source, target=target, options=options)


def check_sums_start_at_zero(program):
    """Nothing but products may be added up, or else the bound on the error is too small."""
    text = program.asm["ttir"]
    starts = re.findall(r"tt\.dot [^,]+, [^,]+, (%\w+)", text)
    if not all(f"{start} = arith.constant dense<0.000000e+00>" in text for start in starts):
        raise RuntimeError(f"{program.metadata.name} adds something to its products")


def num_spilled(code):
    """How many bytes of the stack machine code needs."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        usage = subprocess.run(
            [NVIDIA / "cuobjdump", "-res-usage", file.name],
            capture_output=True,
            text=True,
            check=True,
        )
    return int(re.search(r"STACK:(\d+)", usage.stdout)[1])


if __name__ == "__main__":
    for capability in map(int, sys.argv[1:]):
        for kernel in (programs.find_largest, programs.count_above, programs.compute):
            for dim in (16, 33, 64, 128):
                program = compiled(kernel, capability, dim)
                check_sums_start_at_zero(program)
                if program.metadata.shared > MAX_SHARED:
                    raise RuntimeError(f"{kernel.__name__} takes too much of the shared memory")
                spilled = num_spilled(program.asm["cubin"])
                print(f"sm_{capability} {kernel.__name__} dim={dim}: {spilled} bytes spilled")
