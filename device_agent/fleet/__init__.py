"""What a device shares with the others, and what it knows of them.

In the order in which data flow through it:

- `variables`: what one reading's handlers ask for, taken whole or not at all
- `samples`: bounded sets by key (`sets`), frame budgets (`budget`), and their local folds
- `states`: variables that are one lattice state, own or shared; `derived`: what follows from the
  shared ones, `reactions`: handlers that wait for a threshold
- `published_fold`, `replicated`, `exchange`: own entries, published, and the others'
- `beats`: what the device says of itself; `succession`: which replica it is
- `peers`, `agreement`: what the others report; `members`: who is retired
- `results`: all of it for people; `roster`: a fleet as an operator's command sees it
"""
