"""A page that shows a fleet as it converges, for the browser of the machine that serves it.

`history`, `ledger` and `picture` make the texts that are shown; `board` holds the newest of each;
`server` sends them to the browser; `command` is what people type, and turns them.
`page/` holds the files that the browser runs; nothing of it comes from anywhere else.
"""
