//! One account: its key, its sequence window and its balances.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, PublicKey, Sequence, SignedBy};
use smallvec::SmallVec;

/// The maximum distance of a sequence number from the highest used one, above or below (rule 4).
pub const SEQUENCE_WINDOW: u64 = 64;

/// Which sequence numbers an account has used: the highest, and a bitmap of the 64 up to and including it.
///
/// A number is free if it is at most 64 above the highest used, or among the 64 up to it and not used. So numbers may
/// arrive in any order, gaps may remain, and each is used at most once (SPEEDEX §K.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Window {
    highest: Sequence,
    /// Bit i is set if `highest − i` is used.
    used: u64,
}

/// Why a sequence number is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowError {
    /// It has been used.
    Used,
    /// It is more than 64 below the highest used, so the ledger no longer knows.
    TooOld,
    /// It is more than 64 above the highest used.
    TooFar,
}

impl Window {
    /// The highest number used; 0 if none is.
    pub fn highest(&self) -> Sequence {
        self.highest
    }

    /// Whether `sequence` is free.
    ///
    /// # Errors
    /// [`WindowError`] says why not.
    pub fn check(&self, sequence: Sequence) -> Result<(), WindowError> {
        if sequence > self.highest {
            return if sequence - self.highest <= SEQUENCE_WINDOW { Ok(()) } else { Err(WindowError::TooFar) };
        }
        let behind = self.highest - sequence;
        match () {
            _ if sequence == 0 || behind >= SEQUENCE_WINDOW => Err(WindowError::TooOld),
            _ if self.used >> behind & 1 == 1 => Err(WindowError::Used),
            _ => Ok(()),
        }
    }

    /// Marks a free `sequence` as used.
    pub fn mark(&mut self, sequence: Sequence) {
        if sequence > self.highest {
            let ahead = (sequence - self.highest) as u32;
            self.used = self.used.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = sequence;
        } else {
            self.used |= 1 << (self.highest - sequence);
        }
    }
}

/// Units of one asset that an account can spend: what is not locked in offers.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Balance {
    asset: AssetId,
    /// A `u64` in two halves, so that a balance takes 12 bytes and two of them fit inside the account.
    amount: [u32; 2],
}

impl Balance {
    fn new(asset: AssetId, amount: Amount) -> Balance {
        Balance { asset, amount: [amount as u32, (amount >> 32) as u32] }
    }

    fn amount(&self) -> Amount {
        u64::from(self.amount[0]) | u64::from(self.amount[1]) << 32
    }
}

/// What Ethereum knows of an account besides its balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EvmRecord {
    /// The nonce of its next Ethereum transaction, or of the next contract that it creates.
    pub nonce: u64,
    /// Wei on top of the units of asset 0, less than one unit.
    pub remainder: u64,
    /// The Keccak hash of its code; zero if it has none. The account of a key has code while it delegates (EIP-7702).
    pub code: Digest,
    /// Whether it was created as a contract: then no key can sign for it, even one that hashes to its address.
    pub is_contract: bool,
}

/// Fields that few accounts have.
#[derive(Clone, Default, PartialEq, Eq)]
struct Rare {
    /// The registered key; `None` while the account is controlled by the key that hashes to its address.
    key: Option<PublicKey>,
    evm: EvmRecord,
}

/// An account in the hot state: 80 bytes with up to two assets.
#[derive(Clone)]
pub struct Account {
    address: Address,
    window: Window,
    /// `None` means the values that every account begins with.
    rare: Option<Box<Rare>>,
    /// Sorted by asset; no zeros.
    balances: SmallVec<[Balance; 2]>,
}

/// An account in the form in which it is hashed, proved and stored.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountState {
    /// Its address.
    pub address: Address,
    /// The key it registered, if it ever did.
    pub key: Option<PublicKey>,
    /// The sequence numbers it has used.
    pub window: Window,
    /// Spendable units by asset; sorted by asset, no zeros.
    pub balances: Vec<(AssetId, Amount)>,
    /// What Ethereum knows of it; `None` means an [`EvmRecord`] of zeros.
    pub evm: Option<EvmRecord>,
}

