"""What a run costs on a machine: measured work of a core, simulated networks, and how far both were checked.

    trace, fft_trace, halo_trace    the messages of a step: who sends how much to whom
    topology, packets, cost         what a network makes of them
    step, measured                  a step of chromamd: its work and its messages
    machine, machines/              machines as data files
    prediction                      the answer of `chromabuild plan --machine`
    placement, planewave_trace      objects of a plane-wave step: who holds them, what they send; chromaqm has the maps
    object_messages                 messages of the fine objects of chromaqm, kind by kind
    fans                            messages between groups of such objects
    published/                      tables of five papers beside the simulator's
"""
