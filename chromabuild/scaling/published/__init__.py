"""Measurements of four papers, and the same figures by the simulator."""
