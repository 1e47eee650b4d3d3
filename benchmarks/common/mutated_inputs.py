"""Real files of every format, harmed at random, given to their readers: a reader refuses in a sentence, or takes all.

Readers work in forked processes, so that one that crashes or hangs is noticed. Where a format has records that can be
counted without the reader, a file that is accepted must have as many as the reader says: nothing is lost in silence.
"""

import collections
import contextlib
import json
import mmap
import os
import random
import re
import resource
import signal
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HANG_SECONDS = 10
MEMORY = 12 * 2**30
INSERTED = (b"-", b"nan", b"1e400", b"9" * 30, b"*", b"\t", b"\n", b"\r\n", b"\xff\xfe", b"\0")
FAULTS = ("bit", "byte", "cut off", "lost", "doubled", "zeroed", "inserted", "exchanged", "digit", "line")
"""What is done to a file: a bit flipped, a byte replaced, the end lost, bytes lost, doubled, set to 0, foreign ones
inserted, two stretches exchanged, a digit replaced, a line lost, doubled or cut."""
SEVERAL, MADE = "several", "made up"
OUTCOMES = ("read", "refused", "traceback", "hang", "crash", "loss")


@dataclass(frozen=True)
class Reader:
    """A format: a file of it, what reads it and gives how many records there are (or None), and another who counts."""

    name: str
    content: bytes
    suffix: str
    read: Callable[[Path], int | None]
    count: Callable[[bytes], int] | None = None
    share: float = 1.0
    """Of the trials that a file of its size gets: less where a reader starts a process for each file."""


