"""The web page of the gateway: static files, served as they are. Knows no Python."""
