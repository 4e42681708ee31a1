"""Results of parts, merged in any way, are that of one call to the last bit."""

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import EvaluationResult, PairScorer, RankingTask, conventions, evaluate, merge
from pyg_recmetrics.conventions import Population
from tests.support.cases.random_tasks import random_task
from tests.support.cases.recommender_forms import RecordingModel
from tests.support.tools.everything import everything as of_result

NUM_USERS, NUM_ITEMS = 23, 15
OF_USERS = ["ndcg@4", "recall(average=micro)@3", "r_precision", "roc_auc", "coverage@3", "gini@3"]
OF_EDGES = ["mrr", "hit_rate@3", "mean_rank"]

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*depending on the order of ties",
    "ignore:.*can never be retrieved",
    "ignore:.*have the same score for everybody",
    "ignore:.*user with ground truth",
    "ignore:intervals may be too narrow",
    "ignore:'results' hold .* users of a task",
)


def make_task(**options):
    return random_task(NUM_USERS, NUM_ITEMS, truth_share=0.12, seen_share=0.2, **options)


def make_scores(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 6, (NUM_USERS, NUM_ITEMS), generator=generator).float()


def recommenders():
    scores = make_scores(0)
    masked = scores.masked_fill(make_scores(1) == 0, -torch.inf)
    return {
        "matrix": scores,
        "masked": masked,
        "function": lambda users: masked[users],
        "embeddings": (scores, torch.eye(NUM_ITEMS)),
        "popularity": scores[0],
        "pairs": PairScorer(lambda user, item: scores[user, item]),
        "lists": torch.nn.functional.pad(
            scores.argsort(dim=1, descending=True, stable=True), (0, 1), value=-1
        ),
        "model": RecordingModel(scores, NUM_USERS),
    }


RECOMMENDERS = recommenders()
EDGE_INDEX = torch.tensor([[0, NUM_USERS], [NUM_USERS, 0]])

