"""The SQLite file of agent and gateway.

- `sealed_file`: one file with one writer, a checksum in each row; `opening`: whether all of it is
  sound
- `read_only`: a file that its owner may write meanwhile
- `damage`: what is damaged, and where it is kept
- `not_kept`: why data cannot be kept in a directory, and what to type
- `whose`: whose data a directory holds, and which command reads it
"""
