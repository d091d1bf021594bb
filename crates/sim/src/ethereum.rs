//! Simulated clients of contracts, and books of their wei.

use std::collections::BTreeMap;

use ledger::contracts::{ContractReceipts, EthereumKey, EthereumRequest, contract_address};
use ledger::{BlockReceipts, Ledger, Limits};
use primitives::{Address, Amount, AssetId};

use crate::dice::Dice;

/// Few, so that they conflict.
const SENDERS: u8 = 4;
const HOLDING: Amount = 1_000_000;
const GAS_ASSET: AssetId = AssetId(0);
const GWEI: u128 = 1_000_000_000;

/// Small programs: one counts and logs, one stores and reverts, one runs for ever, one passes value on to the account
/// that its input names, one pays all it has to its caller, and creations of one destroy themselves with their value.
const COUNTS: &[u8] = &[0x5f, 0x54, 0x60, 1, 0x01, 0x80, 0x5f, 0x55, 0x5f, 0x52, 0x60, 32, 0x5f, 0xa0, 0x00];
const REVERTS: &[u8] = &[0x60, 7, 0x5f, 0x55, 0x5f, 0x5f, 0xfd];
const LOOPS: &[u8] = &[0x5b, 0x5f, 0x56];
const FORWARDS: &[u8] = &[0x5f, 0x5f, 0x5f, 0x5f, 0x34, 0x5f, 0x35, 0x5a, 0xf1, 0x00];
const LEAVES: &[u8] = &[0x33, 0xff];
const BURNS: &[u8] = &[0x30, 0xff];

/// Those who send Ethereum transactions.
pub(crate) struct EthereumClients {
    keys: Vec<EthereumKey>,
    /// Contracts that were created, and accounts of others.
    known: Vec<Address>,
}

/// Gas for a few small programs a sub-block, so that the quota is met.
pub(crate) fn limits(committee: u64) -> Limits {
    let (block_gas, sub_block_gas) = (20_000_000 * committee, 17_000_000);
    Limits { block_gas, sub_block_gas, least_base_fee: GWEI as u64, ..Limits::default() }
}

impl EthereumClients {
    pub fn new(others: impl IntoIterator<Item = Address>) -> EthereumClients {
        let key = |number| EthereumKey::from_seed([number + 1; 32]).expect("a key");
        let keys: Vec<EthereumKey> = (0..SENDERS).map(key).collect();
        let known = keys.iter().map(EthereumKey::address).chain(others).collect();
        EthereumClients { keys, known }
    }

    /// What they hold at the start.
    pub fn balances(&self) -> impl Iterator<Item = (Address, AssetId, Amount)> + '_ {
        self.keys.iter().map(|key| (key.address(), GAS_ASSET, HOLDING))
    }

    /// The next transaction, by clients who look at the ledger; some are not signed for this chain, or no transactions.
    pub fn draw(&mut self, ledger: &Ledger, dice: &mut Dice) -> Vec<u8> {
        let key = &self.keys[dice.index(self.keys.len())];
        let (me, to) = (key.address(), self.known[dice.index(self.known.len())]);
        let nonce = ledger.ethereum_nonce(&me) + if dice.once_in(2) { dice.below(4) } else { 0 };
        // Units have two decimals, so that most values are below one.
        let value = if dice.once_in(2) { u128::from(dice.bits()) } else { 0 };
        let (to, data) = match dice.below(12) {
            0 => (None, BURNS.to_vec()),
            1..4 => {
                let runtime = [COUNTS, REVERTS, LOOPS, FORWARDS, LEAVES][dice.index(5)];
                self.known.push(contract_address(&me, nonce));
                (None, creating(runtime))
            }
            4..8 => (Some(to), [&[0; 12], &self.known[dice.index(self.known.len())].0[..]].concat()),
            _ => (Some(to), Vec::new()),
        };
        let gas_limit = if to.is_none() { 150_000 } else { [21_000, 60_000, 100_000, 16_000_000][dice.index(4)] };
        let (max_fee, max_tip) = ((2 + u128::from(dice.below(50))) * GWEI, u128::from(dice.below(2)) * GWEI);
        let chain = ledger.chain() + u64::from(dice.once_in(12));
        let mut bytes = key.sign(&EthereumRequest {
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

/// Code that creates a contract of this runtime code.
fn creating(runtime: &[u8]) -> Vec<u8> {
    [&[0x61, 0, runtime.len() as u8, 0x80, 0x60, 10, 0x5f, 0x39, 0x5f, 0xf3], runtime].concat()
}

/// Wei below units, and nonces, by plain bookkeeping.
#[derive(Clone, Default)]
pub(crate) struct WeiBooks {
    remainders: BTreeMap<Address, u128>,
    /// Transactions of each sender that were paid for.
    sent: BTreeMap<Address, u64>,
    carried: u128,
}

impl WeiBooks {
    /// Takes in the contract phase of a block: what accounts lost in wei is what the receipts say was burnt. `units`
    /// are those of asset 0 by the books before the phase. Says which units accounts have now, and how many left the
    /// issue.
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
        if lost != *burnt as i128 {
            return Err(format!("accounts lost {lost} wei, and {burnt} were burnt"));
        }
        for receipt in executed.iter().filter(|receipt| receipt.position.is_some()) {
            let sent = self.sent.entry(receipt.sender).or_default();
            *sent += 1;
            if after.ethereum_nonce(&receipt.sender) < *sent {
                return Err(format!("{} has paid for {sent} transactions, and its nonce is lower", receipt.sender));
            }
        }
        if let Some((sender, sent)) = self.sent.iter().find(|(sender, sent)| after.ethereum_nonce(sender) != **sent) {
            return Err(format!("the nonce of {sender} is not {sent}, what it has paid for"));
        }
        let all = self.carried + burnt;
        self.carried = all % wei_per_unit;
        Ok((now, (all / wei_per_unit) as i128))
    }
}
