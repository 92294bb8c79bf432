"""The SQLite file of agent and gateway.

- `sealed_file`: one file with one writer; `opening`: whether all of it is sound
- `read_only`: a file that its owner may write meanwhile
- `sealed`: a checksum in each row; `damage`: what is damaged, and where it is kept
"""
