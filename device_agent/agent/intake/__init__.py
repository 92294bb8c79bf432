"""The way in: what is accepted, repeated, too late or refused.

- `batch`: readings by column, the one way in; `intake`: chooses the path, joins once a commit
- `one_by_one`: the path of every reading, the definition; `by_column`: the same for whole columns
- `routes`: where an event's readings go; `pending`: what they bring, not joined yet
- `progress`: how far the readings and each source have come
- `identities`: which readings are known
- `odd_readings`, `times_behind`: what is accepted, and is probably a mistake
"""
