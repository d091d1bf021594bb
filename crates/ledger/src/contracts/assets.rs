//! Assets as tokens: each asset is an ERC-20 at a reserved address, over the balances that native transactions move.
//!
//! The state of a token is storage of its address, written through the journal of the interpreter like any other: so it
//! reverts with its frame, and Block-STM sees its conflicts. A *balance* is the virtual slot of its holder
//! ([`balance_slot`]): it is read from the account and written back to it, and stands in no trie. Allowances and permit
//! nonces are ordinary slots.
//!
//! # Rules
//!
//! 1. A reserved address shows nonce 1 and the code `0xFE`, so that nothing is created there and tools see a contract.
//! 2. What changes state is called at its own address, without value and not statically; else it reverts. Delegated and
//!    CALLCODE calls always revert: a contract never acts as a token, nor a token for a contract.
//! 3. Asset 0 pays for gas and moves as value: its token is read-only. A balance is what is whole of the wei.
//! 4. Amounts above 64 bits are refused and never cut. An allowance of 2^256 − 1 is not used up.
//! 5. `totalSupply` is what is issued, wherever it is held. `Transfer` is logged by tokens alone: native transactions
//!    move the same balances and log nothing.
//! 6. A permit is for symbol, version "1", this chain and this token, with a low s.

use std::sync::LazyLock;

use primitives::AssetId;
use revm::context::{Block as _, Cfg, ContextTr, JournalTr};
use revm::context_interface::context::ContextError;
use revm::handler::{EthPrecompiles, PrecompileProvider};
use revm::interpreter::{CallInputs, Gas, InstructionResult, InterpreterResult};
use revm::primitives::{Address, AddressSet, B256, Bytes, Log, LogData, U256, keccak256};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, SECP256K1};

use super::evm::{Access, EvmFrameContext, EvmState, Waits};

/// What reserved addresses begin with: "Walras" and ten zeros; the number of the asset follows, big-endian.
const PREFIX: [u8; 16] = *b"Walras\0\0\0\0\0\0\0\0\0\0";
/// The code that reserved addresses show.
pub(super) const TOKEN_CODE: &[u8] = &[0xfe];

/// Gas of a call beside what it reads and writes.
const BASE_GAS: u64 = 400;
/// Gas of a read, as of a cold slot.
const READ_GAS: u64 = 2_100;
/// Gas of a write over something.
const WRITE_GAS: u64 = 2_900;
/// Gas of a write over nothing.
const CREATE_GAS: u64 = 20_000;
/// Gas of an event of three topics and a word.
const LOG_GAS: u64 = 375 * 4 + 8 * 32;
/// Gas of a recovery.
const RECOVER_GAS: u64 = 3_000;

/// What the token of an asset says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFacts {
    /// Symbol, which is also its name.
    pub symbol: String,
    /// Decimals.
    pub decimals: u8,
    /// Units that exist.
    pub issued: u64,
}

/// The address of an asset's token.
pub fn token_address(asset: AssetId) -> primitives::Address {
    let mut address = [0; 20];
    address[..16].copy_from_slice(&PREFIX);
    address[16..].copy_from_slice(&asset.0.to_be_bytes());
    primitives::Address(address)
}

/// The asset whose token is at an address, if it is a reserved one. Not every number is that of an asset.
pub fn token_at(address: &primitives::Address) -> Option<AssetId> {
    let number = address.0.strip_prefix(&PREFIX)?;
    Some(AssetId(u32::from_be_bytes(number.try_into().expect("four bytes"))))
}

pub(super) fn asset_at(address: &Address) -> Option<AssetId> {
    token_at(&primitives::Address(address.0.0))
}

/// The virtual slot of a holder's balance.
pub(super) fn balance_slot(holder: &primitives::Address) -> [u8; 32] {
    let mut slot = [0; 32];
    slot[12..].copy_from_slice(&holder.0);
    slot
}

/// The holder whose balance a slot of a token is; ordinary slots are hashes.
pub(super) fn holder_of(slot: &[u8; 32]) -> Option<primitives::Address> {
    let (high, low) = slot.split_at(12);
    high.iter().all(|byte| *byte == 0).then(|| primitives::Address(low.try_into().expect("twenty bytes")))
}

/// Ethereum's precompiles, and tokens where the state has assets.
pub(super) struct TokenPrecompiles(EthPrecompiles);

