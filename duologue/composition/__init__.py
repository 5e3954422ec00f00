"""Parts of the composition root: what a server in one process and its parts in several share."""
