//! Assets as tokens: each asset is an ERC-20 at a reserved address, over the balances that native transactions move.
//!
//! The state of a token is storage of its address, written through the journal of the interpreter like any other
//! storage: so it reverts with its frame, and Block-STM sees its conflicts. A *balance* is the virtual slot of its
//! holder ([`balance_slot`]): it is read from the account and written back to it, and is in no trie. Allowances and
//! permit nonces are ordinary slots.
//!
//! # Rules
//!
//! 1. A reserved address shows nonce 1 and code that nodes never run, so that nothing can be created there, tools see
//!    a contract, and those that execute by themselves can run a token (`shown`).
//! 2. Calls that change state must go to the token's own address, without value and not statically; otherwise they
//!    revert. Delegated and CALLCODE calls always revert: a contract never acts as a token, nor a token for a
//!    contract.
//! 3. Asset 0 pays for gas and moves as value: its token is read-only. A balance is the whole units of the wei.
//! 4. Amounts above 64 bits are refused and never truncated. An allowance of 2^256 − 1 is not used up.
//! 5. `totalSupply` is the number of issued units, wherever they are held. Only tokens log `Transfer`: native
//!    transactions move the same balances and log nothing.
//! 6. Of an asset that its issuer controls a `transfer` needs both sides open, and `transferFrom` a caller whom the
//!    issuer has not frozen, too. The words of a block count in its own contract phase. Each look costs a cold read.
//!    `controls()` says whether the issuer freezes, admits and recovers, and `isOpen(address)` what a holder is.
//! 7. A permit is for the symbol, version "1", this chain and this token, with a low s.

use std::sync::LazyLock;

use primitives::AssetId;
use revm::context::{Block as _, Cfg as _, ContextTr};
use revm::primitives::{Address, B256, U256, keccak256};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, SECP256K1};

use super::call::{Arguments, Call, CallFault, Called, number, plain_address, text, word};
use super::evm_state::{Access, EvmState};
use super::slots::GAS_ASSET;
use super::tokens::TokenFacts;
use crate::places::contracts::reserved::is_reserved;
use crate::places::controls::HolderStanding;

/// Gas of a recovery.
const RECOVER_GAS: u64 = 3_000;
/// Gas of the three hashes of a domain.
const DOMAIN_GAS: u64 = 150;

/// A running call of a token.
pub(super) struct Token<'c, 'a, S: EvmState, A: Access> {
    pub call: Call<'c, 'a, S, A>,
    pub asset: AssetId,
    pub facts: &'c TokenFacts,
}

impl<S: EvmState, A: Access> Token<'_, '_, S, A> {
    pub fn answer(mut self, input: &[u8]) -> Called<Vec<u8>> {
        let (selector, rest) = input.split_at_checked(4).ok_or_else(|| CallFault::reason("no function is named"))?;
        let of = Arguments(rest);
        if self.call.inputs.bytecode_address != self.call.inputs.target_address {
            return Err(CallFault::reason("a token is called at its own address"));
        }
        if self.call.inputs.transfers_value() {
            return Err(CallFault::reason("a token takes no value"));
        }
        match selector {
            [0x06, 0xfd, 0xde, 0x03] | [0x95, 0xd8, 0x9b, 0x41] => Ok(text(&self.facts.symbol)),
            [0x31, 0x3c, 0xe5, 0x67] => Ok(word(self.facts.decimals.into())),
            [0x18, 0x16, 0x0d, 0xdd] => Ok(word(self.facts.issued)),
            [0x70, 0xa0, 0x82, 0x31] => Ok(number(self.balance(of.address(0)?)?)),
            [0xdd, 0x62, 0xed, 0x3e] => {
                let slot = allowance_slot(&of.address(0)?, &of.address(1)?);
                Ok(number(self.call.read(slot)?))
            }
            [0x7e, 0xce, 0xbe, 0x00] => {
                let slot = permits_slot(&of.address(0)?);
                Ok(number(self.call.read(slot)?))
            }
            [0x36, 0x44, 0xe5, 0x15] => Ok(self.domain()?.to_vec()),
            known if known == *CONTROLS => {
                let control = self.facts.control;
                let flags = [control.freezes(), control.admits(), control.recovers()];
                Ok(flags.into_iter().flat_map(|flag| word(flag.into())).collect())
            }
            known if known == *IS_OPEN => {
                let standing = self.standing(of.address(0)?)?;
                Ok(word((standing == HolderStanding::Open).into()))
            }
            _ => self.change(selector, &of),
        }
    }

    fn change(&mut self, selector: &[u8], of: &Arguments) -> Called<Vec<u8>> {
        let caller = self.call.inputs.caller;
        let known =
            [[0xa9, 0x05, 0x9c, 0xbb], [0x09, 0x5e, 0xa7, 0xb3], [0x23, 0xb8, 0x72, 0xdd], [0xd5, 0x05, 0xac, 0xcf]];
        if !known.iter().any(|one| one == selector) {
            return Err(CallFault::reason("a token has no such function"));
        }
        if self.call.inputs.is_static {
            return Err(CallFault::reason("a static call changes nothing"));
        }
        if self.asset == GAS_ASSET {
            return Err(CallFault::reason("asset 0 moves as value: its token is read-only"));
        }
        match selector {
            [0xa9, ..] => self.transfer(caller, of.address(0)?, of.number(1)?)?,
            [0x09, ..] => self.approve(caller, of.address(0)?, of.number(1)?)?,
            [0x23, ..] => {
                let (from, to, amount) = (of.address(0)?, of.address(1)?, of.number(2)?);
                if self.standing(caller)? == HolderStanding::Frozen {
                    return Err(CallFault::reason("the issuer has frozen the caller"));
                }
                self.spend(from, caller, amount)?;
                self.transfer(from, to, amount)?;
            }
            _ => return self.permit(of).map(|()| Vec::new()),
        }
        Ok(word(1))
    }

