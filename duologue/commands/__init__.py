"""What the command line can do, one module per command."""
