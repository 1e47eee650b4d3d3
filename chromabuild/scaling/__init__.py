"""What a run costs on a machine: measured work of a core, simulated networks, and how far both were checked.

    trace, fft_trace, halo_trace    the messages of a step: who sends how much to whom
    topology, packets, cost         what a network makes of them
    step, measured                  a step of chromamd: its work and its messages
    machine, machines/              machines as data files
    prediction                      the answer of `chromabuild plan --machine`
    published/                      tables of four papers beside the simulator's
"""
