"""What tests share, in four groups.

:mod:`tests.support.references`: what the package is compared with, none of which shares its code

- `naive`: metrics of lists and of the catalogue as loops, and the ranking of a user
- `world`: rankings and metrics of users, edges and persons by loops, for all doors
- `libraries`: what other libraries define differently
- `oracle`: rankings in exact rational arithmetic
- `variance_components`: intervals of means over users and runs, from sums of squares
- `exact_scores`: scores in exact rational arithmetic, and embeddings that are hard to round

:mod:`tests.support.cases`: what is evaluated

- `small_task`: a task of three users, with good and bad scores of its four items
- `mixed_users`: a task in which users differ in what they have seen and in what is relevant
- `worlds`: random worlds, knowledge graphs and metrics
- `random_tasks`: tasks and scores, the same for the same seed
- `drawn_results`: results of users and runs from known laws, again and again
- `strategies`: small evaluations, drawn by Hypothesis
- `graphs`: interactions in every form of PyG data, and all splits
- `recommender_forms`: models that are asked by `recommend`
- `embeddings`: embeddings that are hard to rank

:mod:`tests.support.machines`: where it runs

- `emulated_device`: a device that is not the CPU, on machines that have none
- `processes`: one of several processes that evaluate together
- `other_process`: Python in a process of its own
- `browser`: the headless Chromium of the system
- `missing_packages`, `optional`: packages that are hidden from a test, or that it needs

:mod:`tests.support.tools`: what checks, runs, reads and writes

- `fuzz`, `fuzz_cases`: random rankings of scores and embeddings, compared with the oracle
- `doors`: random worlds through every door, compared with the reference
- `said`: what a call says in warnings
- `seeds`: runs either from the command line
- `planted`: small defects in the package, and which tests find them
- `laws`: what holds for the values of every metric
- `everything`: all that a result says, to compare results to the last bit
- `damage`: damage to files
- `page_checks`: what a browser finds wrong with the page that it shows
- `latex_tables`, `small_pictures`: read what is printed and drawn
- `largest_tensor`: the largest tensor that a call makes
- `examples`, `notebooks`: run the examples and the notebooks
- `module_stubs`: writes the stub of `pyg_recmetrics.modules`
"""