impl TokenPrecompiles {
    pub fn new(spec: super::SpecId) -> TokenPrecompiles {
        TokenPrecompiles(EthPrecompiles::new(spec))
    }
}

impl<'a, S: EvmState, A: Access> PrecompileProvider<EvmFrameContext<'a, S, A>> for TokenPrecompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: super::SpecId) -> bool {
        PrecompileProvider::<EvmFrameContext<'a, S, A>>::set_spec(&mut self.0, spec)
    }

    fn run(
        &mut self,
        context: &mut EvmFrameContext<'a, S, A>,
        inputs: &CallInputs,
    ) -> Result<Option<InterpreterResult>, String> {
        let Some(asset) = asset_at(&inputs.bytecode_address) else { return self.0.run(context, inputs) };
        let (state, space) = (context.db().state, context.db().space);
        if state.token(space, AssetId(0)).is_none() {
            return self.0.run(context, inputs);
        }
        Ok(Some(call(context, inputs, asset, state.token(space, asset))))
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.0.warm_addresses()
    }
}

/// Why a call of a token fails.
enum TokenFault {
    /// It reverts, and says so.
    Reverts(&'static str),
    OutOfGas,
    /// A read met the estimate of a lower transaction.
    Waits(Waits),
}

impl From<Waits> for TokenFault {
    fn from(waits: Waits) -> TokenFault {
        TokenFault::Waits(waits)
    }
}

type Called<T> = Result<T, TokenFault>;

fn call<'a, S: EvmState, A: Access>(
    context: &mut EvmFrameContext<'a, S, A>,
    inputs: &CallInputs,
    asset: AssetId,
    facts: Option<TokenFacts>,
) -> InterpreterResult {
    let input = inputs.input.bytes(context);
    let mut gas = Gas::new(inputs.gas_limit);
    let called = match facts {
        None => Err(TokenFault::Reverts("no such asset")),
        Some(facts) => Token { context, inputs, asset, facts: &facts, gas: &mut gas }.answer(&input),
    };
    let (result, output) = match called {
        Ok(output) => (InstructionResult::Return, output.into()),
        Err(TokenFault::Reverts(why)) => (InstructionResult::Revert, revert_reason(why)),
        Err(TokenFault::OutOfGas) => {
            gas.spend_all();
            (InstructionResult::PrecompileOOG, Bytes::new())
        }
        Err(TokenFault::Waits(waits)) => {
            *context.error() = Err(ContextError::Db(waits));
            (InstructionResult::FatalExternalError, Bytes::new())
        }
    };
    InterpreterResult::new(result, output, gas)
}

/// A call of a token under way.
struct Token<'c, 'a, S: EvmState, A: Access> {
    context: &'c mut EvmFrameContext<'a, S, A>,
    inputs: &'c CallInputs,
    asset: AssetId,
    facts: &'c TokenFacts,
    gas: &'c mut Gas,
}

/// The arguments of a call.
struct Arguments<'i>(&'i [u8]);

impl Arguments<'_> {
    fn word(&self, at: usize) -> Called<[u8; 32]> {
        let word = self.0.get(32 * at..32 * at + 32);
        word.map(|word| word.try_into().expect("a word")).ok_or(TokenFault::Reverts("arguments are missing"))
    }

    fn number(&self, at: usize) -> Called<U256> {
        Ok(U256::from_be_bytes(self.word(at)?))
    }

    fn address(&self, at: usize) -> Called<Address> {
        let word = self.word(at)?;
        match word[..12] == [0; 12] {
            true => Ok(Address::from_slice(&word[12..])),
            false => Err(TokenFault::Reverts("an address has twenty bytes")),
        }
    }
}

impl<S: EvmState, A: Access> Token<'_, '_, S, A> {
    fn answer(&mut self, input: &[u8]) -> Called<Vec<u8>> {
        self.pay(BASE_GAS)?;
        let (selector, rest) = input.split_at_checked(4).ok_or(TokenFault::Reverts("no function is named"))?;
        let of = Arguments(rest);
        if self.inputs.bytecode_address != self.inputs.target_address {
            return Err(TokenFault::Reverts("a token is called at its own address"));
        }
        if self.inputs.transfers_value() {
            return Err(TokenFault::Reverts("a token takes no value"));
        }
        match selector {
            [0x06, 0xfd, 0xde, 0x03] | [0x95, 0xd8, 0x9b, 0x41] => Ok(text(&self.facts.symbol)),
            [0x31, 0x3c, 0xe5, 0x67] => Ok(word(self.facts.decimals.into())),
            [0x18, 0x16, 0x0d, 0xdd] => Ok(word(self.facts.issued)),
            [0x70, 0xa0, 0x82, 0x31] => Ok(number(self.balance(of.address(0)?)?)),
            [0xdd, 0x62, 0xed, 0x3e] => {
                let slot = allowance_slot(&of.address(0)?, &of.address(1)?);
                Ok(number(self.read(slot)?))
            }
            [0x7e, 0xce, 0xbe, 0x00] => {
                let slot = permits_slot(&of.address(0)?);
                Ok(number(self.read(slot)?))
            }
            [0x36, 0x44, 0xe5, 0x15] => Ok(self.domain().to_vec()),
            _ => self.change(selector, &of),
        }
    }

