"""Networks in plain tensors: weights, and what is computed with them. They know no jobs."""
