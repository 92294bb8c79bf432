"""A page that shows a fleet as it converges, for the browser of the machine that serves it.

picture, history, ledger and windows say what is shown; board holds the newest of each; server tells
it to the browser; command turns it all.
`page/` holds what the browser runs; nothing of it comes from anywhere else.
"""
