"""What things cost; each module prints its figures: `python -m simulations.benchmarks.<name>`.

- `sources`: recorded rows to columns of readings, beside `json.loads` alone
"""
