"""The arithmetic of ranking: tensors in, tensors out.

The kernels know neither tasks nor recommenders, and import nothing else of the package. Three
rooms hold three ideas:

- `exact/` says what the answer is. A score is an inner product, rounded once (`scores`, from
  `factors`). Items are sorted by it (`sorting`), or those that score higher are counted
  (`counting`). Both give `ranks`.
- `fast/` proves the same answer sooner. A product of rounded embeddings (`rounded_items`,
  `fast_products`) is cut into `blocks`, in which `searching` finds the ranks down to a depth; or
  `rank_counting` and `bounded_counting` count all ranks in it. What makes this right stands in
  `bounds`: a fast score is within a bound of the exact one, so whatever is closer than twice the
  bound is settled by exact scores.
- `gpu/` does the same on a GPU without storing the products. `fusing` asks whether a device can,
  `programs` compute, and `fused_products` and `fused_counting` wrap them.

Below them, `entries` are the few pairs of a row and an item that matter, `scratch` lends buffers,
and `devices` knows what a device does well.
"""
