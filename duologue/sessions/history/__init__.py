"""History: the items of a conversation, and of the assistant's speech only what was heard."""
