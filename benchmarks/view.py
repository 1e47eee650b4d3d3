"""The viewer in headless Chromium with software drawing: time to the first picture, pictures a second, memory.

The page is opened from disk at 1400 x 900, as a copy with a script at its end that measures. First picture: from the
beginning of navigation until the first picture of the fibre is finished (one of its pixels is read back). Turning:
pictures a second while the page's own button turns the fibre, every one finished in the same way, over some seconds.
Memory: proportional set size of all processes of the browser while it turns, at rest after it, with the atoms of one
nucleosome, and of a browser that shows an empty page.

--loci: folders with a locus.yaml and results; the 83 kb locus is made by `chromabuild init --example chrXIII FOLDER`,
`chromabuild scaffold` and `chromabuild build` there. --quick makes a straight fibre of twelve nucleosomes.
"""

import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.results import spread

from chromabuild.base.settings import Settings, load_config
from chromabuild.pipeline.view import view_results
from mesoscale.scaffold import Scaffold

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SIZE = (1400, 900)
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--no-first-run",
           "--disable-dev-shm-usage", "--disable-background-networking", "--enable-logging=stderr", "--v=0",
           "--hide-scrollbars", "--disable-extensions")
MEASURE = """
<script type="module">
const canvas = document.getElementById("scene"), gl = canvas.getContext("webgl2"), pixel = new Uint8Array(4);
const drawn = () => Number(document.body.dataset.drawn || 0);
const finish = () => gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
const next = () => new Promise(requestAnimationFrame);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const tell = (values) => console.log("measured " + JSON.stringify(values) + " end");
window.addEventListener("error", (event) => tell({ stage: "failed", words: event.message }));
while (!drawn()) await next();
finish();
const first = performance.now();
await pause(2500);
document.getElementById("spin").click();
await pause(1500);
const begin = performance.now(), before = drawn();
while (performance.now() - begin < SECONDS * 1000) { await next(); finish(); }
const rate = (drawn() - before) / (performance.now() - begin) * 1000;
tell({ stage: "turning", first, rate, size: [innerWidth, innerHeight], canvas: [canvas.width, canvas.height] });
await pause(1500);
document.getElementById("spin").click();
await pause(1500);
tell({ stage: "rest" });
await pause(500);
const atoms = document.getElementById("atoms");
let loaded = 0;
if (!atoms.hidden) {
  const tracks = document.getElementById("tracks"), box = tracks.getBoundingClientRect();
  const at = { clientX: box.left + 0.5 * box.width, clientY: box.top + 40, bubbles: true, pointerId: 1 };
  tracks.setPointerCapture = () => {};
  tracks.dispatchEvent(new PointerEvent("pointerdown", at));
  tracks.dispatchEvent(new PointerEvent("pointerup", at));
  const start = performance.now();
  atoms.click();
  while (!Number(document.body.dataset.atoms)) await next();
  loaded = performance.now() - start;
}
await pause(1500);
tell({ stage: "atoms", loaded, atoms: Number(document.body.dataset.atoms || 0) });
</script>
</body>
"""


