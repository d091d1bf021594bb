#!/bin/sh
# OR-Tools 9.15.6755 (PyPI): the price of a constraint is 0 if HiGHS solves a linear program.
#
# A program of ten units that sellers give at 1 and buyers take at 2: any price from 1 to 2 clears it. GLOP and CLP answer 2, PDLP
# a number between. The solvers named HIGHS and SCIP find the same optimum, answer 0, and write a line to the error output, but
# the call returns: a program that reads it takes the good for free.
# Seen on 29 November 2026:
#   OR-Tools 9.15.6755: optimum 10, prices {'GLOP': 2.0, 'CLP': 2.0, 'HIGHS': 0.0, 'SCIP': 0.0}
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ortools==9.15.6755
"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import sys

from ortools.linear_solver import pywraplp


def price(name):
    solver = pywraplp.Solver.CreateSolver(name)
    bought, sold = solver.NumVar(0, 10, "bought"), solver.NumVar(0, 10, "sold")
    balance = solver.Add(bought - sold == 0)
    solver.Maximize(2 * bought - sold)
    assert solver.Solve() == pywraplp.Solver.OPTIMAL and abs(solver.Objective().Value() - 10) < 1e-6
    return balance.dual_value()


prices = {name: price(name) for name in ("GLOP", "CLP", "HIGHS", "SCIP")}
print(f"OR-Tools 9.15.6755: optimum 10, prices {prices}")
sys.exit(0 if prices == {"GLOP": 2.0, "CLP": 2.0, "HIGHS": 0.0, "SCIP": 0.0} else 1)
PYTHON
