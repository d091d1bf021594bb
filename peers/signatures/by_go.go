// What Go's libraries do with the signatures and hashes of made.py, as rows of a table.
package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	circlbls "github.com/cloudflare/circl/sign/bls"
	circl "github.com/cloudflare/circl/sign/ed25519"
	gnark "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/hdevalence/ed25519consensus"
	kilic "github.com/kilic/bls12-381"
	voi "github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
	zeebo "github.com/zeebo/blake3"
	champine "lukechampine.com/blake3"
)

type Signed struct{ Key, Message, Signature, Tag string }

var known struct {
	Ed25519 map[string]Signed
	Context string
	Derived map[string]string
	Bls     Signed
}
var vectors []struct {
	Hash string
	Data json.RawMessage `json:"typed_data"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func read(path string, into any) {
	content, err := os.ReadFile(path)
	must(err)
	must(json.Unmarshal(content, into))
}

func raw(text string) []byte {
	content, err := hex.DecodeString(text)
	must(err)
	return content
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, one := range info.Deps {
		if one.Path == module {
			return module + " " + one.Version
		}
	}
	return module
}

func row(tool, what, did string) { fmt.Printf("| %s (Go) | %s | %s |\n", tool, what, did) }

func accepted(check func(key, message, signature []byte) bool) string {
	var names []string
	for _, name := range []string{"plain", "mixed R", "mixed key"} {
		made := known.Ed25519[name]
		if check(raw(made.Key), raw(made.Message), raw(made.Signature)) {
			names = append(names, name)
		}
	}
	return "accepts " + strings.Join(names, ", ")
}

func derived(derive func(content []byte) []byte) string {
	for length, digest := range known.Derived {
		count, err := strconv.Atoi(length)
		must(err)
		if hex.EncodeToString(derive(bytes.Repeat([]byte{7}, count))) != digest {
			return "derives other keys"
		}
	}
	return "derives the same keys"
}

func verifies(holds bool, how string) string {
	if holds {
		return "verifies, " + how
	}
	return "does not verify, " + how
}

func byGnark() bool {
	var key gnark.G2Affine
	var signature, negated gnark.G1Affine
	_, err := key.SetBytes(raw(known.Bls.Key))
	must(err)
	_, err = signature.SetBytes(raw(known.Bls.Signature))
	must(err)
	point, err := gnark.HashToG1(raw(known.Bls.Message), []byte(known.Bls.Tag))
	must(err)
	_, _, _, generator := gnark.Generators()
	negated.Neg(&signature)
	holds, err := gnark.PairingCheck([]gnark.G1Affine{point, negated}, []gnark.G2Affine{key, generator})
	must(err)
	return holds
}

func byKilic() bool {
	one, two, engine := kilic.NewG1(), kilic.NewG2(), kilic.NewEngine()
	key, err := two.FromCompressed(raw(known.Bls.Key))
	must(err)
	signature, err := one.FromCompressed(raw(known.Bls.Signature))
	must(err)
	point, err := one.HashToCurve(raw(known.Bls.Message), []byte(known.Bls.Tag))
	must(err)
	return engine.AddPair(point, key).AddPairInv(signature, two.One()).Check()
}

func byCircl() bool {
	var key circlbls.PublicKey[circlbls.KeyG2SigG1]
	must(key.UnmarshalBinary(raw(known.Bls.Key)))
	return circlbls.Verify(&key, raw(known.Bls.Message), raw(known.Bls.Signature))
}

func hashed() string {
	right := 0
	for _, one := range vectors {
		var typed apitypes.TypedData
		must(json.Unmarshal(one.Data, &typed))
		if hash, _, err := apitypes.TypedDataAndHash(typed); err == nil && hexutil.Encode(hash) == one.Hash {
			right++
		}
	}
	return fmt.Sprintf("hashes %d of %d right", right, len(vectors))
}

func main() {
	read(os.Args[1], &known)
	read(os.Args[2], &vectors)
	row("crypto/ed25519 of "+runtime.Version(), "Ed25519", accepted(func(k, m, s []byte) bool { return ed25519.Verify(k, m, s) }))
	row(version("github.com/hdevalence/ed25519consensus"), "Ed25519",
		accepted(func(k, m, s []byte) bool { return ed25519consensus.Verify(k, m, s) }))
	row(version("github.com/oasisprotocol/curve25519-voi"), "Ed25519",
		accepted(func(k, m, s []byte) bool { return voi.Verify(k, m, s) }))
	asStandard := &voi.Options{Verify: voi.VerifyOptionsStdLib}
	row(version("github.com/oasisprotocol/curve25519-voi")+" with `VerifyOptionsStdLib`", "Ed25519",
		accepted(func(k, m, s []byte) bool { return voi.VerifyWithOptions(k, m, s, asStandard) }))
	row(version("github.com/cloudflare/circl"), "Ed25519",
		accepted(func(k, m, s []byte) bool { return circl.Verify(k, m, s) }))
	row(version("lukechampine.com/blake3"), "BLAKE3 `derive_key`", derived(func(content []byte) []byte {
		key := make([]byte, 32)
		champine.DeriveKey(key, known.Context, content)
		return key
	}))
	row(version("github.com/zeebo/blake3"), "BLAKE3 `derive_key`", derived(func(content []byte) []byte {
		key := make([]byte, 32)
		zeebo.DeriveKey(known.Context, content, key)
		return key
	}))
	row(version("github.com/consensys/gnark-crypto"), "BLS", verifies(byGnark(), "by `HashToG1` with the tag and `PairingCheck`"))
	row(version("github.com/kilic/bls12-381"), "BLS", verifies(byKilic(), "by `HashToCurve` with the tag and an engine"))
	row(version("github.com/cloudflare/circl"), "BLS",
		verifies(byCircl(), "under the tag that ends in `NUL_`, which is fixed; ours ends in `POP_`"))
	row(version("github.com/ethereum/go-ethereum")+" (`apitypes`)", "typed data", hashed())
}
