"""What the person shows: frames of a camera beside the speech."""
