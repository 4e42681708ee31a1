"""What proves the answer sooner: fast scores, and a bound on how far they can be off."""
