"""Python functions as tools that a model may call in the middle of a conversation."""
