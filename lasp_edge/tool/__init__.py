"""The command line: finds sub-commands by entry points, loads programs, says errors in one line."""
