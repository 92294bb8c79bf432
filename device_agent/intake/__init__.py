"""The way in: what is accepted, repeated, too late or refused.

- `batch`: readings by column; `intake`: one after the other, the definition
- `columns`: the same for whole columns; `taken`: what they brought, joined once a commit
- `identities`: which readings are known
"""
