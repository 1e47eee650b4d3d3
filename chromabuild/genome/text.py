"""Lines of the text files that describe a locus."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from chromabuild.base.errors import BadInputError


def stream_lines(path: str | Path) -> Iterator[str]:
    """Lines of a text file, plain, gzip or bgzip, without line ends (Unix or Windows), one after the other.

    Raises BadInputError for a missing, empty, truncated or non-ASCII file.
    """
    path = Path(path)
    is_empty = True
    try:
        with open(path, "rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else open(path, "rb") as handle:
            for number, line in enumerate(handle, start=1):
                is_empty = is_empty and not line.strip()
                try:
                    text = line.decode("ascii")
                except UnicodeDecodeError as error:
                    raise BadInputError(f"{path}, line {number}: byte 0x{line[error.start]:02x} is not ASCII text: "
                                        "save the file as plain text") from None
                yield text.removesuffix("\n").removesuffix("\r")
    except FileNotFoundError:
        raise BadInputError(f"{path} does not exist: correct the path in locus.yaml") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise BadInputError(f"{path} is a damaged or truncated gzip file: copy or download it again") from None
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from None
    if is_empty:
        raise BadInputError(f"{path} is empty: give a file with records")


def read_lines(path: str | Path) -> list[str]:
    """All of them. Raises what ``stream_lines`` raises."""
    return list(stream_lines(path))