    fn transfer(&mut self, from: Address, to: Address, amount: U256) -> Called<()> {
        if to.is_zero() {
            return Err(CallFault::reason("transfer to the zero address"));
        }
        if is_reserved(&plain_address(&to)) {
            return Err(CallFault::reason("transfer to a reserved address"));
        }
        self.check_open(from)?;
        self.check_open(to)?;
        let held = self.balance(from)?;
        let left = held.checked_sub(amount).ok_or_else(|| CallFault::reason("transfer amount exceeds balance"))?;
        if from != to {
            // All issued units fit in 64 bits.
            let received = self.balance(to)?.saturating_add(amount);
            self.call.set_units(self.asset, from, held, left)?;
            self.call.set_units(self.asset, to, received - amount, received)?;
        }
        self.log(*TRANSFER, from, to, amount)
    }

    /// What the issuer lets a holder do.
    fn standing(&mut self, holder: Address) -> Called<HolderStanding> {
        Ok(self.call.holder(self.asset, self.facts, holder)?.standing)
    }

    fn check_open(&mut self, holder: Address) -> Called<()> {
        match self.standing(holder)? {
            HolderStanding::Open => Ok(()),
            HolderStanding::Frozen => Err(CallFault::reason("the issuer has frozen an account of the transfer")),
            HolderStanding::NotAdmitted => {
                Err(CallFault::reason("the issuer has not admitted an account of the transfer"))
            }
        }
    }

    fn approve(&mut self, owner: Address, spender: Address, amount: U256) -> Called<()> {
        let slot = allowance_slot(&owner, &spender);
        let before = self.call.read(slot)?;
        self.call.write(slot, before, amount)?;
        self.log(*APPROVAL, owner, spender, amount)
    }

    /// Subtracts an amount from an allowance.
    fn spend(&mut self, owner: Address, spender: Address, amount: U256) -> Called<()> {
        let slot = allowance_slot(&owner, &spender);
        let allowed = self.call.read(slot)?;
        let left = allowed.checked_sub(amount).ok_or_else(|| CallFault::reason("insufficient allowance"))?;
        if allowed == U256::MAX { Ok(()) } else { self.call.write(slot, allowed, left) }
    }

    fn permit(&mut self, of: &Arguments) -> Called<()> {
        let (owner, spender, amount, deadline) = (of.address(0)?, of.address(1)?, of.number(2)?, of.number(3)?);
        self.call.pay(RECOVER_GAS)?;
        if self.call.context.block().timestamp() > deadline {
            return Err(CallFault::reason("the permit has expired"));
        }
        let slot = permits_slot(&owner);
        let nonce = self.call.read(slot)?;
        let said = [*PERMIT, owner.into_word(), spender.into_word(), amount.into(), nonce.into(), deadline.into()];
        let domain = self.domain()?;
        let hash = keccak256([&[0x19, 0x01][..], &domain[..], &keccak256(said.concat())[..]].concat());
        let (v, r, s) = (of.number(4)?, of.word(5)?, of.word(6)?);
        if recover(hash, v, r, s) != Some(owner) {
            return Err(CallFault::reason("the permit is not signed by its owner"));
        }
        self.call.write(slot, nonce, nonce + U256::from(1))?;
        self.approve(owner, spender, amount)
    }

    /// The domain that permits are signed for.
    fn domain(&mut self) -> Called<B256> {
        self.call.pay(DOMAIN_GAS)?;
        let said = [
            *DOMAIN,
            keccak256(&self.facts.symbol),
            keccak256("1"),
            U256::from(self.call.context.cfg().chain_id()).into(),
            self.call.inputs.bytecode_address.into_word(),
        ];
        Ok(keccak256(said.concat()))
    }

    fn balance(&mut self, holder: Address) -> Called<U256> {
        self.call.units(self.asset, holder)
    }

    fn log(&mut self, event: B256, one: Address, other: Address, amount: U256) -> Called<()> {
        self.call.log(vec![event, one.into_word(), other.into_word()], number(amount))
    }
}

/// The signer of a hash, if the signature has a low s.
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

fn selector(function: &str) -> [u8; 4] {
    keccak256(function)[..4].try_into().expect("four bytes")
}

fn allowance_slot(owner: &Address, spender: &Address) -> U256 {
    keccak256([b"allowance".as_slice(), owner.as_slice(), spender.as_slice()].concat()).into()
}

fn permits_slot(owner: &Address) -> U256 {
    keccak256([b"permits".as_slice(), owner.as_slice()].concat()).into()
}

/// The selector of `controls()`.
static CONTROLS: LazyLock<[u8; 4]> = LazyLock::new(|| selector("controls()"));
/// The selector of `isOpen(address)`.
static IS_OPEN: LazyLock<[u8; 4]> = LazyLock::new(|| selector("isOpen(address)"));
static TRANSFER: LazyLock<B256> = LazyLock::new(|| keccak256("Transfer(address,address,uint256)"));
static APPROVAL: LazyLock<B256> = LazyLock::new(|| keccak256("Approval(address,address,uint256)"));
static PERMIT: LazyLock<B256> =
    LazyLock::new(|| keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"));
static DOMAIN: LazyLock<B256> =
    LazyLock::new(|| keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"));