TASKS = {
    "plain": {},
    "weights": {"weight": None},
    "candidates": {"candidates": (make_scores(2) > 1).nonzero().t()},
    "few users": {"users": torch.arange(0, NUM_USERS, 2)},
    "names": {"user_ids": [f"user {number}" for number in range(NUM_USERS)]},
    "persons": {"person": torch.arange(NUM_USERS) // 3},
}


def some(convention="standard"):
    return conventions.get(convention).with_population(Population(min_pos_test=2))


@st.composite
def evaluations(draw):
    """A task with the arguments of an evaluation, which `evaluate` may refuse."""
    kind = draw(st.sampled_from(sorted(TASKS)))
    options = dict(TASKS[kind])
    if "weight" in options:
        options["weight"] = 1.0 + torch.arange(make_task().truth.size(1)) % 5
    name = draw(st.sampled_from(sorted(RECOMMENDERS)))
    per = draw(st.sampled_from(["user", "user", "edge"]))
    arguments = {
        "metrics": OF_EDGES if per == "edge" else OF_USERS,
        "per": per,
        "edge_index": EDGE_INDEX,
        "empty_target_action": draw(st.sampled_from(["skip", "neg", "pos"])),
    }
    if name not in ("lists", "model"):
        arguments["ties"] = draw(st.sampled_from(["index", "best", "worst", "mean", "random"]))
    else:
        arguments["metrics"] = [metric for metric in arguments["metrics"] if "@" in metric]
    if per == "user":
        arguments["keep_items"] = draw(st.booleans())
        convention = draw(st.sampled_from([None, "recometrics", "rectools"]))
        if convention:
            arguments |= {"convention": convention, "metrics": ["ndcg@4", "map@3"]}
    if kind == "persons" and "coverage@3" not in arguments["metrics"] and per == "user":
        arguments["per"] = draw(st.sampled_from(["user", "person"]))
    if draw(st.booleans()):
        arguments["convention"] = some(arguments.get("convention", "standard"))
    return make_task(**options), RECOMMENDERS[name], arguments


def everything(result):
    """All that a result says, whether all users are named or none."""
    found, users = of_result(result), result.ranked.users
    del found["ranked"]["depth"], found["ranked"]["users"]
    evaluated = torch.arange(result.ranked.num_users) if users is None else users
    return found | {"users": evaluated.tolist()}


class TestMissingParts:
    """Whatever is lost on the way is an error, or is said."""

    METRICS = ("ndcg@4", "coverage@3")

    def parts(self, num_parts, *places, task=None):
        task = make_task() if task is None else task
        return [evaluate(make_scores(0), task.part(x, num_parts), self.METRICS) for x in places]

    @pytest.mark.parametrize("convention", ["standard", some()])
    def test_a_lost_part(self, convention):
        task = make_task()
        for lost in (0, 3):
            parts = [
                evaluate(make_scores(0), task.part(x, 5), self.METRICS, convention=convention)
                for x in range(5)
                if x != lost
            ]
            num_left = NUM_USERS - task.part(lost, 5).users.numel()
            said = f"got {num_left} of the {NUM_USERS} .*, not those of part {lost} of 5"
            with pytest.raises(ValueError, match=f"all parts .*{said}"):
                merge(parts)
            with pytest.warns(UserWarning, match=f"hold {num_left} of the {NUM_USERS} users"):
                merged = merge(parts, partial=True)
            users = torch.cat([task.part(x, 5).users for x in range(5) if x != lost])
            some_users = task.select_users(users)
            direct = evaluate(make_scores(0), some_users, self.METRICS, convention=convention)
            assert dict(merged) == dict(direct)
            said = f"{num_left} of its {NUM_USERS} users"
            assert said in " ".join(merged.recipe().split())
            assert said in str(merged)
            assert said not in str(direct)

    def test_parts_of_parts(self):
        task = make_task()
        halves = [task.part(x, 2) for x in range(2)]
        parts = [self.parts(3, 0, 1, 2, task=half) for half in halves]
        whole = evaluate(make_scores(0), task, self.METRICS)
        assert everything(merge([*parts[0], *parts[1]])) == everything(whole)
        with pytest.raises(ValueError, match="all parts"):
            merge([*parts[0], *parts[1][:2]])

    def test_a_selection_of_a_part_is_not_the_part(self):
        task = make_task()
        few = task.part(1, 2).select_users(task.part(1, 2).users_with_truth[:-1])
        parts = [evaluate(make_scores(0), part, "ndcg@4") for part in (task.part(0, 2), few)]
        with pytest.raises(ValueError, match="all parts"):
            merge(parts)

    @pytest.mark.parametrize("what", ["truth", "weight", "users"])
    def test_a_part_of_another_task(self, what):
        task = make_task()
        others = {
            "truth": (task.truth[:, 1:], {}),
            "weight": (task.truth, {"weight": torch.arange(1.0, 1 + task.truth.size(1))}),
            "users": (task.truth, {"users": torch.arange(1, NUM_USERS)}),
        }
        truth, options = others[what]
        sizes = {"num_users": NUM_USERS, "num_items": NUM_ITEMS, "seen": task.seen}
        of_other = RankingTask(truth, **sizes, **options).part(1, 2)
        parts = [evaluate(make_scores(0), part, "ndcg@4") for part in (task.part(0, 2), of_other)]
        for partial in (False, True):
            with pytest.raises(ValueError, match=r"parts of one task|weight|each user once"):
                merge(parts, partial=partial)

    @pytest.mark.parametrize("partial", [False, True])
    def test_parts_missing_among_tasks_of_their_own_users(self, partial):
        first = evaluate(torch.rand(4), own_part("ab").part(0, 2), "mrr")
        second = evaluate(torch.rand(4), own_part("cd"), "mrr")
        with pytest.raises(ValueError, match="all parts of a task"):
            merge([first, second], partial=partial)


@pytest.mark.filterwarnings("ignore:.* seen edges are not in .edge_index")
@given(evaluation=evaluations(), data=st.data())
def test_any_partition_is_one_call(evaluation, data, tmp_path_factory):
    task, recommender, arguments = evaluation
    try:
        whole = evaluate(recommender, task, **arguments)
    except ValueError:
        return  # as of lists that are too short for every edge
    num_parts = data.draw(st.sampled_from([1, 2, 3, 5, task.users.numel()]))
    order = data.draw(st.permutations(range(num_parts)))
    parts = [evaluate(recommender, task.part(index, num_parts), **arguments) for index in order]
    if data.draw(st.booleans()):  # some of them are merged before
        first, others = parts[: 1 + num_parts // 2], parts[1 + num_parts // 2 :]
        parts = [merge(first, partial=True), *others]
    if data.draw(st.booleans()):
        folder = tmp_path_factory.mktemp("parts")
        for number, part in enumerate(parts):
            part.save(folder / f"{number}.npz")
        parts = sorted(folder.iterdir())
    assert everything(merge(parts)) == everything(whole)


@pytest.mark.parametrize("per", ["user", "edge"])
@pytest.mark.parametrize("ties", ["index", "random"])
@pytest.mark.parametrize("first", [1, 9])
def test_parts_of_their_own_edges_stand_one_after_the_other(per, ties, first):
    names = [1, 2**70, "a", ("b", 2), -3, "1", *(f"user {number}" for number in range(17))]
    whole, scores = make_task(user_ids=names), make_scores(0)
    metrics = ["mrr", "hit_rate@3"] if per == "edge" else ["ndcg@4", "coverage@3", "novelty@3"]
    options = {"metrics": metrics, "per": per, "ties": ties}

    def own(start, end):
        def edges(of_all):
            is_own = (of_all[0] >= start) & (of_all[0] < end)
            return of_all[:, is_own] - torch.tensor([[start], [0]])

        task = RankingTask(
            edges(whole.truth),
            num_users=end - start,
            num_items=NUM_ITEMS,
            seen=edges(whole.seen),
            user_ids=names[start:end],
        )
        return evaluate(scores[start:end], task, **options)

    parts = [own(0, first), own(first, 14), own(14, NUM_USERS)]
    assert everything(merge(parts)) == everything(evaluate(scores, whole, **options))


@pytest.mark.parametrize(("seed", "num_items"), [(0, 8), (1, 8), (2, 40), (3, 40)])
def test_each_edge_is_known_as_deep_in_a_part_as_in_the_whole(seed, num_items):
    draw = torch.rand(9, num_items, generator=torch.Generator().manual_seed(seed))
    share = torch.tensor([0.6, 0.1, 0.05] * 3).unsqueeze(1)  # some users have many relevant items
    task = RankingTask((draw < share).nonzero().t(), num_users=9, num_items=num_items)
    options = {"metrics": ["mrr@4"], "per": "edge", "convention": some()}
    whole = evaluate(draw.mul(20).round(), task, **options)
    merged = merge(
        evaluate(draw.mul(20).round(), task.part(index, 3), **options) for index in range(3)
    )
    assert everything(merged) == everything(whole)
    assert merged.ranked.depth == whole.ranked.depth


@pytest.mark.filterwarnings("ignore:.*a score of '-inf'")
def test_all_ranks_are_known_where_scores_leave_few_candidates():
    users = torch.arange(6)
    task = RankingTask(torch.stack([users, users % 5]), num_users=6, num_items=8)
    scores = torch.rand(6, 8).masked_fill(torch.arange(8) >= 5, -torch.inf)
    whole = evaluate(scores, task, "recall@5")
    merged = merge(evaluate(scores, task.part(index, 3), "recall@5") for index in range(3))
    assert merged.ranked.depth is whole.ranked.depth is None
    assert merged.values_of("mean_rank").tolist() == whole.values_of("mean_rank").tolist()


def own_part(names, **options):
    """A part of two users with edges of their own."""
    edges = torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0, 1], [0, 0]])
    arguments = {
        "num_users": 2,
        "num_items": 4,
        "seen": edges[1],
        "user_ids": list(names),
    } | options
    return RankingTask(edges[0], **arguments)


