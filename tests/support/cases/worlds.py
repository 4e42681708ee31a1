"""Random worlds, and random metrics and options for them."""

import random
from dataclasses import replace

from pyg_recmetrics import metrics
from tests.support.references.libraries import CONVENTIONS
from tests.support.references.world import World
from tests.support.tools.laws import values_of

#: All metrics of ranks.
METRICS = [name for name in metrics.names() if not metrics.definition(name).needs]


def needs_all_ranks(name):
    return metrics.definition(name).needs_all_ranks


def spelling(metric):
    """A metric as it is written."""
    name, k, arguments = metric
    given = ",".join(f"{key}={value}" for key, value in arguments.items())
    return name + (f"({given})" if given else "") + (f"@{k}" if k else "")


def draw_metrics(draw, convention, by):
    """Different metrics that a convention offers."""
    offered = [*(CONVENTIONS[convention][1] or METRICS)]
    if by == "list":
        offered = [name for name in offered if not needs_all_ranks(name)]
    found = {}
    for _ in range(draw.randint(1, 6)):
        name, k = draw.choice(offered), draw.choice([1, 2, 3, 5, 20, 50])
        definition = metrics.definition(name)
        if not definition.needs_cut_off:
            k = draw.choice([k, k, None]) if definition.has_cut_off else None
        given = {
            parameter.name: draw.choice(values_of(parameter, None))
            for parameter in definition.parameters.values()
            if not parameter.is_cut_off and draw.random() < 0.4
        }
        if k is None and "k" in given.values():
            given = {}
        found[spelling((name, k, given))] = (name, k, given)
    return [*found.values()]


def draw_world(seed, *, is_plain=False):
    """A random world; a plain one has no candidates but all items, and no persons."""
    draw = random.Random(seed)
    num_users, num_items = draw.randint(1, 9), draw.randint(2, draw.choice([4, 12, 30]))
    make = draw.choice([str, lambda x: f"id {x}", lambda x: 10 * x + 3])
    users = [make(x) for x in draw.sample(range(100), num_users)]
    items = [make(x) for x in draw.sample(range(100, 200), num_items)]
    strangers = [make(x) for x in range(200, 200 + draw.choice([0, 0, 1, 9]))]
    pairs = [(user, item) for user in users for item in items]
    grades = draw.choice(
        [[1.0], [1.0], [1.0, 1.0, 2.0, 5.0], [0.0, 0.5, 1.0, 3.0], [-1.0, 1.0, 2.0]]
    )
    grade = {
        pair: draw.choice(grades)
        for pair in draw.sample(pairs, draw.randint(1, max(1, len(pairs) // 2)))
    }
    seen = set(draw.sample(pairs, draw.randint(0, len(pairs) // 3)))
    if draw.random() < 0.7:
        seen -= grade.keys()
    values = [draw.randint(-4, 4) for _ in range(3)] if draw.random() < 0.3 else None
    score = {
        (user, item): float(draw.choice(values) if values else draw.randint(-(2**20), 2**20))
        for user in users
        for item in [*items, *strangers]
    }
    world = World(
        users,
        items,
        strangers,
        seen,
        grade,
        score,
        lists={},
        exclude_seen=draw.random() < 0.8,
        ties=draw.choice(["index", "index", "best", "worst", "mean"]),
        threshold=draw.choice([None, None, None, 1.0, 2.0]),
    )
    if not is_plain:
        if draw.random() < 0.25:
            world.shared = draw.sample(items, draw.randint(1, num_items))
        elif draw.random() < 0.33:
            world.own = set(draw.sample(pairs, draw.randint(1, len(pairs))))
            world.missing = "count"
        if draw.random() < 0.15:
            world.missing = draw.choice(["count", "drop"])
        if draw.random() < 0.5:
            world.person = {user: draw.randint(0, 2) for user in users}
    gaps, repeats = draw.choice([0, 0, 2]), draw.choice([0, 0, 2])
    for user in users:
        known = [*items, *strangers, *([None] * gaps)]
        world.lists[user] = draw.sample(known, draw.randint(1, len(known)))
        world.lists[user] += draw.choices(world.lists[user], k=repeats)
    if draw.random() < 0.2 and num_users > 1:
        del world.lists[draw.choice(users)]
    return world


def without_strangers(world):
    """The same world, in which a list has no item in place of a stranger."""
    known = {*world.items}
    lists = {user: [x if x in known else None for x in own] for user, own in world.lists.items()}
    return replace(world, lists=lists)


def draw_triples(seed):
    """A knowledge graph: test triples and known ones, how it is asked, and the world of that."""
    draw = random.Random(seed)
    num_entities, num_relations = draw.randint(2, 9), draw.randint(1, 3)
    triples = [
        (head, relation, tail)
        for head in range(num_entities)
        for relation in range(num_relations)
        for tail in range(num_entities)
    ]
    test = draw.sample(triples, draw.randint(1, min(12, len(triples))))
    known = draw.sample(triples, draw.randint(0, len(triples) // 3))

    def asked(triples):
        tails = {((h, r), t) for h, r, t in triples}
        heads = {((t, r + num_relations), h) for h, r, t in triples}
        return tails | heads

    grade = dict.fromkeys(asked(test), 1.0)
    queries = sorted({query for query, _ in grade})
    values = draw.choice([range(-2, 3), range(-(2**20), 2**20)])
    world = World(
        users=queries,
        items=[*range(num_entities)],
        strangers=[],
        seen={pair for pair in asked(known) if pair[0] in queries} - grade.keys(),
        grade=grade,
        score={(q, x): float(draw.choice(values)) for q in queries for x in range(num_entities)},
        lists={},
        exclude_seen=True,
        ties=draw.choice(["index", "best", "worst", "mean"]),
    )
    sizes = {"num_entities": num_entities, "num_relations": num_relations}
    return test, known, sizes, world
