"""What things cost; each module prints its figures: `python -m simulations.benchmarks.<name>`.

- `ingest`: readings through the whole of an agent, beside a plain loop of the same sums
- `cloud`: frames landed, lattice rows joined, steps of the job, beside bare Spark and DuckDB
- `crdts`: mutators, joins and bytes of the lattices, beside pycrdt and the talk's own scheme
- `sources`: recorded rows to columns of readings, beside `json.loads` alone
"""
