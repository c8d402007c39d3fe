"""Write every page from benchmarks/results, or some of them.

python -m report                        all pages and their pictures
python -m report sweeps studies         these
python -m report --check                write nothing, and exit with 1 if a page is not what it would be
python -m report --stale                write nothing, and list the files of results of code that has changed since
"""

from __future__ import annotations

import argparse
import sys

from report import PAGES, page_module
from report.results import IMAGES, ROOT, stale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stale", action="store_true")
    arguments = parser.parse_args()
    if arguments.stale:
        print("\n".join(stale()))
        return
    if unknown := set(arguments.pages) - set(PAGES):
        parser.error(f"no page {', '.join(sorted(unknown))}; there are {', '.join(PAGES)}")
    old = []
    for name in arguments.pages or PAGES:
        module = page_module(name)
        found = module.load()
        text = module.page(found)
        if arguments.check:
            if module.PAGE.read_text() != text:
                old.append(module.PAGE.relative_to(ROOT).as_posix())
            continue
        module.PAGE.write_text(text)
        if hasattr(module, "draw"):
            module.draw(found, IMAGES)
    sys.exit(f"not current: {', '.join(old)}; run `make readme`" if old else None)


if __name__ == "__main__":
    main()