    fn change(&mut self, selector: &[u8], of: &Arguments) -> Called<Vec<u8>> {
        let caller = self.inputs.caller;
        let known =
            [[0xa9, 0x05, 0x9c, 0xbb], [0x09, 0x5e, 0xa7, 0xb3], [0x23, 0xb8, 0x72, 0xdd], [0xd5, 0x05, 0xac, 0xcf]];
        if !known.iter().any(|one| one == selector) {
            return Err(TokenFault::Reverts("a token has no such function"));
        }
        if self.inputs.is_static {
            return Err(TokenFault::Reverts("a static call changes nothing"));
        }
        if self.asset == AssetId(0) {
            return Err(TokenFault::Reverts("asset 0 moves as value: its token is read-only"));
        }
        match selector {
            [0xa9, ..] => self.transfer(caller, of.address(0)?, of.number(1)?)?,
            [0x09, ..] => self.approve(caller, of.address(0)?, of.number(1)?)?,
            [0x23, ..] => {
                let (from, to, amount) = (of.address(0)?, of.address(1)?, of.number(2)?);
                self.spend(from, caller, amount)?;
                self.transfer(from, to, amount)?;
            }
            _ => return self.permit(of).map(|()| Vec::new()),
        }
        Ok(word(1))
    }

    fn transfer(&mut self, from: Address, to: Address, amount: U256) -> Called<()> {
        if to.is_zero() {
            return Err(TokenFault::Reverts("transfer to the zero address"));
        }
        if asset_at(&to).is_some() {
            return Err(TokenFault::Reverts("transfer to a reserved address"));
        }
        let held = self.balance(from)?;
        let left = held.checked_sub(amount).ok_or(TokenFault::Reverts("transfer amount exceeds balance"))?;
        if from != to {
            // All that is issued fits 64 bits.
            let received = self.balance(to)?.saturating_add(amount);
            self.write(holder_slot(&from), held, left)?;
            self.write(holder_slot(&to), received - amount, received)?;
        }
        self.log(*TRANSFER, from, to, amount)
    }

    fn approve(&mut self, owner: Address, spender: Address, amount: U256) -> Called<()> {
        let slot = allowance_slot(&owner, &spender);
        let before = self.read(slot)?;
        self.write(slot, before, amount)?;
        self.log(*APPROVAL, owner, spender, amount)
    }

    /// Takes an amount off an allowance.
    fn spend(&mut self, owner: Address, spender: Address, amount: U256) -> Called<()> {
        let slot = allowance_slot(&owner, &spender);
        let allowed = self.read(slot)?;
        let left = allowed.checked_sub(amount).ok_or(TokenFault::Reverts("insufficient allowance"))?;
        if allowed == U256::MAX { Ok(()) } else { self.write(slot, allowed, left) }
    }

    fn permit(&mut self, of: &Arguments) -> Called<()> {
        let (owner, spender, amount, deadline) = (of.address(0)?, of.address(1)?, of.number(2)?, of.number(3)?);
        self.pay(RECOVER_GAS)?;
        if self.context.block().timestamp() > deadline {
            return Err(TokenFault::Reverts("the permit has expired"));
        }
        let slot = permits_slot(&owner);
        let nonce = self.read(slot)?;
        let said = [*PERMIT, owner.into_word(), spender.into_word(), amount.into(), nonce.into(), deadline.into()];
        let hash = keccak256([&[0x19, 0x01][..], &self.domain()[..], &keccak256(said.concat())[..]].concat());
        let (v, r, s) = (of.number(4)?, of.word(5)?, of.word(6)?);
        if recover(hash, v, r, s) != Some(owner) {
            return Err(TokenFault::Reverts("the permit is not signed by its owner"));
        }
        self.write(slot, nonce, nonce + U256::from(1))?;
        self.approve(owner, spender, amount)
    }

