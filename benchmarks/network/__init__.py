"""A simulator of networks: what the messages of FFTs and halo exchanges cost on machines that we do not have."""
