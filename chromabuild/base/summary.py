"""What a stage tells of its result."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Summary = dict[str, Json]
"""Key to value, for the terminal, ``--json``, the record and the report, where lists of records become tables."""
