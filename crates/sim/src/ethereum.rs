//! Simulated clients of contracts, and bookkeeping of their wei.

use std::collections::BTreeMap;

use kernel::Dice;
use ledger::contracts::ethereum::{U256, keccak256};
use ledger::contracts::{
    ContractReceipts, EthereumKey, EthereumRequest, FIRST_CONTRACT_OFFER, OFFERS, OfferEvent, OfferName,
    contract_address, token_address,
};
use ledger::{BlockReceipts, Ledger, Limits, Pair, Place};
use primitives::{Address, Amount, AssetId, Height};

/// Few senders, so that they conflict.
const SENDERS: u8 = 4;
const HOLDING: Amount = 1_000_000;
/// Number of contracts of each sender that have a balance before they are created.
const FUNDED: u64 = 8;
const GAS_ASSET: AssetId = AssetId(0);
const OTHER_ASSET: AssetId = AssetId(1);
const GWEI: u128 = 1_000_000_000;

/// Small programs: one counts and logs, one stores and reverts, one runs for ever, one passes value on to the account
/// in its input, one pays its whole balance to its caller, and creations of one destroy themselves with their value.
const COUNTS: &[u8] = &[0x5f, 0x54, 0x60, 1, 0x01, 0x80, 0x5f, 0x55, 0x5f, 0x52, 0x60, 32, 0x5f, 0xa0, 0x00];
const REVERTS: &[u8] = &[0x60, 7, 0x5f, 0x55, 0x5f, 0x5f, 0xfd];
const LOOPS: &[u8] = &[0x5b, 0x5f, 0x56];
const FORWARDS: &[u8] = &[0x5f, 0x5f, 0x5f, 0x5f, 0x34, 0x5f, 0x35, 0x5a, 0xf1, 0x00];
const LEAVES: &[u8] = &[0x33, 0xff];
const BURNS: &[u8] = &[0x30, 0xff];

/// Calls the account in the first word of its input with the rest; the second form reverts afterwards.
const CALLS: &[u8] = &[
    0x60, 32, 0x36, 0x03, 0x60, 32, 0x5f, 0x37, 0x5f, 0x5f, 0x60, 32, 0x36, 0x03, 0x5f, 0x5f, 0x5f, 0x35, 0x5a, 0xf1,
    0x00,
];
const CALLS_AND_REVERTS: &[u8] = &[
    0x60, 32, 0x36, 0x03, 0x60, 32, 0x5f, 0x37, 0x5f, 0x5f, 0x60, 32, 0x36, 0x03, 0x5f, 0x5f, 0x5f, 0x35, 0x5a, 0xf1,
    0x5f, 0x5f, 0xfd,
];

/// The senders of Ethereum transactions.
pub(crate) struct EthereumClients {
    keys: Vec<EthereumKey>,
    /// Contracts that were created, and accounts of others.
    known: Vec<Address>,
    /// Those contracts that make calls for others.
    callers: Vec<Address>,
}

/// Gas for a few small programs per sub-block, so that the quota is reached.
pub(crate) fn limits(committee: u64) -> Limits {
    let (block_gas, sub_block_gas) = (20_000_000 * committee, 17_000_000);
    Limits { block_gas, sub_block_gas, least_base_fee: GWEI as u64, ..Limits::default() }
}

impl EthereumClients {
    pub fn new(others: impl IntoIterator<Item = Address>) -> EthereumClients {
        let key = |number| EthereumKey::from_seed([number + 1; 32]).expect("a key");
        let keys: Vec<EthereumKey> = (0..SENDERS).map(key).collect();
        let known = keys.iter().map(EthereumKey::address).chain(others).collect();
        EthereumClients { keys, known, callers: Vec::new() }
    }

