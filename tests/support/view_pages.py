"""What a page of the viewer holds, read from its files as a browser reads them."""

import base64
import json
import re

import numpy as np

from chromabuild.view.binary import unpacked


def page_parts(folder):
    """Facts and arrays of a page, read as a browser would."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    facts = json.loads(re.search(r'<script type="application/json" id="facts">(.*?)</script>', text, re.DOTALL)[1])
    data = re.search(r'<script type="text/plain" id="data">(.*?)</script>', text, re.DOTALL)[1]
    return facts, unpacked(facts["arrays"], data)


def atoms_of(path):
    """Number, facts, positions (n, 3) and residues' templates and numbers of an atom file."""
    number, header, content = re.fullmatch(r'chromabuildAtoms\((\d+), (.*), "([^"]*)"\);\n', path.read_text()).groups()
    header, content = json.loads(header), base64.b64decode(content)
    n, r = header["atoms"], header["residues"]
    assert len(content) == 6 * n + 4 * r
    position = np.frombuffer(content, "<i2", 3 * n).reshape(n, 3) * header["step"] + header["centre"]
    return int(number), header, position, np.frombuffer(content, "<u2", 2 * r, 6 * n).reshape(2, r)
