// What Go's libraries say of the vectors' second envelope: see rows.py.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	circl "github.com/cloudflare/circl/ecc/bls12381"
	gnark "github.com/consensys/gnark-crypto/ecc/bls12-381"
	kilic "github.com/kilic/bls12-381"
)

var vectors struct {
	Made []struct {
		Point string
		Key   string `json:"opening_key"`
	}
	Refused []struct{ What, Bytes, Why string } `json:"refused_points"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func raw(text string) []byte {
	bytes, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	must(err)
	return bytes
}

func said(module string, element []byte, readG1, readG2 func([]byte) error) {
	parts := []string{module, hex.EncodeToString(element)}
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			parts[0] = module + " " + dependency.Version + " (Go)"
		}
	}
	for _, refused := range vectors.Refused {
		read, group := readG2, "G2"
		if refused.What == "opening_key" {
			read, group = readG1, "G1"
		}
		if read(raw(refused.Bytes)) == nil {
			parts = append(parts, fmt.Sprintf("%s (%s)", refused.Why, group))
		}
	}
	fmt.Println(strings.Join(parts, "|"))
}

func byGnark(key, point []byte) {
	readG1 := func(bytes []byte) error { var at gnark.G1Affine; _, err := at.SetBytes(bytes); return err }
	readG2 := func(bytes []byte) error { var at gnark.G2Affine; _, err := at.SetBytes(bytes); return err }
	var left gnark.G1Affine
	var right gnark.G2Affine
	_, err := left.SetBytes(key)
	must(err)
	_, err = right.SetBytes(point)
	must(err)
	element, err := gnark.Pair([]gnark.G1Affine{left}, []gnark.G2Affine{right})
	must(err)
	bytes := element.Bytes()
	said("github.com/consensys/gnark-crypto", bytes[:], readG1, readG2)
}

func byKilic(key, point []byte) {
	readG1 := func(bytes []byte) error { _, err := kilic.NewG1().FromCompressed(bytes); return err }
	readG2 := func(bytes []byte) error { _, err := kilic.NewG2().FromCompressed(bytes); return err }
	left, err := kilic.NewG1().FromCompressed(key)
	must(err)
	right, err := kilic.NewG2().FromCompressed(point)
	must(err)
	engine := kilic.NewEngine()
	element := engine.AddPair(left, right).Result()
	said("github.com/kilic/bls12-381", kilic.NewGT().ToBytes(element), readG1, readG2)
}

func byCircl(key, point []byte) {
	readG1 := func(bytes []byte) error { return new(circl.G1).SetBytes(bytes) }
	readG2 := func(bytes []byte) error { return new(circl.G2).SetBytes(bytes) }
	var left circl.G1
	var right circl.G2
	must(left.SetBytes(key))
	must(right.SetBytes(point))
	bytes, err := circl.Pair(&left, &right).MarshalBinary()
	must(err)
	said("github.com/cloudflare/circl", bytes, readG1, readG2)
}

func main() {
	file, err := os.ReadFile(os.Args[1])
	must(err)
	must(json.Unmarshal(file, &vectors))
	key, point := raw(vectors.Made[1].Key), raw(vectors.Made[1].Point)
	byGnark(key, point)
	byKilic(key, point)
	byCircl(key, point)
}
