"""What users write: a program of events, variables, folds and windows, as a pure description."""
