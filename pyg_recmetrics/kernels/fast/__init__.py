"""The same answer sooner: fast scores and a bound on their error leave little to exact scores."""
