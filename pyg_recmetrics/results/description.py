"""What a result says of itself: the lines below its table, and the paragraph for a paper."""

import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import torch

from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.metrics.registry import EmptyTargetAction
from pyg_recmetrics.ranked_edges import (
    ONE_SCORE_PER_ITEM,
    ListStatistics,
    RankedEdges,
    candidates_of,
    count_irrelevant,
    describe_lack,
    evaluated_mask,
)
from pyg_recmetrics.ranked_edges.ranked_edges import TIES_IN_WORDS
from pyg_recmetrics.results import notes
from pyg_recmetrics.results.counts import AverageOver, RowNouns, Sampling, UserCounts
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.edges import contains
from pyg_recmetrics.utils import all_items, counted, list_some
from pyg_recmetrics.version import __version__

#: How wide a recipe is printed.
_NUM_COLUMNS = 88

#: From how many users on a mean is too good to go without a question, and above what.
_MANY_USERS, _TOO_GOOD = 100, 0.99

#: How many seen edges are enough to learn from, and how many hits are enough to tell chance from
#: three times as many.
_ENOUGH_SEEN, _ENOUGH_HITS = 100, 10


class Described(Mapping[str, float]):
    """A result as far as it can be described: its metrics, its ranking, and how it came about."""

    ranked: RankedEdges
    task: RankingTask | None
    definitions: Mapping[str, Metric]
    per_user: Mapping[str, torch.Tensor]
    metrics: tuple[Metric, ...]
    empty_target_action: EmptyTargetAction
    convention: Convention
    average_over: AverageOver
    sampling: Sampling | None
    #: How users were drawn who stand for all of the task; `None` if all were ranked.
    _sampled: Sampling | None
    num_calls: int
    num_trials: int | None
    seconds: float | None

    @cached_property
    def max_k(self) -> int | None:
        """The largest cut-off of a metric; `None` if there is none."""
        return max((metric.k for metric in self.metrics if metric.k), default=None)

    @property
    @abstractmethod
    def user_counts(self) -> UserCounts:
        """How many users stand behind the result."""

    @property
    def nouns(self) -> RowNouns:
        """What its rows are called, such as `"queries"`."""
        return self.user_counts.nouns

    def recipe(self) -> str:
        r"""Says in a paragraph for a paper what exactly was measured.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> print(evaluate(torch.rand(3), task, "recall@2").recipe())
            Metrics: recall@2 (divided by R, averaged over users), where R is the number of relevant
            items of a user. Population: all 2 users with ground truth. Ranking: all 3 items, by one
            score per item; equal scores rank the lower item id first. Computed with pyg_recmetrics
            0.4.0, convention 'standard' (torch_geometric.metrics 2.8).
        """
        ranked, nouns, convention = self.ranked, self.nouns, self.convention
        degree, of_edges, threshold = f"the number of relevant items of a {nouns.user}", "", ""
        if nouns.rows == "edges":
            degree = "one, as each edge is ranked alone"
            of_edges = f"; each edge is ranked without the other relevant items of its {nouns.user}"
        if self.task is not None and self.task.threshold is not None:
            threshold = f", those of weight {self.task.threshold:g} or more"
        ties = "" if ranked.num_tied is None else f"; {TIES_IN_WORDS[ranked.ties]}"
        text = (
            f"Metrics: {_in_words(self.definitions.values())}, where R is {degree}{threshold}. "
            f"Population: {self._population()}. "
            f"Ranking: {self._ranking()}{of_edges}{ties}. "
            f"Computed with pyg_recmetrics {__version__}, convention '{convention.name}' "
            f"({convention.source}){''.join(f'; {note}' for note in self._selection)}."
        )
        if self._protocol:
            text += f" Caution: {'; '.join(self._protocol)}."
        return textwrap.fill(text, width=_NUM_COLUMNS, break_on_hyphens=False)

    def _population(self) -> str:
        """Returns which users were evaluated, and how the others count."""
        users, required = self.user_counts, " and ".join(self.convention.population.describe())
        text = f"{counted(users.num_evaluated, users.nouns.rows)} with ground truth"
        if self.sampling is not None:
            text = notes.describe_sampling(self.sampling, users.nouns)
            text += f", of those with {required}" if required else ""
        elif required:
            text = f"the {text} and {required}"
        else:
            text = f"{'the' if users.num_evaluated == 1 else 'all'} {text}"
        if users.num_without_truth:
            fate = {"skip": "are left out", "neg": "count as zero", "pos": "count as one"}
            without = f"{users.num_without_truth:,} without"
            text += f" ({without} {fate.get(self.empty_target_action, '')})"
        if of_lists := [str(x) for x in self.definitions.values() if not x.needs_truth]:
            text += f", and for {', '.join(of_lists)} all {users.num_with_list:,} users with a list"
        if required:
            text += f" ({users.num_left_out:,} excluded)"
        if self.average_over == "person" and self.ranked.origin.person is not None:
            text += (
                f"; means are over {self.ranked.origin.person.unique().numel():,} persons, each "
                f"with the mean of its {users.nouns.rows}"
            )
        return text

    def _ranking(self) -> str:
        """Returns which items were ranked, and by what."""
        task, origin, user = self.task, self.ranked.origin, self.nouns.user
        if task is None:
            return "as given"
        items, num_seen = f"all {task.num_items:,} items", task.seen.size(1)
        if task.candidates is not None and task.candidates.dim() == 1:
            items = f"{task.candidates.numel():,} of {task.num_items:,} items"
        elif task.candidates is not None:
            items = f"each {user}'s own candidates"
            if task.missing == "count":
                items += " (truth that is not among them counts as not retrieved)"
        if num_seen and task.exclude_seen:
            items += f" except those that the {user} is connected to by {num_seen:,} seen edges"
        elif num_seen:
            items += f", also those that the {user} has seen"
        masked = origin.num_masked
        if masked is not None and (number := int(masked[evaluated_mask(self.ranked)].sum())):
            items += f", except {number:,} pairs of a {user} and an item with a score of -inf"
        by = "" if origin.ranked_by is None else f", by {origin.ranked_by}"
        return f"{items}{by}{f' ({lack})' if (lack := self._lack_of_lists) else ''}"

    def _on_users(self) -> str:
        """Returns one line that counts the users behind the means."""
        users = self.user_counts
        parts = [f"{counted(users.num_evaluated, users.nouns.rows)} evaluated"]
        if users.num_without_truth:
            counted_as = {"neg": " (count as 0)", "pos": " (count as 1)"}
            of_action = counted_as.get(self.empty_target_action, "")
            parts.append(f"{users.num_without_truth:,} without ground truth{of_action}")
        if users.num_with_few_candidates:
            parts.append(
                f"{users.num_with_few_candidates:,} with fewer than {self.max_k} candidates"
            )
        if users.num_left_out:
            left_out = counted(users.num_left_out, users.nouns.users)
            parts.append(f"{left_out} left out of the population")
        if self.convention.name != "standard":
            parts.append(f"convention {self.convention.name}")
        return ", ".join(parts)

    def _on_sample(self) -> list[str]:
        """Returns whose users stand for all of the task; nothing if none do."""
        return [] if self._sampled is None else [notes.note_on_sampling(self._sampled, self.nouns)]

    @property
    def _selection(self) -> list[str]:
        """How the recommender was chosen, as far as that is known."""
        calls = notes.note_on_calls(self.num_calls, self.nouns)
        return [*filter(None, [calls, notes.note_on_budget(self.num_trials, self.seconds)])]

    @property
    def _lack_of_lists(self) -> str | None:
        """What lists lack, in words; `None` if nothing, or if there are none."""
        ranked, metrics = self.ranked, self.definitions.values()
        if ranked.origin.listed is None:
            return None
        depths = [metric.depth for metric in metrics]
        return describe_lack(
            ranked.origin.listed,
            ranked.degree,
            candidates_of(ranked),
            None if None in depths else max(depth for depth in depths if depth is not None),
            any(metric.k is None for metric in metrics),
            ranked.user_ids,
            self.nouns.users,
        )

    @cached_property
    def _protocol(self) -> tuple[str, ...]:
        """What is unusual about how users were evaluated, so that numbers do not compare."""
        return tuple(self._on_protocol())

    def _on_protocol(self) -> Iterator[str]:
        task, ranked, nouns = self.task, self.ranked, self.nouns
        of_lists = [str(x) for x in self.definitions.values() if "items" in x.needs]
        if of_lists and ranked.origin.listed is not None:
            listed = ListStatistics(*ranked.origin.listed[evaluated_mask(ranked)].unbind(1))
            num_unknown, num_known = (
                int(x.clamp(min=0).sum()) for x in (listed.num_unknown, listed.num_items)
            )
            if num_unknown:
                yield (
                    f"{list_some(of_lists)} leave out items that the task does not have, "
                    f"{num_unknown:,} of {num_known + num_unknown:,} down to the depth of the "
                    f"ranking: values are others with the whole catalogue, as with {all_items()}"
                )
        has_truth = evaluated_mask(ranked) & (ranked.degree > 0)
        good = [name for name in self.per_user if self._is_too_good(name)]
        if good and int(has_truth.sum()) >= _MANY_USERS:
            yield f"{list_some(good)} above {_TOO_GOOD:g}: the recommender may know the truth"
        if task is None:
            return
        if not task.knows_seen and task.exclude_seen:
            yield (
                "no seen items are left out: 'edge_index', which says who has seen what, is not "
                "given"
            )
        if part := task.part_of:
            of_whole = counted(part.num_users, nouns.users)
            yield (
                f"a part of the task, {part.num_own:,} of its {of_whole}: means, and metrics of "
                f"all lists such as coverage, are of these alone"
            )
        if level := note_on_chance(task, ranked):
            yield level
        if task.candidates is not None and task.candidates.dim() == 2 and bool(has_truth.any()):
            low, high = (int(x) for x in count_irrelevant(ranked)[has_truth].aminmax())
            others = (
                counted(low, "other items") if low == high else f"{low:,} to {high:,} other items"
            )
            yield (
                f"ranked among {others} and their own truth, not among all "
                f"{task.num_items:,}: not comparable with a full ranking"
            )
        in_seen = contains(task.seen, task.truth, task.num_items)
        if not task.exclude_seen and (num_seen := int(in_seen.sum())):
            yield (
                f"{num_seen:,} of {task.truth.size(1):,} relevant items are message-passing "
                f"edges: a leak, unless this is the training part of a split"
            )
        if task.query is None and task.seen.size(1):
            num_edges = torch.bincount(task.seen[0], minlength=task.num_users)[
                task.users_with_truth
            ]
            if num_cold := int((num_edges == 0).sum()):
                of_all = counted(num_edges.numel(), nouns.users)
                yield f"{num_cold:,} of {of_all} have no training edges"

    def _is_too_good(self, name: str) -> bool:
        defined = self.definitions[name].definition
        is_share = defined.range == (0.0, 1.0) and defined.higher_is_better and defined.needs_truth
        is_of_top = defined.depends_on_order and not defined.needs_all_ranks
        return is_share and is_of_top and self[name] > _TOO_GOOD


