"""The program's variables on a device: its own, and its copies of the fleet's.

In the order in which data flow through it:

- `variables`: what one reading's handlers ask for, taken whole or not at all
- `samples`: bounded sets by key, frame budgets (`budget`), and their local folds
- `states`: variables that are one lattice state, own or shared, and what a device leaves of a
  shared one at the broker; `derived`: what follows from the shared ones
- `sharing`: how shared variables travel
- `published_fold`: the entries of a local fold, which travel
"""
