"""Force field -> Topology: molecule templates with all their energy terms, and how often each occurs."""
