"""What things cost; each module prints its figures: `python -m simulations.benchmarks.<name>`.

- `ingest`: readings through the whole of an agent, beside a plain loop of the same sums
- `sources`: recorded rows to columns of readings, beside `json.loads` alone
"""
