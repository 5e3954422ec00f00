"""Stand-ins: what a connection is joined to before there is a session, or once it goes on alone."""
