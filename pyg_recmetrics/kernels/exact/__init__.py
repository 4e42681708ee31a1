"""What the answer is: exact scores, and the order that follows from them."""