    /// What permits are signed for.
    fn domain(&self) -> B256 {
        let said = [
            *DOMAIN,
            keccak256(&self.facts.symbol),
            keccak256("1"),
            U256::from(self.context.cfg().chain_id()).into(),
            self.inputs.bytecode_address.into_word(),
        ];
        keccak256(said.concat())
    }

    /// Units that a holder has; of asset 0 what is whole of its wei.
    fn balance(&mut self, holder: Address) -> Called<U256> {
        if self.asset != AssetId(0) {
            return self.read(holder_slot(&holder));
        }
        self.pay(READ_GAS)?;
        let wei = self.context.journal_mut().load_account(holder)?.data.info.balance;
        Ok(wei / U256::from(10u64.pow(18 - u32::from(self.facts.decimals))))
    }

    fn read(&mut self, slot: U256) -> Called<U256> {
        self.pay(READ_GAS)?;
        Ok(self.context.journal_mut().sload(self.inputs.target_address, slot)?.data)
    }

    fn write(&mut self, slot: U256, before: U256, after: U256) -> Called<()> {
        self.pay(if before.is_zero() && !after.is_zero() { CREATE_GAS } else { WRITE_GAS })?;
        let token = self.inputs.target_address;
        let journal = self.context.journal_mut();
        journal.touch_account(token);
        journal.sstore(token, slot, after)?;
        Ok(())
    }

    fn log(&mut self, event: B256, one: Address, other: Address, amount: U256) -> Called<()> {
        self.pay(LOG_GAS)?;
        let topics = vec![event, one.into_word(), other.into_word()];
        let data = LogData::new_unchecked(topics, amount.to_be_bytes_vec().into());
        self.context.journal_mut().log(Log { address: self.inputs.target_address, data });
        Ok(())
    }

    fn pay(&mut self, gas: u64) -> Called<()> {
        if self.gas.record_regular_cost(gas) { Ok(()) } else { Err(TokenFault::OutOfGas) }
    }
}

/// Who signed a hash, if the signature has a low s.
fn recover(hash: B256, v: U256, r: [u8; 32], s: [u8; 32]) -> Option<Address> {
    let parity = u8::try_from(v).ok()?.checked_sub(27).filter(|parity| *parity < 2)?;
    let bytes: [u8; 64] = [r, s].concat().try_into().expect("64 bytes");
    let signature = RecoverableSignature::from_compact(&bytes, RecoveryId::from_u8_masked(parity)).ok()?;
    let mut normal = signature.to_standard();
    normal.normalize_s();
    if normal != signature.to_standard() {
        return None;
    }
    let public = SECP256K1.recover_ecdsa(Message::from_digest(hash.0), &signature).ok()?;
    Some(Address::from_raw_public_key(&public.serialize_uncompressed()[1..]))
}

fn holder_slot(holder: &Address) -> U256 {
    holder.into_word().into()
}

fn allowance_slot(owner: &Address, spender: &Address) -> U256 {
    keccak256([b"allowance".as_slice(), owner.as_slice(), spender.as_slice()].concat()).into()
}

fn permits_slot(owner: &Address) -> U256 {
    keccak256([b"permits".as_slice(), owner.as_slice()].concat()).into()
}

fn number(value: U256) -> Vec<u8> {
    value.to_be_bytes_vec()
}

fn word(value: u64) -> Vec<u8> {
    number(U256::from(value))
}

/// A text as Solidity encodes it.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = [word(32), word(text.len() as u64), text.as_bytes().to_vec()].concat();
    bytes.resize(64 + text.len().next_multiple_of(32), 0);
    bytes
}

/// `Error(string)`.
fn revert_reason(why: &str) -> Bytes {
    [&[0x08, 0xc3, 0x79, 0xa0][..], &text(why)].concat().into()
}

static TRANSFER: LazyLock<B256> = LazyLock::new(|| keccak256("Transfer(address,address,uint256)"));
static APPROVAL: LazyLock<B256> = LazyLock::new(|| keccak256("Approval(address,address,uint256)"));
static PERMIT: LazyLock<B256> =
    LazyLock::new(|| keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"));
static DOMAIN: LazyLock<B256> =
    LazyLock::new(|| keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"));