def note_on_chance(task: RankingTask, ranked: RankedEdges) -> str | None:
    """Returns a question about scores that rank no better than chance; `None` if they do.

    Such a model may number users or items in another order, or give better items lower scores. One
    that is not trained is asked about, too: hence this is a line of a result, and no warning in
    every epoch. It looks at the ranks of the truth, also where the scores of what was seen are no
    longer there to be asked about. Seen items that are not left out stand before the truth, and
    then nothing is said.

    Of all orders of `n` candidates, `k / n` have a relevant item in the top `k`. Hits are level
    with chance if they are less than twice as many, and not more by two standard errors. These are
    those of sums over items, as a wrong order gives many users the same items.
    """
    num_tied, is_own = ranked.num_tied, ranked.origin.ranked_by != ONE_SCORE_PER_ITEM
    if num_tied is None or not is_own or task.excluded.size(1) < _ENOUGH_SEEN:
        return None
    user, item = ranked.edge_label_index
    can_be_hit = evaluated_mask(ranked)[user] & (num_tied >= 0)
    user, item, rank = user[can_be_hit], item[can_be_hit], ranked.rank[can_be_hit]
    most = int(candidates_of(ranked).max())
    k = min(ranked.depth or most, most // 10)
    is_hit, chance = (rank <= k).double(), (k / candidates_of(ranked)[user].double()).clamp(max=1)
    hits, expected = int(is_hit.sum()), float(chance.sum())
    error = float(torch.bincount(item.cpu(), (is_hit - chance).cpu()).norm())
    if expected < _ENOUGH_HITS or hits >= expected + min(expected, 2 * error):
        return None
    return (
        f"{hits:,} of {counted(rank.numel(), 'relevant items')} are in the top {k:,}, and "
        f"{expected:,.0f} would be by chance: is the recommender trained, are its ids in the order "
        f"of the task, and are higher scores better?"
    )


def _in_words(definitions: Iterable[Metric]) -> str:
    """Says what the metrics are, with one definition for all cut-offs of a metric."""
    cut_offs: dict[tuple[str, str, bool], list[str]] = {}
    for metric in definitions:
        # A metric without a cut-off, such as "mrr", is no cut-off of "mrr@10".
        same = cut_offs.setdefault((metric.name, metric.variant, metric.k is None), [])
        cut_off = "" if metric.k is None else f"@{metric.k}"
        if cut_off not in same:  # Two metrics may differ in an argument that has no effect.
            same.append(cut_off)
    said = []
    for (name, variant, _), (*others, last) in cut_offs.items():
        spelled = name + (f"{', '.join(others)} and {last}" if others else last)
        said.append(f"{spelled} ({variant})" if variant else spelled)
    return "; ".join(said)
