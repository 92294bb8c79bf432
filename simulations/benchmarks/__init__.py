"""What things cost: `python -m simulations.benchmarks` prints the table, with peers and goals.

- `ingest`: readings through the whole of an agent, beside bytewax and a plain loop
- `crdts`: an ORSet's adds and joins, beside pycrdt, lasp-lang/types and Python's own set
- `sizes`: bytes of an element, an entry and a window, beside pycrdt and the talk's own scheme
- `dynamic`: one entry of a fleet changed, by the number of devices, beside recomputation
- `shared`: one element added to a shared set, by the number of its elements
- `quantile`: the quantile sketch, beside ddsketch
- `wide_pane`: one reading at a time into a pane of many keys, beside a plain loop
- `ordered`: scans, in order and out of it, beside bytewax and FlameStream's algorithm
- `fleet_order`: one order over a fleet at a gateway, beside bytewax; bytes of a reading beside JSON
- `fleet_replay`: how often a gateway steps an item of it, beside FlameStream's algorithm
- `start`: what a real agent takes until it publishes; only where it is named
- `economy`: bytes that real agents write and send, beside shipping JSON; only where it is named
- `idle`: the CPU of an agent that has little to do; only where it is named
- `files`: the files that execution passes, for a reading, an idle tick and a control entry; only
  where it is named
- `recordings`: the readings that `ingest` counts
- `wiretap`: what crosses a wire to a broker, by kind
- `measure`, `crdt_peers`: lines of the table and how they are taken; the peers of `crdts`

With a command of their own, `python -m simulations.benchmarks.<name>`:

- `cloud`: the cost table of the cloud, beside bare Spark; its rows are in `cloud_ingest`,
  `cloud_queries`, `cloud_offline`, `cloud_order`, `cloud_large` and `cloud_steps`, with
  `cloud_naive` as a peer
- `cloud_steps`: thousands of steps in one session, and what is held
- `cloud_years`: years of hourly readings and a day at a high rate, and how many files they are
- `cloud_rows`, `cloud_replay`, `measure_spark`: rows and frames of these, and how they are timed
- `sources`: recorded rows to columns of readings, beside `json.loads` alone
"""
