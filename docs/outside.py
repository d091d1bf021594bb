"""A preprocessor of mdBook: links that leave docs/ lead to copies beside the pages, since a site has no files beside it.

`mdbook` calls it with the book as JSON; `copy` puts the files that pages link to into the site after it is made.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
LINK = re.compile(r"(\]\()(\.\./[^)#\s]+)(#[^)\s]*)?(\))")


def target(link: str) -> str:
    """Where the site has a file or folder of the repository: as text, which no browser runs."""
    path = (DOCS / link).resolve()
    if path != ROOT and ROOT not in path.parents:
        raise SystemExit(f"docs: the link {link} leaves the repository")
    place = path.relative_to(ROOT)
    # mdBook takes a link with `.md` in it for one to a chapter.
    return f"files/{place}/index.txt" if path.is_dir() else f"files/{str(place).removesuffix('.md')}.txt"


def rewritten(text: str) -> str:
    return LINK.sub(lambda found: f"{found[1]}{target(found[2])}{found[4]}", text)


def chapters(items: list[Any]) -> Iterator[dict[str, Any]]:
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def copy(site: Path) -> None:
    """Copies what pages link to; of a folder the list of its files."""
    for page in sorted(DOCS.glob("*.md")):
        for found in LINK.finditer(page.read_text()):
            source, place = (DOCS / found[2]).resolve(), site / target(found[2])
            place.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                names = sorted(str(one.relative_to(source)) for one in source.rglob("*") if one.is_file())
                place.write_text("\n".join(one for one in names if "__pycache__" not in one) + "\n")
            else:
                shutil.copyfile(source, place)


def main() -> int:
    if sys.argv[1:2] == ["supports"]:
        return 0
    if sys.argv[1:2] == ["copy"]:
        copy(Path(sys.argv[2]))
        return 0
    _, book = json.load(sys.stdin)
    # The list of chapters is `items` since mdBook 0.5, and was `sections`.
    for chapter in chapters(book.get("items", book.get("sections", []))):
        chapter["content"] = rewritten(chapter["content"])
    json.dump(book, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