impl Account {
    /// An account that has never acted and holds nothing.
    pub fn new(address: Address) -> Account {
        Account { address, window: Window::default(), rare: None, balances: SmallVec::new() }
    }

    /// Its address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Its used sequence numbers.
    pub fn window(&self) -> &Window {
        &self.window
    }

    pub(crate) fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// Whether `key` controls the account. No key controls a contract.
    pub fn is_controlled_by(&self, key: &PublicKey) -> bool {
        match self.rare.as_deref() {
            Some(rare) if rare.evm.is_contract => false,
            Some(Rare { key: Some(registered), .. }) => registered == key,
            _ => key.address() == self.address,
        }
    }

    /// Whether a valid signature is by a key that controls the account. For typed data the signer must be the
    /// account's own key: no registered key replaces it, because it also signs for Ethereum.
    pub(crate) fn is_signed_for_by(&self, signed_by: &SignedBy) -> bool {
        match signed_by {
            SignedBy::Key { signer, .. } => self.is_controlled_by(signer),
            SignedBy::TypedData { .. } => !self.evm().is_contract,
        }
    }

    fn key(&self) -> Option<PublicKey> {
        self.rare.as_ref().and_then(|rare| rare.key)
    }

    pub(crate) fn register(&mut self, key: PublicKey) {
        self.rare.get_or_insert_default().key = Some(key);
    }

    /// What Ethereum knows of it besides its balance.
    pub fn evm(&self) -> EvmRecord {
        self.rare.as_ref().map_or(EvmRecord::default(), |rare| rare.evm)
    }

    pub(crate) fn set_evm(&mut self, evm: EvmRecord) {
        let rare = Rare { key: self.key(), evm };
        self.rare = (rare != Rare::default()).then(|| Box::new(rare));
    }

    /// Whether it has sent native transactions or registered a key.
    pub(crate) fn has_acted(&self) -> bool {
        self.window != Window::default() || self.key().is_some()
    }

    /// Sets the spendable units of an asset.
    pub(crate) fn set_balance(&mut self, asset: AssetId, amount: Amount) {
        match self.find(asset) {
            Ok(at) if amount == 0 => drop(self.balances.remove(at)),
            Ok(at) => self.balances[at] = Balance::new(asset, amount),
            Err(_) if amount == 0 => {}
            Err(at) => self.balances.insert(at, Balance::new(asset, amount)),
        }
    }

    /// Spendable units of `asset`.
    pub fn balance(&self, asset: AssetId) -> Amount {
        self.find(asset).map_or(0, |at| self.balances[at].amount())
    }

