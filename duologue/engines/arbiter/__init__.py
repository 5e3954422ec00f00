"""One owner for the time and the bytes of each device that realtime and batch work share."""
