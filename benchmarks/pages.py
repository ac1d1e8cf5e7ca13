"""How fast the page is: the first view of 1,000 runs, 10,000 runs, and a chart of 20 runs × 10,000 points.

    python benchmarks/pages.py

Needs the extra `serve`, playwright and a Chromium. Times are medians; the first view is that of a server that has just
begun and has read none of the runs. Wanted: 1,000 runs within 1 s and 500 kB, the chart within 300 ms in the browser.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from weft.training.config import RunConfig, to_dict
from weft.training.storage.run_folder import RunFolder

FLAGS = ["--no-sandbox", "--disable-gpu"]
REPEATS = 5


def make_runs(folder: Path, count: int, points: int, kept: int = 30) -> None:
    """Finished runs with curves of so many points; records hold `kept` of them."""
    config = RunConfig(source="digits", model="mlp")
    curve = [point(step) for step in range(1, points + 1)]
    text = "".join(json.dumps(each) + "\n" for each in curve)
    for number in range(count):
        run = folder / f"part{number // 1000}" / f"mlp-seed{number}"
        run.mkdir(parents=True)
        RunFolder(run).write_asked(config)
        (run / "metrics.jsonl").write_text(text)
        content = {
            "status": "finished", "metric": "accuracy", "metrics": {"accuracy": 0.5 + 0.4 * math.sin(number)},
            "config": {**to_dict(config), "seed": number},
            "source": {"name": "digits", "fingerprint": "f", "notes": []},
            "parameters": 50_000, "steps": points, "wall_seconds": 9.0, "cost": 0.0, "curve": curve[:kept],
        }  # fmt: skip
        (run / "record.json").write_text(json.dumps(content, indent=2))


def point(step: int) -> dict[str, Any]:
    loss = 2.3 / math.sqrt(step) + 0.05 * math.sin(step)
    return {"kind": "train", "step": step, "epoch": step / 100, "loss": loss, "lr": 1e-3, "seconds": step / 50}


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of `weft serve` on a folder."""
    command = [sys.executable, "-m", "weft", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[2].rstrip("/")
    finally:
        process.terminate()
        process.wait(30)


def fetched(address: str) -> tuple[float, int]:
    """Seconds and bytes of an answer."""
    began = time.perf_counter()
    with urllib.request.urlopen(address) as answer:
        size = len(answer.read())
    return time.perf_counter() - began, size


def opened(browser: Any, address: str) -> tuple[float, int]:
    """Seconds until a page is loaded and drawn, and the bytes that it took."""
    sizes: list[int] = []
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.on("requestfinished", lambda request: sizes.append(sum(request.sizes().values())))
    began = time.perf_counter()
    page.goto(address, wait_until="load")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    seconds = time.perf_counter() - began
    page.close()
    return seconds, sum(sizes)


def drawn(browser: Any, address: str) -> float:
    """Seconds that a browser takes to put the charts of an address into a page and to draw them."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(address)
    seconds = page.evaluate(
        """async () => {
        const place = document.getElementById("charts"), text = place.innerHTML;
        place.replaceChildren();
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        const began = performance.now();
        place.innerHTML = text;
        place.getBoundingClientRect();
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        return (performance.now() - began) / 1000;
        }"""
    )
    page.close()
    return float(seconds)


def first_views(browser: Any, folder: Path, times: int) -> tuple[float, int, float]:
    """Seconds and bytes of the first view of servers that have just begun; seconds of a filtered, sorted one later."""
    views, later = [], []
    for _ in range(times):
        with server(folder) as address:
            views.append(opened(browser, address))
            later += [fetched(f"{address}/?q=seed.*7&sort=value")[0] for _ in range(REPEATS)]
    return median(seconds for seconds, _ in views), max(size for _, size in views), median(later)


def main() -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    met = True
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        opened(browser, "about:blank")  # the browser's own start is nobody's view
        for count, times in ((1000, REPEATS), (10_000, 1)):
            folder = Path(place) / f"runs{count}"
            make_runs(folder, count, points=30)
            seconds, size, again = first_views(browser, folder, times)
            print(f"{count:,} runs: first view {seconds:.2f} s, {size / 1000:.0f} kB; filtered, sorted {again:.2f} s")
            met = met and (count > 1000 or (seconds < 1 and size < 500_000))
        folder = Path(place) / "long"
        make_runs(folder, 20, points=10_000)
        with server(folder) as address:
            chart = f"{address}/curves?" + "&".join(f"run=mlp-seed{number}" for number in range(20))
            first, size = fetched(chart)
            later = median(fetched(chart)[0] for _ in range(REPEATS))
            shown = median(drawn(browser, chart) for _ in range(REPEATS))
        spent = f"server {first:.2f} s, then {later:.2f} s; browser {shown:.3f} s"
        print(f"20 runs × 10,000 points: {size / 1000:.0f} kB; {spent}")
        browser.close()
    met = met and shown < 0.3
    print("met" if met else "NOT MET")
    sys.exit(not met)


if __name__ == "__main__":
    main()
