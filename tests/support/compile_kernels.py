"""Compiles the kernels for GPUs that are not here, and prints how many bytes each of them spills.

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

from pyg_recmetrics.kernels import fused_products, programs
from pyg_recmetrics.kernels.blocks import BLOCK_SIZE

NVIDIA = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"

#: The dtypes of all that is no constant.
TYPES = {
    "user": "*fp16",
    "item": "*fp16",
    "best": "*fp32",
    "values": "*fp32",
    "row": "*i64",
    "block": "*i64",
    "num_rows": "i32",
    "num_values": "i32",
    "num_columns": "i32",
    "num_blocks": "i32",
}
CONSTANTS = {
    "block_size": BLOCK_SIZE,
    "rows_at_once": fused_products.NUM_ROWS,
    "blocks_at_once": fused_products.NUM_BLOCKS,
    "values_at_once": fused_products.NUM_VALUES,
}


def compiled(kernel, capability, dim):
    """The machine code of a kernel for a GPU of some compute capability."""
    constants = CONSTANTS | {"dim": dim, "padded_dim": max(16, triton.next_power_of_2(dim))}
    names = kernel.arg_names
    signature = {name: TYPES.get(name, "constexpr") for name in names}
    constants = {(names.index(name),): constants[name] for name in names if name in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    target, options = GPUTarget("cuda", capability, 32), {"num_warps": fused_products.NUM_WARPS}
    return triton.compile(source, target=target, options=options).asm["cubin"]


def num_spilled(code):
    """How many bytes of the stack a kernel needs."""
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
        for kernel in (programs.find_largest, programs.compute):
            for dim in (16, 33, 64, 128):
                spilled = num_spilled(compiled(kernel, capability, dim))
                print(f"sm_{capability} {kernel.__name__} dim={dim}: {spilled} bytes spilled")
