"""Chat completions: one turn of a conversation that the client keeps."""
