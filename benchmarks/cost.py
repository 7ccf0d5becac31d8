"""One layer of each kind on this machine against theory: exponents, sequential operations, longest path.

python benchmarks/cost.py --seconds 100
"""

import argparse

from report import write_report

from regard.compare.cost import Sizes, measure
from regard.compare.report import cost_report


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=100.0)
    options = parser.parse_args()
    sizes = Sizes()
    text = cost_report(measure(sizes, seconds=options.seconds), sizes)
    table, _, remarks = text.partition("\n\n")
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()
    ]
    write_report("cost", "One layer against theory (`regard compare --cost`)", header, rows, remarks)


if __name__ == "__main__":
    main()
