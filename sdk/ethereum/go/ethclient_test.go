// Package ethclient_test reads a node of Walras by go-ethereum's own client, unmodified: every block, with what it
// contains. WALRAS_ETHEREUM names the door of a developers' chain.
package ethclient_test

import (
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/ethclient/gethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

const place = `[{"type":"function","name":"place","inputs":[{"name":"s","type":"address"},{"name":"b","type":"address"},
	{"name":"n","type":"uint64"},{"name":"k","type":"uint64"}],"outputs":[{"type":"bytes32"}]}]`

var (
	offers = common.HexToAddress("0x57616c7261730000000000000000000100000000")
	usd    = common.HexToAddress("0x57616c7261730000000000000000000000000000")
	eur    = common.HexToAddress("0x57616c7261730000000000000000000000000001")
)

// Keys of the mnemonic that everybody knows.
var keys = []string{
	"4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
	"dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
}

func dial(t *testing.T) *ethclient.Client {
	url := os.Getenv("WALRAS_ETHEREUM")
	if url == "" {
		t.Skip("WALRAS_ETHEREUM names no node")
	}
	client, err := ethclient.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// placed sends an offer by the contract of the exchange, and waits for its block.
func placed(t *testing.T, client *ethclient.Client, key string, sell, buy common.Address, asks uint64) *types.Transaction {
	secret, err := crypto.HexToECDSA(key)
	must(t, err)
	chain, err := client.ChainID(t.Context())
	must(t, err)
	by, err := bind.NewKeyedTransactorWithChainID(secret, chain)
	must(t, err)
	parsed, err := abi.JSON(strings.NewReader(place))
	must(t, err)
	sent, err := bind.NewBoundContract(offers, parsed, client, client, client).Transact(by, "place", sell, buy, uint64(1_000_000), asks)
	must(t, err)
	_, err = bind.WaitMined(t.Context(), client, sent)
	must(t, err)
	return sent
}

// A block with a settlement receipt, which nobody signed, is read like every other one, and so is an empty block.
func TestEveryBlockIsReadAlsoThoseWithASettlement(t *testing.T) {
	client, settlements := dial(t), 0
	placed(t, client, keys[0], usd, eur, 800_000)
	placed(t, client, keys[1], eur, usd, 1_000_000)
	must(t, client.Client().Call(nil, "evm_mine"))
	must(t, client.Client().Call(nil, "evm_mine"))
	newest, err := client.BlockNumber(t.Context())
	must(t, err)
	for height := int64(0); height <= int64(newest); height++ {
		block, err := client.BlockByNumber(t.Context(), big.NewInt(height))
		if err != nil {
			t.Fatalf("block %d: %v", height, err)
		}
		receipts, err := client.BlockReceipts(t.Context(), rpc.BlockNumberOrHashWithNumber(rpc.BlockNumber(height)))
		must(t, err)
		if len(receipts) != len(block.Transactions()) {
			t.Fatalf("block %d: %d receipts, %d transactions", height, len(receipts), len(block.Transactions()))
		}
		for _, receipt := range receipts {
			found, pending, err := client.TransactionByHash(t.Context(), receipt.TxHash)
			if err != nil || pending {
				t.Fatalf("transaction %s of block %d: %v", receipt.TxHash, height, err)
			}
			if v, r, s := found.RawSignatureValues(); v.Sign() == 0 && r.Sign() == 0 && s.Sign() == 0 {
				settlements++
				continue
			}
			if found.Hash() != receipt.TxHash {
				t.Fatalf("block %d: a transaction is not what its hash says", height)
			}
		}
	}
	if settlements == 0 {
		t.Fatal("two offers that meet have no settlement")
	}
}

// What go-ethereum's other client asks for.
func TestAccessListsAndTracesAreRead(t *testing.T) {
	client := dial(t)
	call := ethereum.CallMsg{From: common.HexToAddress("0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f"), To: &eur}
	call.Data = append(common.FromHex("0x70a08231"), common.LeftPadBytes(call.From.Bytes(), 32)...)
	_, _, failed, err := gethclient.New(client.Client()).CreateAccessList(t.Context(), call)
	if err != nil || failed != "" {
		t.Fatalf("%v %s", err, failed)
	}
	_, err = client.FeeHistory(t.Context(), 4, nil, []float64{25, 75})
	must(t, err)
	_, err = client.FilterLogs(t.Context(), ethereum.FilterQuery{FromBlock: big.NewInt(0)})
	must(t, err)
	_, err = client.HeaderByNumber(t.Context(), big.NewInt(int64(rpc.FinalizedBlockNumber)))
	must(t, err)
}
