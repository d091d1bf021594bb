//! What reserved addresses show to tools that fetch code and slots from a node and execute by themselves.
//!
//! A node never runs this code: it answers calls of reserved addresses itself (`reserved`). The code of a token does to
//! the slots that the node shows what the ledger does to balances, and reads symbol, decimals and issued units from
//! virtual slots of the token. The code of the offers reverts with the reason. Both are compiled from
//! `contracts/Token.sol` and `contracts/Offers.sol`; `make test-ethereum` checks that they match.

use std::sync::LazyLock;

use primitives::{Address, Digest};
use proofs::Asset;
use revm::primitives::{B256, hex, keccak256};

use crate::places::contracts::reserved::{OFFERS, token_at};
use crate::places::contracts::{EvmCode, evm_code};

/// Code and its hash.
pub(super) struct ShownCode {
    pub code: EvmCode,
    pub hash: B256,
}

impl ShownCode {
    fn compiled(text: &str) -> ShownCode {
        let code = evm_code(hex::decode(text.trim()).expect("it is compiled code").into());
        ShownCode { hash: code.hash_slow(), code }
    }
}

static TOKEN_CODE: LazyLock<ShownCode> =
    LazyLock::new(|| ShownCode::compiled(include_str!("../../contracts/Token.hex")));
static OFFERS_CODE: LazyLock<ShownCode> =
    LazyLock::new(|| ShownCode::compiled(include_str!("../../contracts/Offers.hex")));

/// The code that an address shows, if it is a reserved one.
pub(super) fn shown_code(address: &Address) -> Option<&'static ShownCode> {
    match token_at(address) {
        Some(_) => Some(&TOKEN_CODE),
        None => (*address == OFFERS).then(|| &*OFFERS_CODE),
    }
}

/// The shown code with this hash.
pub(crate) fn shown_code_of(hash: &Digest) -> Option<EvmCode> {
    let all = [&*TOKEN_CODE, &*OFFERS_CODE];
    all.into_iter().find(|shown| shown.hash.0 == hash.0).map(|shown| shown.code.clone())
}

/// The value of a slot of a token that shows a fact about its asset, big-endian; `None` for any other slot.
pub(crate) fn fact_slot(slot: &[u8; 32], asset: &Asset) -> Option<[u8; 32]> {
    let number = |number: u64| {
        let mut value = [0; 32];
        value[24..].copy_from_slice(&number.to_be_bytes());
        value
    };
    match slot {
        _ if *slot == *DECIMALS => Some(number(asset.decimals.into())),
        _ if *slot == *ISSUED => Some(number(asset.issued)),
        // A short string, as Solidity keeps it. Symbols have at most twelve bytes.
        _ if *slot == *SYMBOL => {
            let (text, mut value) = (asset.symbol.as_bytes(), number(2 * asset.symbol.len() as u64));
            value[..text.len()].copy_from_slice(text);
            Some(value)
        }
        _ => None,
    }
}

static DECIMALS: LazyLock<[u8; 32]> = LazyLock::new(|| keccak256("decimals").0);
static ISSUED: LazyLock<[u8; 32]> = LazyLock::new(|| keccak256("issued").0);
static SYMBOL: LazyLock<[u8; 32]> = LazyLock::new(|| keccak256("symbol").0);
