"""What makes intervals too narrow, in one line."""

from collections.abc import Iterator, Mapping

from pyg_recmetrics.results.inference import Sample

#: Below so many users, persons, and users with a value above zero, simulations find that 95%
#: intervals of means hold in less than 93% of cases.
FEW_USERS, FEW_PERSONS, FEW_HITS = 100, 50, 20


def caution(samples: Mapping[str, Sample]) -> str | None:
    """Returns what makes the intervals of some means too narrow; `None` if nothing does.

    Args:
        samples (mapping): The values of the users who count, by metric.
    """
    reasons = list(_reasons(samples))
    return f"intervals may be too narrow: {', and '.join(reasons)}" if reasons else None


def caution_on_persons(sample: Sample) -> str | None:
    """Returns the same of persons with several rows; `None` if there are enough of them."""
    reason = _few_persons(sample)
    return reason and f"intervals may be too narrow: {reason}"


def _reasons(samples: Mapping[str, Sample]) -> Iterator[str]:
    with_interval = {name: sample for name, sample in samples.items() if sample.num_drawn >= 2}
    if not with_interval:
        return
    fewest = min(with_interval.values(), key=lambda sample: sample.num_effective)
    if reason := _few_persons(fewest):
        yield reason
    elif fewest.num_drawn < FEW_USERS:
        yield f"there are few users ({fewest.num_drawn})"
        return
    rare = [name for name, sample in with_interval.items() if _is_rare(sample)]
    if rare:
        yield f"few users have more than zero in {', '.join(rare)}"


def _few_persons(sample: Sample) -> str | None:
    if sample.person is None or sample.num_effective >= FEW_PERSONS:
        return None
    return (
        f"there are few persons ({sample.num_drawn}, worth {sample.num_effective:.0f} of one size)"
    )


def _is_rare(sample: Sample) -> bool:
    return int((sample.values != 0).sum()) < FEW_HITS