    /// The balances at the start, also of the contracts that are created first, so that these have something to
    /// offer.
    pub fn balances(&self) -> impl Iterator<Item = (Address, AssetId, Amount)> + '_ {
        let people = self.keys.iter().map(EthereumKey::address);
        let contracts = |person| (0..FUNDED).map(move |nonce| (contract_address(&person, nonce), OTHER_ASSET, HOLDING));
        let held = |person| [GAS_ASSET, OTHER_ASSET].map(|asset| (person, asset, HOLDING));
        people.flat_map(move |person| held(person).into_iter().chain(contracts(person)))
    }

    /// The next transaction, by clients that read the ledger; some are not signed for this chain, or are not
    /// transactions.
    pub fn draw(&mut self, ledger: &Ledger, dice: &mut Dice) -> Vec<u8> {
        let signer = dice.index(self.keys.len());
        let (me, to) = (self.keys[signer].address(), self.known[dice.index(self.known.len())]);
        let nonce = ledger.ethereum_nonce(&me) + if dice.once_in(2) { dice.below(4) } else { 0 };
        // Units have two decimals, so most values are below one unit.
        let value = if dice.once_in(2) { u128::from(dice.bits()) } else { 0 };
        let (to, data) = match dice.below(20) {
            0 => (None, BURNS.to_vec()),
            12.. => self.call_reserved(me, nonce, ledger, dice),
            1..4 => {
                let runtime = [COUNTS, REVERTS, LOOPS, FORWARDS, LEAVES][dice.index(5)];
                self.known.push(contract_address(&me, nonce));
                (None, creating(runtime))
            }
            4..8 => (Some(to), [&[0; 12], &self.known[dice.index(self.known.len())].0[..]].concat()),
            _ => (Some(to), Vec::new()),
        };
        let is_reserved = to.is_some() && data.len() > 32;
        let gas_limit = match to {
            None => 150_000,
            Some(_) if is_reserved => [60_000, 200_000, 300_000][dice.index(3)],
            Some(_) => [21_000, 60_000, 100_000, 16_000_000][dice.index(4)],
        };
        // Tokens and offers take no value.
        let value = if is_reserved && !dice.once_in(10) { 0 } else { value };
        let (max_fee, max_tip) = ((2 + u128::from(dice.below(50))) * GWEI, u128::from(dice.below(2)) * GWEI);
        let chain = ledger.chain() + u64::from(dice.once_in(12));
        let mut bytes = self.keys[signer].sign(&EthereumRequest {
            chain,
            nonce,
            to,
            value,
            gas_limit,
            max_fee,
            max_tip,
            data,
            ..Default::default()
        });
        if dice.once_in(20) {
            let at = dice.index(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
        }
        bytes
    }
}

impl EthereumClients {
    /// A call of a token or of the offers, directly or through a contract that may revert afterwards; or the creation
    /// of such a contract.
    fn call_reserved(
        &mut self,
        me: Address,
        nonce: u64,
        ledger: &Ledger,
        dice: &mut Dice,
    ) -> (Option<Address>, Vec<u8>) {
        // Creations may fail, or never be included in a block.
        let is_there = |one: &&Address| ledger.accounts().get(one).is_some_and(|account| account.evm().is_contract);
        let callers: Vec<Address> = self.callers.iter().filter(is_there).copied().collect();
        if callers.len() < 2 || dice.once_in(20) {
            let runtime = if self.callers.len().is_multiple_of(2) { CALLS } else { CALLS_AND_REVERTS };
            let created = contract_address(&me, nonce);
            self.known.push(created);
            self.callers.push(created);
            return (None, creating(runtime));
        }
        let through = dice.once_in(2).then(|| callers[dice.index(callers.len())]);
        let (to, data) = self.reserved(through.unwrap_or(me), &callers, ledger, dice);
        match through {
            None => (Some(to), data),
            Some(contract) => (Some(contract), [&[0; 12], &to.0[..], &data].concat()),
        }
    }

