"""The command line: finds sub-commands, loads programs, prints an error as one line."""
