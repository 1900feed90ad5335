# SPDX-License-Identifier: Apache-2.0
"""The page of a sweep, drawn by a real browser (Debian's chromium); skipped where there is none."""
import html
import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite

SWEEP = """
job:
  model: llama-2-13b
  cluster: dgx-a100
  gpu_count: 16
  training: {global_batch_size: 64, sequence_length: 4096}
vary: {plan: all, gpu_count: [16, 32]}
top: 5
sample: 20
"""

# Appended to the page: what a reader would do, its outcome as the title.
SCRIPT = """<script>
const texts = column => [...document.querySelectorAll(`#points td:nth-child(${column})`)]
  .map(cell => Number(cell.textContent));
const rises = values => values.every((v, i) => i === 0 || values[i - 1] <= v);
document.querySelector('#points th[data-column="total_seconds"]').click();
const up = rises(texts(2));
document.querySelector('#points th[data-column="total_seconds"]').click();
const down = rises(texts(2).reverse());
const before = document.getElementById("chosen").textContent;
document.querySelector("#points tbody tr").click();
const chose = document.getElementById("chosen").textContent !== before;
document.getElementById("y").value = "tokens_per_second";
document.getElementById("y").onchange();
document.title = JSON.stringify([rows.length, texts(2).length, up, down, chose,
  document.querySelectorAll("#pareto circle").length,
  document.querySelectorAll("#pareto .front").length,
  document.querySelectorAll("#breakdown rect").length,
  document.querySelectorAll("#speedup circle").length]);
</script>"""


class SweepPage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        folder = Path(self.folder.name)
        (folder / "sweep.yaml").write_text(SWEEP)
        self.page = folder / "sweep.html"
        subprocess.run([suite.SEXTANT, "sweep", folder / "sweep.yaml",
                        "--html", self.page, "--output", "json"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_needs_nothing_from_elsewhere(self):
        text = self.page.read_text()
        self.assertNotRegex(text, r"https?://(?!www\.w3\.org)|src=|<link|@import")
        self.assertEqual(text.count("</script>"), 2)

    def test_a_browser_sorts_plots_and_breaks_down(self):
        browser = shutil.which("chromium")
        if browser is None:
            self.skipTest("no chromium: apt-get install chromium to look at the page")
        text = self.page.read_text().replace("</body>", SCRIPT + "</body>")
        self.page.write_text(text)
        profile = Path(self.folder.name) / "profile"
        dom = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={profile}", "--virtual-time-budget=5000", "--dump-dom",
             self.page.as_uri()],
            check=True, capture_output=True, text=True, timeout=100).stdout
        title = re.search(r"<title>(.*?)</title>", dom).group(1)
        self.assertRegex(title, r"^\[", "the page's own script failed")
        rows, shown, up, down, chose, points, front, bars, sizes = json.loads(
            html.unescape(title))
        self.assertGreater(rows, 5)
        self.assertEqual((shown, points), (rows, rows))
        self.assertTrue(up and down and chose)
        self.assertGreater(front, 0)
        self.assertGreater(bars, 3)
        self.assertEqual(sizes, 2)


if __name__ == "__main__":
    unittest.main()
