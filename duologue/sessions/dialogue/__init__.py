"""Dialogue: the plugin's side of the conversation, and how its plugin is run."""