    /// A request to a token or to the offers.
    fn reserved(&self, me: Address, callers: &[Address], ledger: &Ledger, dice: &mut Dice) -> (Address, Vec<u8>) {
        let word = |address: Address| U256::from_be_slice(&address.0);
        let token = |asset: AssetId| word(token_address(asset));
        let somebody = |dice: &mut Dice| word(self.known[dice.index(self.known.len())]);
        // Mostly to contracts that make calls for others, so that they have something to offer.
        let payee = match dice.once_in(2) {
            true => word(callers[dice.index(callers.len())]),
            false => somebody(dice),
        };
        let amount = U256::from([100, 5_000, 40_000, 300_000, 2_000_000][dice.index(5)] + dice.below(1_000));
        let (at, function, arguments) = match dice.below(12) {
            0 => (token_address(OTHER_ASSET), "approve(address,uint256)", vec![somebody(dice), amount]),
            1 => {
                let from = somebody(dice);
                (token_address(OTHER_ASSET), "transferFrom(address,address,uint256)", vec![from, payee, amount])
            }
            2..5 => (token_address(OTHER_ASSET), "transfer(address,uint256)", vec![payee, amount]),
            5 => {
                let mut named: Vec<U256> = (0..1 + dice.index(4)).map(|_| own_word(me, ledger, dice)).collect();
                // Some lists name an offer twice.
                if !dice.once_in(6) {
                    named.sort_unstable();
                    named.dedup();
                }
                let head = [U256::from(32), U256::from(named.len())];
                (OFFERS, "cancel(bytes32[])", head.into_iter().chain(named).collect())
            }
            6 | 7 => (OFFERS, "cancel(bytes32)", vec![own_word(me, ledger, dice)]),
            _ => {
                let (sell, buy) = if dice.once_in(2) { (GAS_ASSET, OTHER_ASSET) } else { (OTHER_ASSET, GAS_ASSET) };
                let asks = amount * U256::from(90 + dice.below(22)) / U256::from(100);
                let mut arguments = vec![token(sell), token(buy), amount, asks];
                if dice.once_in(2) {
                    (OFFERS, "place(address,address,uint64,uint64)", arguments)
                } else {
                    // Some have ended before their first batch.
                    let until = if dice.once_in(8) { 0 } else { ledger.height() + dice.below(6) };
                    arguments.push(U256::from(until));
                    (OFFERS, "place(address,address,uint64,uint64,uint64)", arguments)
                }
            }
        };
        let words = arguments.iter().flat_map(U256::to_be_bytes::<32>);
        (at, keccak256(function)[..4].iter().copied().chain(words).collect())
    }
}

/// The name of one of an account's offers.
fn own_word(me: Address, ledger: &Ledger, dice: &mut Dice) -> U256 {
    U256::from_be_bytes(own_offer(me, ledger, dice).to_word())
}

/// An offer that an account has placed; if it has none, one that never existed.
fn own_offer(me: Address, ledger: &Ledger, dice: &mut Dice) -> OfferName {
    let pairs = [(GAS_ASSET, OTHER_ASSET), (OTHER_ASSET, GAS_ASSET)].map(|(sell, buy)| Pair { sell, buy });
    let resting = pairs.into_iter().filter_map(|pair| Some((pair, ledger.book().get(pair)?)));
    let own: Vec<OfferName> = resting
        .flat_map(|(pair, offers)| offers.iter().map(move |offer| (pair, offer.place)))
        .filter(|(_, place)| place.account == me && place.id >= FIRST_CONTRACT_OFFER)
        .map(|(pair, place)| OfferName { pair, limit: place.limit, id: place.id })
        .collect();
    let none = OfferName { pair: pairs[0], limit: primitives::Price::ONE, id: FIRST_CONTRACT_OFFER };
    if own.is_empty() { none } else { own[dice.index(own.len())] }
}