def mutated(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A copy with one to four faults of the kinds that disks, transfers and hands make, and their name."""
    data, kinds = bytearray(content), []
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not data:
            break
        kind = rng.choice(FAULTS)
        kinds.append(kind)
        data = _with_fault(data, kind, rng)
    return bytes(data), kinds[0] if len(kinds) == 1 else SEVERAL


def _with_fault(data: bytearray, kind: str, rng: random.Random) -> bytearray:
    n = len(data)
    at, span = rng.randrange(n), rng.choice((1, 2, 8, 64, 512))
    if kind == "bit":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "byte":
        data[at] = rng.randrange(256)
    elif kind == "cut off":
        del data[at:]
    elif kind == "lost":
        del data[at:at + span]
    elif kind == "doubled":
        data[at:at] = data[at:at + span]
    elif kind == "zeroed":
        data[at:at + span] = bytes(len(data[at:at + span]))
    elif kind == "inserted":
        data[at:at] = rng.choice(INSERTED)
    elif kind == "exchanged":
        other = rng.randrange(n)
        one, two = bytes(data[at:at + span]), bytes(data[other:other + span])
        data[at:at + span], data[other:other + len(one)] = two, one
    elif kind == "digit":
        digits = [k for k, byte in enumerate(data[:200_000]) if 48 <= byte < 58]
        if digits:
            data[rng.choice(digits)] = rng.choice(b"0123456789-.eE+ ")
    else:
        lines = data.split(b"\n")
        k = rng.randrange(len(lines))
        lines[k:k + 1] = rng.choice(([], [lines[k], lines[k]], [lines[k][: len(lines[k]) // 2]]))
        data = bytearray(b"\n".join(lines))
    return data


def made_up(reader: Reader, number: int, seed: int) -> Iterator[bytes]:
    """Files that Hypothesis makes: bytes of any kind, and lines of the words of a real file, of numbers and of text."""
    import hypothesis
    from hypothesis import strategies

    words = sorted({word for word in re.split(rb"\s+", reader.content[:20_000]) if word})[:200] or [b""]
    number_text = strategies.one_of(strategies.integers(), strategies.floats()).map(lambda value: repr(value).encode())
    word = strategies.one_of(
        strategies.sampled_from(words), strategies.sampled_from(words), strategies.sampled_from(INSERTED), number_text,
        strategies.text(max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")))
    between = strategies.sampled_from((b"\t", b" ", b",", b": ", b" = "))
    line = strategies.tuples(strategies.lists(word, max_size=14), between)
    text = strategies.lists(line.map(lambda pair: pair[1].join(pair[0])), max_size=12).map(b"\n".join)
    begun = strategies.binary(max_size=200).map(lambda tail: reader.content[:64] + tail)
    found: list[bytes] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=number, database=None, deadline=None, phases=[hypothesis.Phase.generate],
                         suppress_health_check=[*hypothesis.HealthCheck])
    @hypothesis.given(strategies.one_of(text, text, begun, strategies.binary(max_size=300)))
    def collect(content: bytes) -> None:
        found.append(content)

    collect()
    yield from found


def trial(reader: Reader, content: bytes, folder: Path) -> tuple[str, str]:
    """What became of one file, and how it was told."""
    from chromabuild.base.errors import ChromabuildError

    path = folder / f"harmed{reader.suffix}"
    path.write_bytes(content)
    signal.alarm(HANG_SECONDS)
    try:
        found = reader.read(path)
    except ChromabuildError as error:
        return "refused", str(error)
    except _HangError:
        return "hang", ""
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        if isinstance(error, ValueError) and "/mesoscale/" in where:  # the command line prints it as a sentence
            return "refused", str(error)
        return "traceback", f"{type(error).__name__}: {error} ({where})"
    finally:
        signal.alarm(0)
    if found is not None and reader.count is not None:
        with contextlib.suppress(ValueError, EOFError, OSError):
            expected = reader.count(content)
            if expected != found:
                return "loss", f"{found} of {expected} records"
    return "read", ""


class _HangError(BaseException):
    pass


def _ring(number: int, frame: object) -> None:
    raise _HangError


def harm(reader: Reader, seeds: range, folder: Path) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    """How often each outcome followed each fault, one file a seed, and examples of outcomes that must not be."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    examples = collections.defaultdict(list)
    shared = mmap.mmap(-1, 8)
    at = 0
    while at < len(seeds):
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(out)
            signal.signal(signal.SIGALRM, _ring)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            with os.fdopen(into, "w") as file:
                for k, (kind, content) in enumerate(_contents(reader, seeds)):
                    if k < at:
                        continue
                    shared[:8] = struct.pack("q", k)
                    outcome, told = trial(reader, content, folder)
                    shown = "" if outcome in ("read", "refused") else f"{kind}: {told}"
                    file.write(json.dumps([k, kind, outcome, shown]) + "\n")
                    file.flush()
            os._exit(0)
        os.close(into)
        done = at
        with os.fdopen(out) as file:
            for line in file:
                k, kind, outcome, told = json.loads(line)
                done = k + 1
                counts[kind][outcome] += 1
                if told and len(examples[outcome]) < 5:
                    examples[outcome].append(f"seed {seeds[k]}: {told}")
        _, status = os.waitpid(pid, 0)
        if status == 0 and done == len(seeds):
            break
        k = struct.unpack("q", shared[:8])[0]
        kind = next(kind for j, (kind, _) in enumerate(_contents(reader, seeds)) if j == k)
        counts[kind]["crash"] += 1
        examples["crash"].append(f"seed {seeds[k]}: {kind}: status {status}")
        at = k + 1
    return {kind: dict(outcomes) for kind, outcomes in counts.items()}, examples


def _contents(reader: Reader, seeds: range) -> Iterator[tuple[str, bytes]]:
    """Kind and content of a file a seed; the last fifth are made up."""
    made = len(seeds) // 5
    for seed in seeds[:len(seeds) - made]:
        content, kind = mutated(reader.content, random.Random(f"{reader.name} {seed}"))
        yield kind, content
    k = 0
    while k < made:  # Hypothesis ends early where it thinks that it has seen everything
        for content in made_up(reader, made - k, seeds.start + k):
            if k < made:
                yield MADE, content
            k += 1
