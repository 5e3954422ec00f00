"""What every part may know: audio, time, fences, bounded queues, errors. Imports nothing of ours."""