/// The last height of an offer that a contract has placed, as a log of the offers says.
pub(crate) fn last_height(log: &ledger::contracts::EthereumLog) -> Option<((Pair, Place), Height)> {
    let [event, owner, name] = &log.topics[..] else { return None };
    if log.address != OFFERS || *event != keccak256("Ends(address,bytes32,uint64)").0 {
        return None;
    }
    let (name, owner) = (OfferName::of_word(name)?, Address(owner[12..].try_into().expect("twenty bytes")));
    let until = U256::from_be_slice(&log.data).try_into().expect("heights have 64 bits");
    Some(((name.pair, name.place(&owner)), until))
}

/// The transfer in a token's log: from, to, amount.
pub(crate) fn moved(log: &ledger::contracts::EthereumLog) -> Option<(AssetId, Address, Address, Amount)> {
    let asset = ledger::contracts::token_at(&log.address)?;
    let [event, from, to] = &log.topics[..] else { return None };
    let address = |word: &[u8; 32]| Address(word[12..].try_into().expect("twenty bytes"));
    let is_transfer = *event == keccak256("Transfer(address,address,uint256)").0;
    let amount = U256::from_be_slice(&log.data).try_into().expect("units have 64 bits");
    is_transfer.then_some((asset, address(from), address(to), amount))
}

/// Code that creates a contract of this runtime code.
fn creating(runtime: &[u8]) -> Vec<u8> {
    [&[0x61, 0, runtime.len() as u8, 0x80, 0x60, 10, 0x5f, 0x39, 0x5f, 0xf3], runtime].concat()
}

/// Wei below units, and nonces, by plain bookkeeping.
#[derive(Clone, Default)]
pub(crate) struct WeiBooks {
    remainders: BTreeMap<Address, u128>,
    /// Number of transactions of each sender that were paid for.
    sent: BTreeMap<Address, u64>,
    carried: u128,
}

impl WeiBooks {
    /// Processes the contract phase of a block: the wei that accounts lost equal the burnt amount of the receipts.
    /// `units` are those of asset 0 by the books before the phase. Returns the units that accounts have now, and the
    /// number that left the issue.
    pub fn follow(
        &mut self,
        receipts: &BlockReceipts,
        after: &Ledger,
        units: impl Fn(&Address) -> i128,
    ) -> Result<(Vec<(Address, i128)>, i128), String> {
        let ContractReceipts { receipts: executed, burnt, .. } = &receipts.contracts;
        let wei_per_unit = u128::from(after.wei_per_unit());
        let mut lost = 0i128;
        let mut now = Vec::new();
        for address in &receipts.modified {
            let remainder = self.remainders.get(address).copied().unwrap_or(0) as i128;
            let before = units(address) * wei_per_unit as i128 + remainder;
            let wei = after.wei(address);
            lost += before - wei as i128;
            self.remainders.insert(*address, wei % wei_per_unit);
            now.push((*address, (wei / wei_per_unit) as i128));
        }
        for event in OfferEvent::of_block(&receipts.contracts) {
            let (pair, locked) = match event {
                OfferEvent::Placed(pair, _, amount) => (pair, i128::from(amount)),
                OfferEvent::Cancelled(pair, _, amount) => (pair, -i128::from(amount)),
            };
            lost -= if pair.sell == GAS_ASSET { locked * wei_per_unit as i128 } else { 0 };
        }
        if lost != *burnt as i128 {
            return Err(format!("accounts lost {lost} wei, but {burnt} were burnt"));
        }
        for receipt in executed.iter().filter(|receipt| receipt.position.is_some()) {
            let sent = self.sent.entry(receipt.sender).or_default();
            *sent += 1;
            if after.ethereum_nonce(&receipt.sender) < *sent {
                return Err(format!("{} has paid for {sent} transactions, but its nonce is lower", receipt.sender));
            }
        }
        if let Some((sender, sent)) = self.sent.iter().find(|(sender, sent)| after.ethereum_nonce(sender) != **sent) {
            return Err(format!("the nonce of {sender} is not {sent}, the number of transactions it has paid for"));
        }
        let all = self.carried + burnt;
        self.carried = all % wei_per_unit;
        Ok((now, (all / wei_per_unit) as i128))
    }
}