class TestRefused:
    def parts(self, **changes):
        """Results of two parts, of which the second is another one."""
        options = {"recommender": make_scores(0), "metrics": ["ndcg@4"], "ties": "index"}
        data = make_task(**changes.pop("task", {}))
        first = evaluate(**options, data=make_task().part(0, 2))
        return [first, evaluate(**options | changes, data=data.part(changes.pop("index", 1), 2))]

    @pytest.mark.parametrize(
        ("changes", "what"),
        [
            ({"metrics": ["ndcg@5"]}, "metrics"),
            ({"convention": "rectools"}, "convention"),
            ({"ties": "mean"}, "ties"),
            ({"per": "edge", "metrics": ["ndcg@4"]}, "per"),
            ({"keep_items": True}, "keep_items"),
            ({"recommender": (make_scores(0), torch.eye(NUM_ITEMS))}, "recommender"),
            ({"task": {"item_ids": [f"item {number}" for number in range(NUM_ITEMS)]}}, "item_ids"),
            ({"task": {"exclude_seen": False}}, "exclude_seen"),
            ({"task": {"seed": 3}}, "seen"),
        ],
    )
    def test_it_says_what_differs(self, changes, what):
        with pytest.raises(ValueError, match=rf"'results' needs to hold .*\(got .*{what}"):
            merge(self.parts(**changes))

    @pytest.mark.parametrize("names", [None, [f"user {number}" for number in range(NUM_USERS)]])
    def test_a_user_twice(self, names):
        task, user = make_task(user_ids=names), 0 if names is None else "user 0"
        part = evaluate(make_scores(0), task.part(0, 2), "ndcg@4")
        with pytest.raises(ValueError, match=f"each user once .*, such as {user!r}"):
            merge([part, part])

    @pytest.mark.parametrize(
        ("options", "what"),
        [
            ({"candidates": torch.tensor([[0, 0, 1], [1, 2, 2]])}, "candidates"),
            ({"query": torch.tensor([[1], [2]])}, "query"),
            ({"user_ids": None}, "user_ids"),
            ({"person": [0, 0]}, "persons"),
        ],
    )
    def test_own_parts_that_differ_in_more_than_their_users(self, options, what):
        parts = [evaluate(torch.rand(4), own_part("ab"), "mrr")]
        parts.append(evaluate(torch.rand(4), own_part("cd", **options), "mrr"))
        with pytest.raises(ValueError, match=what):
            merge(parts)

    def test_what_is_no_result_of_all_users_of_a_task(self):
        users = torch.arange(3000)
        task = RankingTask(torch.stack([users, users % 5]), num_users=3000, num_items=5)
        sampled = evaluate(torch.arange(5.0), task, "ndcg@4", margin=0.1)
        alone = EvaluationResult(sampled.ranked, "ndcg@4")
        for results, error, message in (
            ([], ValueError, "at least one result"),
            ([3], TypeError, "results, or paths of saved ones"),
            (sampled, TypeError, "iterable of results"),
            ([sampled], ValueError, "got one with a margin"),
            ([alone], ValueError, "got one without a task"),
        ):
            with pytest.raises(error, match=message):
                merge(results)

    @pytest.mark.parametrize(("index", "num_parts"), [(2, 2), (-1, 2), (0, 0), (0, NUM_USERS + 1)])
    def test_a_part_that_there_is_not(self, index, num_parts):
        with pytest.raises(ValueError, match=r"'(index|num_parts)' needs to be "):
            make_task().part(index, num_parts)