    /// Spendable units by asset; sorted by asset, no zeros.
    pub fn balances(&self) -> impl Iterator<Item = (AssetId, Amount)> + '_ {
        self.balances.iter().map(|balance| (balance.asset, balance.amount()))
    }

    /// Adds units. The cap on an asset's issue keeps the sum in range (rule 2).
    pub(crate) fn credit(&mut self, asset: AssetId, amount: Amount) {
        if amount == 0 {
            return;
        }
        match self.find(asset) {
            Ok(at) => {
                let sum = self.balances[at].amount().checked_add(amount).expect("an asset's issue is capped");
                self.balances[at] = Balance::new(asset, sum);
            }
            Err(at) => self.balances.insert(at, Balance::new(asset, amount)),
        }
    }

    /// Takes units. The filter has checked that the account has them (rule 5).
    pub(crate) fn debit(&mut self, asset: AssetId, amount: Amount) {
        if amount == 0 {
            return;
        }
        let at = self.find(asset).expect("the filter keeps accounts from spending what they do not have");
        match self.balances[at].amount().checked_sub(amount) {
            Some(0) => drop(self.balances.remove(at)),
            Some(rest) => self.balances[at] = Balance::new(asset, rest),
            None => panic!("the filter keeps accounts from overdrawing"),
        }
    }

    fn find(&self, asset: AssetId) -> Result<usize, usize> {
        self.balances.binary_search_by_key(&asset, |balance| balance.asset)
    }

    /// The account in the form in which it is hashed, proved and stored.
    pub fn state(&self) -> AccountState {
        AccountState {
            address: self.address,
            key: self.key(),
            window: self.window,
            balances: self.balances().collect(),
            evm: Some(self.evm()).filter(|evm| *evm != EvmRecord::default()),
        }
    }

    /// Writes the encoding of [`Account::state`].
    pub(crate) fn write_state(&self, out: &mut Vec<u8>) {
        let count = u32::try_from(self.balances.len()).expect("fewer than 2^32 assets");
        let mut write =
            |value: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| value(out).expect("writing to memory cannot fail");
        write(&|out| self.address.serialize(out));
        write(&|out| self.key().serialize(out));
        write(&|out| self.window.serialize(out));
        write(&|out| count.serialize(out));
        self.balances.iter().for_each(|balance| write(&|out| (balance.asset, balance.amount()).serialize(out)));
        write(&|out| Some(self.evm()).filter(|evm| *evm != EvmRecord::default()).serialize(out));
    }

    /// The account that has this state.
    pub fn from_state(state: AccountState) -> Account {
        let balances = state.balances.iter().map(|&(asset, amount)| Balance::new(asset, amount)).collect();
        let rare = Rare { key: state.key, evm: state.evm.unwrap_or_default() };
        let rare = (rare != Rare::default()).then(|| Box::new(rare));
        Account { address: state.address, window: state.window, rare, balances }
    }

    /// Bytes on the heap beyond the account itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        let spilled = if self.balances.spilled() { self.balances.capacity() * size_of::<Balance>() } else { 0 };
        spilled + self.rare.as_ref().map_or(0, |_| size_of::<Rare>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_account_stays_small() {
        assert_eq!(size_of::<Account>(), 80);
    }

    #[test]
    fn balances_stay_sorted_without_zeros() {
        let mut account = Account::new(Address::default());
        for (asset, amount) in [(5, 10), (1, 20), (3, u64::from(u32::MAX) + 7), (5, 1)] {
            account.credit(AssetId(asset), amount);
        }
        account.debit(AssetId(1), 20);
        account.debit(AssetId(3), 8);
        let held: Vec<_> = account.balances().collect();
        assert_eq!(held, [(AssetId(3), u64::from(u32::MAX) - 1), (AssetId(5), 11)]);
        assert_eq!(Account::from_state(account.state()).state(), account.state());
        let evm = EvmRecord { nonce: 3, remainder: 4, code: Digest([5; 32]), is_contract: true };
        let changes: [&dyn Fn(&mut Account); 4] =
            [&|_| {}, &|account| account.register(PublicKey([9; 32])), &|account| account.set_evm(evm), &|account| {
                account.set_evm(EvmRecord::default())
            }];
        for change in changes {
            change(&mut account);
            assert_eq!(Account::from_state(account.state()).state(), account.state());
            let mut written = Vec::new();
            account.write_state(&mut written);
            assert_eq!(written, borsh::to_vec(&account.state()).expect("writing to memory"));
        }
    }

    proptest! {
        /// Compares with the plain rule: a set of used numbers.
        #[test]
        fn each_number_is_used_once_within_64_of_the_highest(steps in proptest::collection::vec(0..200u64, 1..200)) {
            let mut window = Window::default();
            let mut used = BTreeSet::new();
            for step in steps {
                let highest = used.last().copied().unwrap_or(0);
                let sequence = (highest + step).saturating_sub(90);
                let expected = if sequence > highest + 64 {
                    Err(WindowError::TooFar)
                } else if sequence == 0 || sequence + 64 <= highest {
                    Err(WindowError::TooOld)
                } else if used.contains(&sequence) {
                    Err(WindowError::Used)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.check(sequence), expected);
                if expected.is_ok() {
                    window.mark(sequence);
                    used.insert(sequence);
                }
            }
        }
    }
}
