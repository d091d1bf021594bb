//! One account: its key, its sequence window and its balances.

use borsh::BorshSerialize;
use primitives::{
    Address, Amount, AssetId, PublicKey, ReferenceRule, Sequence, SessionSlot, SignedBy, number_in_slot, slot_of,
};
use proofs::{AccountSessions, AccountState, EvmRecord, SessionRecord, Window, write_account_end};
use smallvec::SmallVec;

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

/// Fields that few accounts have.
#[derive(Clone, Default, PartialEq, Eq)]
struct Rare {
    /// The registered key; `None` while the account is controlled by the key that hashes to its address.
    key: Option<PublicKey>,
    evm: EvmRecord,
    /// The session keys; `None` if there never were any.
    sessions: Option<Box<AccountSessions>>,
    /// Whether the account has a policy of keys; derived from the place of policies, and in no encoding.
    has_policy: bool,
    /// Whether payments to it need a reference.
    references: ReferenceRule,
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

    /// Marks a free number as used: one of its own, or of a session key.
    pub(crate) fn mark(&mut self, sequence: Sequence) {
        let slot = slot_of(sequence);
        let window = match self.session_mut(slot) {
            Some(session) => &mut session.window,
            None => &mut self.window,
        };
        window.mark(number_in_slot(sequence));
    }

    /// Its session keys, if it ever had any.
    pub fn sessions(&self) -> Option<&AccountSessions> {
        self.rare.as_deref()?.sessions.as_deref()
    }

    /// The session key in a slot.
    pub fn session(&self, slot: SessionSlot) -> Option<&SessionRecord> {
        self.sessions()?.get(slot)
    }

    pub(crate) fn session_mut(&mut self, slot: SessionSlot) -> Option<&mut SessionRecord> {
        self.rare.as_deref_mut()?.sessions.as_deref_mut()?.get_mut(slot)
    }

    /// Its session keys, for changes after which it has had some.
    pub(crate) fn sessions_mut(&mut self) -> &mut AccountSessions {
        self.rare.get_or_insert_default().sessions.get_or_insert_default()
    }

    /// Whether several keys sign for it by a policy.
    pub fn has_policy(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.has_policy)
    }

    /// The account has a policy from now on.
    pub(crate) fn mark_policy(&mut self) {
        self.rare.get_or_insert_default().has_policy = true;
    }

    /// Whether payments to it need a reference.
    pub fn needs_reference(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.references == ReferenceRule::Required)
    }

    /// Says whether they do. The shard knows its accounts that need one ([`super::Shard::receive`]).
    pub(super) fn receive(&mut self, references: ReferenceRule) {
        self.change_rare(|rare| rare.references = references);
    }

    /// Changes fields that few accounts have. An account with the values that all begin with has none of its own.
    fn change_rare(&mut self, change: impl FnOnce(&mut Rare)) {
        let mut rare = self.rare.take().unwrap_or_default();
        change(&mut rare);
        self.rare = Some(rare).filter(|rare| **rare != Rare::default());
    }

    /// Whether `key` alone controls the account. No key controls a contract, or an account with a policy.
    pub fn is_controlled_by(&self, key: &PublicKey) -> bool {
        match self.rare.as_deref() {
            Some(rare) if rare.evm.is_contract || rare.has_policy => false,
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
            SignedBy::Policy(_) => false,
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
        self.change_rare(|rare| rare.evm = evm);
    }

    /// Whether it has sent native transactions, registered a key or taken a policy.
    pub(crate) fn has_acted(&self) -> bool {
        self.window != Window::default() || self.key().is_some() || self.has_policy()
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
            sessions: self.sessions().cloned(),
            needs_reference: self.needs_reference(),
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
        write(&|out| write_account_end(self.sessions(), self.needs_reference(), out));
    }

    /// The account that has this state.
    pub fn from_state(state: AccountState) -> Account {
        let balances = state.balances.iter().map(|&(asset, amount)| Balance::new(asset, amount)).collect();
        let sessions = state.sessions.map(Box::new);
        let references = if state.needs_reference { ReferenceRule::Required } else { ReferenceRule::Optional };
        let evm = state.evm.unwrap_or_default();
        let rare = Rare { key: state.key, evm, sessions, has_policy: false, references };
        let rare = (rare != Rare::default()).then(|| Box::new(rare));
        Account { address: state.address, window: state.window, rare, balances }
    }

    /// Bytes on the heap beyond the account itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        let spilled = if self.balances.spilled() { self.balances.capacity() * size_of::<Balance>() } else { 0 };
        let of_session = |one: &SessionRecord| size_of::<SessionRecord>() + size_of_val(one.budgets.as_slice());
        let of_sessions =
            |all: &AccountSessions| size_of::<AccountSessions>() + all.records.iter().map(of_session).sum::<usize>();
        spilled + self.rare.as_ref().map_or(0, |_| size_of::<Rare>()) + self.sessions().map_or(0, of_sessions)
    }
}

#[cfg(test)]
mod tests {
    use primitives::Digest;

    use super::*;

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
        let changes: [&dyn Fn(&mut Account); 8] = [
            &|_| {},
            &|account| account.receive(ReferenceRule::Required),
            &|account| account.receive(ReferenceRule::Optional),
            &|account| account.receive(ReferenceRule::Required),
            &|account| account.register(PublicKey([9; 32])),
            &|account| account.sessions_mut().slots = 3,
            &|account| account.set_evm(evm),
            &|account| account.set_evm(EvmRecord::default()),
        ];
        for change in changes {
            change(&mut account);
            assert_eq!(Account::from_state(account.state()).state(), account.state());
            let mut written = Vec::new();
            account.write_state(&mut written);
            assert_eq!(written, borsh::to_vec(&account.state()).expect("writing to memory"));
        }
        assert_eq!(
            account.sessions().map(|sessions| sessions.slots),
            Some(3),
            "what Ethereum knows changes no session"
        );
    }
}