def memory(profile):
    """Proportional set size, in units of 1e6 bytes, of the browser with this profile and of its children."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args", "-ww"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    ours = {pid for pid, _, command in rows if str(profile) in command and "chrom" in command}
    for _ in range(3):
        ours |= {pid for pid, parent, _ in rows if parent in ours}
    total = 0
    for pid in ours:
        try:
            total += int(re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)[1])
        except (OSError, TypeError):
            continue  # it has ended meanwhile
    return total * 1024 / 1e6


def empty(folder):
    """Memory of the browser with an empty page."""
    profile = folder / "empty"
    browser = subprocess.Popen([CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(4)
    try:
        return memory(profile)
    finally:
        browser.terminate()
        browser.wait(20)
        shutil.rmtree(profile, ignore_errors=True)


def measured(page, seconds, folder, frame):
    """One opening of a page: what the script told, and the memory at those times. ``frame``: height of the window's own
    parts, pixels."""
    copy = page.with_name("measured.html")
    script = MEASURE.replace("SECONDS", str(seconds))
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    profile = folder / "profile"
    browser = subprocess.Popen(
        [CHROMIUM, *OPTIONS, f"--window-size={SIZE[0]},{SIZE[1] + frame}", f"--user-data-dir={profile}", copy.as_uri()],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = {}
    try:
        for line in browser.stderr:
            told = re.search(r"measured (\{.*\}) end", line)
            if told:
                found |= json.loads(told[1].replace('\\"', '"'))
                found[f"memory {found['stage']}"] = memory(profile)
                if found["stage"] == "failed":
                    raise RuntimeError(f"the page failed: {found['words']}")
                if found["stage"] == "atoms":
                    return found
    finally:
        browser.terminate()
        browser.wait(20)
        copy.unlink()
        shutil.rmtree(profile, ignore_errors=True)
    raise RuntimeError("the browser ended before everything was measured")


def straight_fibre(folder):
    """A scaffold of twelve nucleosomes in a row, and settings."""
    cores, linker = 12, 40
    n = cores * (147 + linker) + linker
    dyad = linker + 73 + (147 + linker) * np.arange(cores)
    along, angle = np.zeros(n), np.zeros(n)
    wrapped = np.full(n, -1)
    for k, d in enumerate(dyad):
        wrapped[d - 73:d + 74] = k
    for bp in range(1, n):
        along[bp] = along[bp - 1] + (0.29 if wrapped[bp] >= 0 else 3.3)
        angle[bp] = angle[bp - 1] + (-0.0705 if wrapped[bp] >= 0 else 0)
    origin = np.stack([41.9 * np.cos(angle), 41.9 * np.sin(angle), along], axis=1)
    core = np.stack([0 * along[dyad], 0 * along[dyad], along[dyad]], axis=1)
    Scaffold("straight fibre", "chr1", origin, np.tile(np.eye(3), (n, 1, 1)), np.full(n, ord("A"), np.uint8),
             wrapped.astype(np.int32), np.arange(n), core, np.tile(np.eye(3), (cores, 1, 1)), dyad.astype(np.int32),
             (dyad - 73).astype(np.int32), (dyad + 73).astype(np.int32)).write(folder / "scaffold.h5")
    return Settings(output=str(folder))


def main():
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--loci", nargs="+", default=[], metavar="FOLDER")
    benchmark.parser.add_argument("--rounds", type=int, default=5)
    benchmark.parser.add_argument("--seconds", type=float, default=5.0, help="of turning")
    given = benchmark.start(quick={"rounds": 1, "seconds": 1.0, "loci": []})
    if CHROMIUM is None:
        raise SystemExit("there is no Chromium: install the package chromium")
    said = subprocess.run([CHROMIUM, "--version"], capture_output=True, text=True, check=True).stdout
    benchmark.peer("Chromium", re.search(r"[\d.]+", said)[0])
    table = benchmark.table("browser", "The viewer at 1400 x 900 with software drawing", locus="", base_pairs=",",
                            **{"page,_MB": ".1f", "atoms,_MB": ".1f", "written_in,_s": ".1f",
                               "first_picture,_s": ".2f", "pictures_a_second": ".0f", "turning,_MB": ".0f",
                               "at_rest,_MB": ".0f", "with_atoms,_MB": ".0f", "empty_page,_MB": ".0f",
                               "atoms_shown_in,_s": ".2f"})
    for locus in map(Path, given.loci) if given.loci else [None]:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            if locus is None:
                settings = straight_fibre(folder)
            else:
                settings = load_config(locus / "locus.yaml", {"output": str((locus / "results").resolve())})
            begin = time.perf_counter()
            summary = view_results(settings, folder / "view")
            spent = time.perf_counter() - begin
            page = folder / "view" / "index.html"
            frame = SIZE[1] - measured(page, 0.1, folder, 0)["size"][1]
            rounds = [measured(page, given.seconds, folder, frame) for _ in range(given.rounds)]
            if any(tuple(one["size"]) != SIZE for one in rounds):
                raise SystemExit(f"the page was {rounds[0]['size']} pixels large, not {SIZE}")
            size = page.stat().st_size / 1e6
            table.row(settings.locus.name, summary["base pairs"], size, summary["megabytes"] - size, spent,
                      spread(one["first"] / 1000 for one in rounds), spread(one["rate"] for one in rounds),
                      spread(one["memory turning"] for one in rounds),
                      spread(one["memory rest"] for one in rounds),
                      spread(one["memory atoms"] for one in rounds) if rounds[0]["atoms"] else None,
                      empty(folder), spread(one["loaded"] / 1000 for one in rounds) if rounds[0]["atoms"] else None)
    given.loci = [row[0] for row in table.rows]  # results name loci, not the folders of a machine
    benchmark.finish()


if __name__ == "__main__":
    main()
