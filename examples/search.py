"""Searches hyper-parameters with Optuna, and prunes trials that are certainly worse.

    python examples/search.py

Each trial evaluates a LightGCN every few epochs, on as many users as a margin takes. The bounds of
two trials in the same epoch say whether one of them is behind for certain.
"""

import argparse

import optuna
import torch
from optuna.trial import FrozenTrial, TrialState
from torch_geometric.nn import LightGCN

from pyg_recmetrics import Evaluator, datasets, transforms


class SurePruner(optuna.pruners.BasePruner):  # type: ignore[misc, unused-ignore]
    """Ends a trial whose upper bound is below the lower bound of a finished one."""

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        name = f"bounds {trial.last_step}"
        finished = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        lowest = [other.user_attrs[name][0] for other in finished if name in other.user_attrs]
        return name in trial.user_attrs and trial.user_attrs[name][1] < max(lowest, default=0.0)


def main() -> optuna.Study:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--users", type=int, default=6000)
    args = parser.parse_args()

    torch.manual_seed(0)
    data = datasets.synthetic_interactions(num_users=args.users, num_items=300)
    _, val, _ = transforms.PerUserSplit(num_val=0.1, num_test=0.2)(data)
    evaluator = Evaluator(val, "ndcg@20", margin=0.02)
    task = evaluator.task
    user, item = task.seen
    item = item + task.num_users
    edge_index = torch.stack([torch.cat([user, item]), torch.cat([item, user])])

    def objective(trial: optuna.Trial) -> float:
        torch.manual_seed(0)
        dim = trial.suggest_categorical("dim", [4, 16, 64])
        rate = trial.suggest_float("rate", 1e-4, 1e-1, log=True)
        model = LightGCN(task.num_users + task.num_items, embedding_dim=dim, num_layers=2)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        mean = 0.0
        for epoch in range(1, args.epochs + 1):
            other = torch.randint(task.num_users, task.num_users + task.num_items, item.shape)
            pairs = torch.stack([user.repeat(2), torch.cat([item, other])])
            liked, drawn = model(edge_index, pairs).chunk(2)
            optimizer.zero_grad()
            model.recommendation_loss(liked, drawn, lambda_reg=0).backward()
            optimizer.step()
            if epoch % 10 == 0:
                mean = evaluate_trial(trial, model, epoch)
        return mean

    def evaluate_trial(trial: optuna.Trial, model: LightGCN, epoch: int) -> float:
        with torch.no_grad():
            users, items = model.get_embedding(edge_index).split([task.num_users, task.num_items])
        result = evaluator((users, items))
        trial.set_user_attr(f"bounds {epoch}", list(result.bounds("ndcg@20")))
        trial.report(result["ndcg@20"], epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
        return result["ndcg@20"]

    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=SurePruner())
    study.optimize(objective, n_trials=args.trials)
    print(f"the best of {len(study.trials)}: {study.best_params}, ndcg@20 {study.best_value:.4f}")
    print(f"{len(study.get_trials(states=(TrialState.PRUNED,)))} were pruned")
    if evaluator.best is not None:
        print(evaluator.best.with_trials(len(study.trials)))
    return study


if __name__ == "__main__":
    main()
