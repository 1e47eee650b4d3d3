"""What the benchmarks share: command line, time, machine, peers, systems, and the files of their results."""
