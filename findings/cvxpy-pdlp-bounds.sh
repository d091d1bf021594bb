#!/bin/sh
# CVXPY 1.9.3 with OR-Tools 9.15.6755 (PyPI): PDLP solves no program with two variables that have a sign.
#
# `Variable(nonneg=True)` twice, and `solve(solver="PDLP")`: the interface to PDLP asks whether a list of bounds is true, which
# raises ValueError before anything is solved. With one such variable it works. The other solvers that come with both solve it.
# Seen on 29 November 2026:
#   CVXPY 1.9.3: PDLP with one variable: optimal, with two: ValueError; GLOP with two: optimal
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cvxpy==1.9.3 ortools==9.15.6755
"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import sys

import cvxpy


def fate(solver, count):
    variables = [cvxpy.Variable(nonneg=True) for _ in range(count)]
    program = cvxpy.Problem(cvxpy.Maximize(sum(variables)), [one <= 10 for one in variables])
    try:
        program.solve(solver=solver)
        return program.status
    except Exception as error:
        return type(error).__name__


seen = (fate("PDLP", 1), fate("PDLP", 2), fate("GLOP", 2))
print(f"CVXPY 1.9.3: PDLP with one variable: {seen[0]}, with two: {seen[1]}; GLOP with two: {seen[2]}")
sys.exit(0 if seen == ("optimal", "ValueError", "optimal") else 1)
PYTHON
