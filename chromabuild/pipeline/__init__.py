"""The chain of stages from a locus to a report: order, record, estimate, verification, workflow."""
