"""What solvers of linear programs answer as the price of a good that any price from 1 to 2 clears, as rows of a table.

Sellers give ten units at 1 or more, buyers take ten at 2 or less. The price is the dual value of the constraint that as much
is bought as sold. Signs are those of the tool.
"""

import warnings
from collections.abc import Callable
from importlib.metadata import version

import numpy


def row(tool: str, package: str, price: Callable[[], float | str]) -> None:
    try:
        found = price()
        did = found if isinstance(found, str) else f"{found:.4g}"
    except Exception as error:
        did = f"{type(error).__name__}: {str(error).splitlines()[0][:70]}"
    name = package if tool == package else f"{tool} by {package}"
    print(f"| {name} {version(package)} | {did} |")


def by_scipy(method: str) -> float:
    from scipy.optimize import linprog

    done = linprog([-2, 1], A_eq=[[1, -1]], b_eq=[0], bounds=[(0, 10)] * 2, method=method)
    return done.eqlin.marginals[0]


def by_highs(solver: str) -> float:
    import highspy

    model = highspy.Highs()
    model.silent()
    assert model.setOptionValue("solver", solver) == highspy.HighsStatus.kOk
    model.setOptionValue("run_crossover", "off")
    model.addVars(2, numpy.zeros(2), numpy.full(2, 10.0))
    model.changeColCost(0, -2.0)
    model.changeColCost(1, 1.0)
    model.addRow(0, 0, 2, numpy.array([0, 1], dtype=numpy.int32), numpy.array([1.0, -1.0]))
    model.run()
    return model.getSolution().row_dual[0]


def by_cvxpy(solver: str) -> float:
    import cvxpy

    bought, sold = cvxpy.Variable(nonneg=True), cvxpy.Variable(nonneg=True)
    balance = bought - sold == 0
    cvxpy.Problem(cvxpy.Maximize(2 * bought - sold), [balance, bought <= 10, sold <= 10]).solve(solver=solver)
    return float(balance.dual_value)


def by_ortools(name: str) -> float:
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver(name)
    bought, sold = solver.NumVar(0, 10, "bought"), solver.NumVar(0, 10, "sold")
    balance = solver.Add(bought - sold == 0)
    solver.Maximize(2 * bought - sold)
    solver.Solve()
    return balance.dual_value()


def by_pulp() -> float:
    import pulp

    program = pulp.LpProblem("market", pulp.LpMaximize)
    bought, sold = pulp.LpVariable("bought", 0, 10), pulp.LpVariable("sold", 0, 10)
    program += 2 * bought - sold
    program += (bought - sold == 0), "balance"
    program.solve(pulp.PULP_CBC_CMD(msg=0))
    return program.constraints["balance"].pi


def by_glpk() -> float:
    import swiglpk

    program = swiglpk.glp_create_prob()
    swiglpk.glp_term_out(swiglpk.GLP_OFF)
    swiglpk.glp_set_obj_dir(program, swiglpk.GLP_MAX)
    swiglpk.glp_add_rows(program, 1)
    swiglpk.glp_set_row_bnds(program, 1, swiglpk.GLP_FX, 0, 0)
    swiglpk.glp_add_cols(program, 2)
    columns, factors = swiglpk.intArray(3), swiglpk.doubleArray(3)
    for at, (cost, factor) in enumerate(((2, 1), (-1, -1)), 1):
        swiglpk.glp_set_col_bnds(program, at, swiglpk.GLP_DB, 0, 10)
        swiglpk.glp_set_obj_coef(program, at, cost)
        columns[at], factors[at] = at, factor
    swiglpk.glp_set_mat_row(program, 1, 2, columns, factors)
    swiglpk.glp_simplex(program, None)
    return swiglpk.glp_get_row_dual(program, 1)


def by_cvxopt() -> float:
    from cvxopt import matrix, solvers

    solvers.options["show_progress"] = False
    bounds = matrix([[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]])
    done = solvers.lp(matrix([-2.0, 1.0]), bounds, matrix([10.0, 10.0, 0.0, 0.0]), matrix([[1.0], [-1.0]]), matrix([0.0]))
    return done["y"][0]


warnings.simplefilter("ignore")
print("| tool | price |\n|---|---|")
for method in ("highs-ds", "highs-ipm"):
    row(f"`linprog` with `{method}`", "scipy", lambda: by_scipy(method))
for solver in ("simplex", "ipm", "pdlp"):
    row(f"`{solver}` without crossover", "highspy", lambda: by_highs(solver))
for solver in ("CLARABEL", "SCS", "OSQP", "PIQP", "GLOP", "PDLP"):
    row(f"`{solver}`", "cvxpy", lambda: by_cvxpy(solver))
for name in ("GLOP", "CLP", "PDLP", "HIGHS", "SCIP"):
    row(f"`{name}`", "ortools", lambda: by_ortools(name))
row("CBC", "pulp", by_pulp)
row("GLPK", "swiglpk", by_glpk)
row("cvxopt", "cvxopt", by_cvxopt)
