"""Write pages from benchmarks/results.

python -m report                        all pages that are not committed, and their pictures
python -m report readme                 README's tables and its chart
python -m report sweeps studies         these
python -m report --check                write nothing, and exit with 1 if README is not what it would be
python -m report --stale                write nothing, and list the files of results of code that has changed since
"""

from __future__ import annotations

import argparse
import sys

from report import PAGES, README, page_module, write
from report.results import stale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stale", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.pages) - set(PAGES):
        parser.error(f"no page {', '.join(sorted(unknown))}; there are {', '.join(PAGES)}")
    if arguments.stale:
        print("\n".join(stale()))
    elif arguments.check:
        texts = {name: page_module(name).page(page_module(name).load()) for name in PAGES}
        sys.exit("README.md is not current; run `make readme`" if PAGES[README].read_text() != texts[README] else None)
    else:
        for name in arguments.pages or [name for name in PAGES if name != README]:
            write(name)


if __name__ == "__main__":
    main()
