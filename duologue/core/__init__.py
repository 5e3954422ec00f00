"""What every part may know: audio, time, fences, bounded queues, errors. No imports of ours."""
