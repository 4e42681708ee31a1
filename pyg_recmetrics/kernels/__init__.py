"""The arithmetic of ranking: tensors in, tensors out.

The kernels know neither tasks nor recommenders, and import nothing else of the package. Two rooms
hold two ideas:

- `exact/` says what the answer is. A score is an inner product, rounded once (`scores`). Items are
  sorted by it, or those that score higher are counted. Both lead to `ranks`; those in given lists
  need no scores.
- `fast/` proves the same answer sooner. A fast score is within a bound of the exact one
  (`rounded_items`), so only what is closer than that has to be settled by exact scores. `searching`
  finds the ranks down to a depth: it reads fast scores, which are products of rounded embeddings or
  given ones, in blocks, on a CPU. `bounded_counting` finds all ranks there: it counts the scores
  above thresholds, and compares the few that are close to one. `stored_scores` looks at the largest
  scores of each row, all of which are stored, where there are few items; or counts what is stored,
  on other devices.

Below them, `entries` are the few pairs of a row and an item that matter, `card` is the kernel that
counts and finds on a GPU, and `devices` knows what a device does well, and lends buffers.
"""
