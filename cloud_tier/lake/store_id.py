"""The id of a lake as a store: another one since it was found to lack what had landed."""

from typing import Final

from deltalake import DeltaTable

STORE: Final = "lasp-edge store"
"""The application whose transactions in `landing` say how often, and when, a store began."""


def store_id(landing: DeltaTable) -> str:
    """Return the id of the store that a table `landing` belongs to."""
    begun = landing.transaction_version(STORE)
    return f"{landing.metadata().id}{f'~{begun}' if begun else ''}"
