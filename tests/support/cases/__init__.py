"""What is evaluated: tasks, scores, graphs and recommenders."""
