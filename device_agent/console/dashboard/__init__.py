"""A page that shows a fleet as it converges, for the browser of the machine that serves it.

history, ledger and picture say what is shown; board holds the newest of each; server tells it to
the browser; dashboard turns them, and command is what people type.
`page/` holds what the browser runs; nothing of it comes from anywhere else.
"""
