"""The long cases in real time: ``python -m tests.soak.long_cases``, all but one side by side.

``tests/cases`` holds them on a clock that a test moves. Here the same people talk with a server in
a process of its own, through its socket and our own client, for as long as it takes: C07, C08, C22,
C39, C41 and C64, about sixteen minutes together. The names are those of the catalogue of cases.

It needs a machine with a core to spare: on one that is late itself, people are answered late.
"""
