"""Speaking: responses, what waits to be said, its pace, and how much of it was heard."""
