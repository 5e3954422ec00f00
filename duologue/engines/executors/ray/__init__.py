"""Workers on the machines of a Ray cluster.

``executor`` belongs to the engine and speaks with a process of its own (``driver``), which is a
driver of the cluster (``cluster``). Each worker has an actor (``holder``) that starts it and waits
for its end. Engine and worker speak over connections of their own (``door``), which Ray has no
part in.
"""
