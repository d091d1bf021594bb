"""Rows of PostgreSQL's drivers for Python: how each reads the greatest amount. Makes the table that all read."""

import asyncio
import sys
from importlib.metadata import version

import adbc_driver_postgresql.dbapi
import asyncpg
import pandas
import pg8000.native
import polars
import psycopg
import psycopg2
import sqlalchemy

GREATEST = 2**64 - 1
ASK = "SELECT available FROM balances"
PORT = sys.argv[1]
URL = f"postgresql://walras@127.0.0.1:{PORT}/postgres"


def make():
    with psycopg.connect(URL) as connection:
        connection.execute("CREATE TABLE balances (available numeric(20) NOT NULL)")
        connection.execute("INSERT INTO balances VALUES (%s)", (GREATEST,))


def row(package, how, read):
    name = f"{package} {version(package)}"
    try:
        value = read()
        right = "yes" if str(value) == str(GREATEST) else "**no**"
        print(f"| {name} | {how} | `{value}` ({type(value).__name__}) | {right} |")
    except Exception as error:  # A refusal is what a row tells.
        print(f"| {name} | {how} | {str(error).splitlines()[0]} | refused |")


def cursor(connection):
    with connection, connection.cursor() as reads:
        reads.execute(ASK)
        return reads.fetchone()[0]


async def by_asyncpg():
    connection = await asyncpg.connect(URL)
    try:
        return await connection.fetchval(ASK)
    finally:
        await connection.close()


def engine():
    return sqlalchemy.create_engine(URL.replace("postgresql", "postgresql+psycopg"))


def by_sqlalchemy(**options):
    column = sqlalchemy.column("available", sqlalchemy.Numeric(20, 0, **options))
    with engine().connect() as connection:
        return connection.execute(sqlalchemy.select(column).select_from(sqlalchemy.table("balances"))).scalar()


def by_pandas(**options):
    return pandas.read_sql(ASK, engine(), **options)["available"][0]


make()
row("psycopg", "`execute`", lambda: cursor(psycopg.connect(URL)))
row("psycopg2-binary", "`execute`", lambda: cursor(psycopg2.connect(URL)))
row("asyncpg", "`fetchval`", lambda: asyncio.run(by_asyncpg()))
row("pg8000", "`run`", lambda: pg8000.native.Connection("walras", "127.0.0.1", "postgres", int(PORT)).run(ASK)[0][0])
row("adbc-driver-postgresql", "`fetchone`", lambda: cursor(adbc_driver_postgresql.dbapi.connect(URL)))
row("SQLAlchemy", "`Numeric(20, 0)`", lambda: by_sqlalchemy(asdecimal=True))
row("SQLAlchemy", "`Numeric(20, 0, asdecimal=False)`", lambda: by_sqlalchemy(asdecimal=False))
row("pandas", "`read_sql`", by_pandas)
row("pandas", "`read_sql(coerce_float=False)`", lambda: by_pandas(coerce_float=False))
row("polars", "`read_database_uri(engine=\"adbc\")`", lambda: polars.read_database_uri(ASK, URL, engine="adbc").item())
row("polars", "`read_database` of psycopg", lambda: polars.read_database(ASK, psycopg.connect(URL)).item())
