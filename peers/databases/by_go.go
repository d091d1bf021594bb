// Rows of PostgreSQL's drivers for Go: how each reads the greatest amount.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"os"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	_ "github.com/lib/pq"
)

const (
	greatest = "18446744073709551615"
	ask      = "SELECT available FROM balances"
)

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, one := range info.Deps {
		if one.Path == module {
			return strings.TrimPrefix(one.Version, "v")
		}
	}
	return "?"
}

func row(module, how string, value any, kind string, err error) {
	name := fmt.Sprintf("%s %s", strings.TrimPrefix(module, "github.com/"), version(module))
	if err != nil {
		fmt.Printf("| %s | %s | %s | refused |\n", name, how, strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	right := "**no**"
	if fmt.Sprint(value) == greatest {
		right = "yes"
	}
	fmt.Printf("| %s | %s | `%v` (%s) | %s |\n", name, how, value, kind, right)
}

func pgxRows(url string) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		panic(err)
	}
	defer conn.Close(ctx)
	const module = "github.com/jackc/pgx/v5"
	var numeric pgtype.Numeric
	err = conn.QueryRow(ctx, ask).Scan(&numeric)
	whole := new(big.Int)
	if err == nil {
		whole.Mul(numeric.Int, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(numeric.Exp)), nil))
	}
	row(module, "`Scan` into `pgtype.Numeric`", whole, "Int and Exp", err)
	var text string
	err = conn.QueryRow(ctx, ask).Scan(&text)
	row(module, "`Scan` into `string`", text, "string", err)
	var number uint64
	err = conn.QueryRow(ctx, ask).Scan(&number)
	row(module, "`Scan` into `uint64`", number, "uint64", err)
	var signed int64
	err = conn.QueryRow(ctx, ask).Scan(&signed)
	row(module, "`Scan` into `int64`", signed, "int64", err)
	var float float64
	err = conn.QueryRow(ctx, ask).Scan(&float)
	row(module, "`Scan` into `float64`", fmt.Sprintf("%.0f", float), "float64", err)
}

func pqRows(url string) {
	db, err := sql.Open("postgres", url+"?sslmode=disable")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	const module = "github.com/lib/pq"
	var text string
	err = db.QueryRow(ask).Scan(&text)
	row(module, "`Scan` into `string`", text, "string", err)
	var number uint64
	err = db.QueryRow(ask).Scan(&number)
	row(module, "`Scan` into `uint64`", number, "uint64", err)
	var float float64
	err = db.QueryRow(ask).Scan(&float)
	row(module, "`Scan` into `float64`", fmt.Sprintf("%.0f", float), "float64", err)
}

func main() {
	url := fmt.Sprintf("postgresql://walras@127.0.0.1:%s/postgres", os.Args[1])
	pgxRows(url)
	pqRows(url)
}
