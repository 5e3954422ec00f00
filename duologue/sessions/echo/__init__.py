"""Echo: whether the microphone hears the assistant's own voice."""
