"""The answer itself: exact scores, and the order that follows from them."""
