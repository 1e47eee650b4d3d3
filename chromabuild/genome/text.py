"""Lines of the text files that describe a locus."""

import gzip
import zlib
from pathlib import Path

from chromabuild.base.errors import BadInputError


def read_lines(path: str | Path) -> list[str]:
    """Lines of a text file, plain or gzip, without line ends (Unix or Windows).

    Raises BadInputError for a missing, empty, truncated or non-ASCII file.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadInputError(f"{path} does not exist: correct the path in locus.yaml") from None
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error):
            raise BadInputError(f"{path} is a damaged or truncated gzip file: copy or download it again") from None
    if not data.strip():
        raise BadInputError(f"{path} is empty: give a file with records")
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInputError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not ASCII text: save the file as plain text"
        ) from None
    return [line.removesuffix("\r") for line in text.split("\n")]
