"""The documents: every page is in the site, and every link leads somewhere. python3 docs/test_docs.py [target/book]"""

from __future__ import annotations

import html.parser
import io
import json
import re
import subprocess
import sys
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import outside  # noqa: E402

ROOT, DOCS = outside.ROOT, outside.DOCS
SITE = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*?)#*$", re.MULTILINE)


def pages() -> list[Path]:
    told = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    return [ROOT / one for one in told.splitlines()]


def prose(text: str) -> str:
    """Without blocks and spans of code, which may hold what looks like a link."""
    return re.sub(r"`[^`\n]*`", "``", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The names of headings, as hosts of repositories and mdBook make them, and those that are written."""
    seen: dict[str, int] = {}
    names = set(re.findall(r'(?:id|name)="([^"]+)"', text))
    for found in HEADING.finditer(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1]).strip().lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = seen.get(name, 0)
        seen[name] = count + 1
        names.add(name if count == 0 else f"{name}-{count}")
    return names


class Documents(unittest.TestCase):
    def test_every_page_is_in_the_summary_and_every_entry_is_a_page(self) -> None:
        summary = (DOCS / "SUMMARY.md").read_text()
        listed = re.findall(r"\]\(([^)]+)\)", summary)
        self.assertEqual(len(listed), len(set(listed)), "no page twice")
        self.assertEqual(set(listed), {one.name for one in DOCS.glob("*.md")} - {"SUMMARY.md"})

    def test_tables_of_peers_are_what_their_scripts_printed(self) -> None:
        check = [sys.executable, str(ROOT / "peers" / "record.py"), "--check"]
        self.assertEqual(subprocess.run(check, check=False).returncode, 0, "run peers/record.py")

    def test_every_link_of_every_document_leads_somewhere(self) -> None:
        broken, links = [], 0
        for page in pages():
            text = page.read_text()
            for found in LINK.finditer(prose(text)):
                path, _, anchor = found[1].partition("#")
                if re.match(r"[a-z]+:", found[1]):
                    continue
                links += 1
                place = (page.parent / path).resolve() if path else page
                if not place.exists():
                    broken.append(f"{page.relative_to(ROOT)}: {found[1]}")
                elif anchor and place.suffix == ".md" and anchor not in anchors(place.read_text()):
                    broken.append(f"{page.relative_to(ROOT)}: {found[1]}: no such heading")
        self.assertEqual(broken, [])
        self.assertGreater(links, 100)

    def test_links_that_leave_the_pages_lead_to_copies(self) -> None:
        text = "See [Python](../sdk/python/README.md#keys), [deploy](../deploy), [this](api.md#sending), `](../x)`"
        chapter = {"Chapter": {"content": text, "sub_items": [{"Chapter": {"content": text, "sub_items": []}}]}}
        for name in ("items", "sections"):
            out = io.StringIO()
            book = json.dumps([{}, {name: [chapter, "Separator", {"PartTitle": "Trading"}]}])
            with unittest.mock.patch.multiple("sys", stdin=io.StringIO(book), stdout=out, argv=["outside.py"]):
                self.assertEqual(outside.main(), 0)
            made = json.loads(out.getvalue())[name][0]["Chapter"]
            for one in (made, made["sub_items"][0]["Chapter"]):
                self.assertIn("[Python](files/sdk/python/README.txt)", one["content"])
                self.assertIn("[deploy](files/deploy/index.txt), [this](api.md#sending)", one["content"])
        with self.assertRaises(SystemExit):
            outside.target("../../elsewhere")


class Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "a" and named.get("href"):
            self.links.append(str(named["href"]))
        if named.get("id"):
            self.names.add(str(named["id"]))


@unittest.skipIf(SITE is None, "name the site: test_docs.py target/book")
class Site(unittest.TestCase):
    def test_every_link_of_the_site_leads_somewhere(self) -> None:
        assert SITE is not None
        site = SITE.resolve()
        read: dict[Path, Links] = {}
        for page in sorted(site.glob("*.html")):
            read[page] = Links()
            read[page].feed(page.read_text())
        names = {page.name for page in read}
        self.assertLessEqual({f"{one.stem}.html" for one in DOCS.glob("*.md")} - {"SUMMARY.html"}, names)
        broken = []
        for page, found in read.items():
            if page.name in ("print.html", "404.html", "toc.html"):
                continue
            for link in found.links:
                path, _, anchor = link.partition("#")
                if re.match(r"[a-z]+:", link):
                    continue
                place = (page.parent / path).resolve() if path else page
                is_named = not anchor or place not in read or anchor in read[place].names
                if not place.exists() or not is_named:
                    broken.append(f"{page.name}: {link}")
        self.assertEqual(broken, [])


if __name__ == "__main__":
    unittest.main()
