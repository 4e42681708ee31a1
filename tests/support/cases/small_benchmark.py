"""Three recommenders on some data sets, of which one lacks a recommender."""

from pyg_recmetrics import Benchmark, Evaluator, Runs
from tests.support.cases.random_tasks import random_scores, random_task

METRICS = ["ndcg@3", "recall@3", "coverage@3"]

#: The users and items of each data set.
SHAPES = {"Small": (120, 15), "Wide": (150, 40), "Long": (300, 12)}

#: How much higher relevant items score, beside uniform numbers, and how many runs there are.
SKILLS = {"Good": (0.5, 3), "Fair": (0.2, 2), "None": (0.0, 1)}

DETERMINISTIC = ["None"]


def results_of(num_users, num_items, seed=0, **options):
    """The results of all recommenders on a random task."""
    share = 2.5 / num_items
    task = random_task(num_users, num_items, truth_share=share, seen_share=share, seed=seed)
    evaluator = Evaluator(task, METRICS, keep_items=3, **options)

    def run(skill, number):
        scores = random_scores(task, 100 * seed + number, skill)
        # Some scores are equal.
        return evaluator((200 * scores).round() / 200)

    return {
        name: [run(skill, 10 * place + number) for number in range(num_runs)]
        for place, (name, (skill, num_runs)) in enumerate(SKILLS.items())
    }


def all_results(**options):
    """The results by data set and by name, of which `Fair` was not run on `Long`."""
    found = {
        data_set: results_of(*shape, seed, **options)
        for seed, (data_set, shape) in enumerate(SHAPES.items())
    }
    del found["Long"]["Fair"]
    return found


def small_benchmark():
    """The benchmark of these results."""
    return Benchmark(
        {
            data_set: {name: Runs(x) if len(x) > 1 else x[0] for name, x in of_one.items()}
            for data_set, of_one in all_results().items()
        }
    )
