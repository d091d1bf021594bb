//! Clients of accounts with policies: they change keys, recover them, sign together, and get it wrong.

use kernel::Dice;
use ledger::{AccountKeys, Ledger};
use primitives::{
    Address, Amount, AssetId, Body, ChangedBy, Digest, KeyHolder, KeyPolicy, KeySignatures, KeySigner, KeysChange,
    Operation, RecoverKeys, Reference, ReferenceKind, ReferenceRule, SecretKey, Sequence, SessionsFate, SetKeys,
    SignedBy, Transaction, WalletKey, WalletSigner,
};

/// Ed25519 keys, and wallets, of which policies are made.
const KEYS: usize = 6;
const WALLETS: usize = 2;
const GUARDIANS: usize = 3;
/// Units that each account holds of each asset.
const HOLDING: Amount = 100_000_000;

/// An account of an institution, which has no policy at first.
struct Institution {
    address: Address,
    first: SecretKey,
    next: Sequence,
    /// Its keys as a client saw them last.
    known: Option<AccountKeys>,
    /// Requests and changes that were signed once, for those who post them later.
    kept: Vec<Operation>,
    requests: Vec<Transaction>,
}

/// Somebody who sends and pays what concerns the keys of others, and pays them.
struct Clerk {
    key: SecretKey,
    next: Sequence,
}

/// Who has a key.
enum Signer<'a> {
    Key(&'a SecretKey),
    Wallet(&'a WalletKey),
}

/// See the module text.
pub(crate) struct PolicyClients {
    chain: u64,
    network: Digest,
    assets: u64,
    keys: Vec<SecretKey>,
    wallets: Vec<WalletKey>,
    guardians: Vec<SecretKey>,
    institutions: Vec<Institution>,
    clerks: Vec<Clerk>,
}

fn secret(dice: &mut Dice) -> SecretKey {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&dice.bits().to_le_bytes()));
    SecretKey::from_seed(seed)
}

fn wallet(dice: &mut Dice) -> WalletKey {
    WalletKey::from_bytes(secret(dice).to_seed()).expect("below the order of the curve, but for one in 2^127")
}

impl PolicyClients {
    /// `institutions` accounts, and two clerks, of a chain with so many assets.
    pub fn new(institutions: usize, assets: u64, (chain, network): (u64, Digest), dice: &mut Dice) -> PolicyClients {
        let mut some = |count: usize| (0..count).map(|_| secret(dice)).collect::<Vec<_>>();
        let (keys, guardians) = (some(KEYS), some(GUARDIANS));
        let clerks = some(2).into_iter().map(|key| Clerk { key, next: 1 }).collect();
        let institution = |first: SecretKey| {
            let address = first.public().address();
            Institution { address, first, next: 1, known: None, kept: Vec::new(), requests: Vec::new() }
        };
        let institutions = some(institutions).into_iter().map(institution).collect();
        let wallets = (0..WALLETS).map(|_| wallet(dice)).collect();
        PolicyClients { chain, network, assets, keys, wallets, guardians, institutions, clerks }
    }

    /// What they hold at the genesis.
    pub fn balances(&self) -> impl Iterator<Item = (Address, AssetId, Amount)> + '_ {
        let clerks = self.clerks.iter().map(|clerk| clerk.key.public().address());
        let all = self.institutions.iter().map(|one| one.address).chain(clerks);
        all.flat_map(|one| (0..self.assets as u32).map(move |asset| (one, AssetId(asset), HOLDING)))
    }

    /// The next transaction, and whether every node must refuse it. Clients look at a ledger from time to time.
    pub fn draw(&mut self, ledger: &Ledger, dice: &mut Dice) -> (Transaction, bool) {
        if dice.once_in(2) {
            self.look(ledger);
        }
        let who = dice.index(self.institutions.len());
        match dice.below(16) {
            0..3 => (self.send(dice, |all, dice| all.set(who, dice)), false),
            3 => (self.send(dice, |all, dice| all.recover(who, dice)), false),
            4 | 5 => {
                (self.send(dice, |all, _| Operation::CompleteKeys { account: all.institutions[who].address }), false)
            }
            6 => (self.send(dice, |all, dice| all.kept_change(who, dice)), false),
            7 => (self.send(dice, |all, dice| all.pay(who, dice)), false),
            8 => (self.send(dice, |_, dice| receiving(dice)), false),
            9 => (self.alone(who, dice), false),
            10 => (self.kept_request(who, dice), false),
            11 => self.twice(who, dice),
            _ => (self.request(who, dice), false),
        }
    }

    /// A clerk sends an operation.
    fn send(&mut self, dice: &mut Dice, make: impl FnOnce(&mut Self, &mut Dice) -> Operation) -> Transaction {
        let operation = make(self, dice);
        let at = dice.index(self.clerks.len());
        let clerk = &mut self.clerks[at];
        clerk.next += 1;
        let (account, sequence) = (clerk.key.public().address(), clerk.next - 1);
        Body { chain: self.chain, account, sequence, until: 50_000, operation }.sign(&self.network, &clerk.key)
    }

    /// A policy of some of the keys and wallets.
    fn policy(&self, dice: &mut Dice) -> KeyPolicy {
        let mut keys: Vec<KeySigner> =
            self.keys.iter().map(|key| KeySigner { key: key.public(), weight: 1 + dice.below(2) as u8 }).collect();
        dice.shuffle(&mut keys);
        keys.truncate(2 + dice.index(KEYS - 2));
        keys.sort_by_key(|one| one.key);
        let mut wallets: Vec<WalletSigner> =
            self.wallets.iter().map(|key| WalletSigner { wallet: key.address(), weight: 1 }).collect();
        wallets.truncate(dice.index(WALLETS + 1));
        wallets.sort_by_key(|one| one.wallet);
        let all: u16 = keys.iter().map(|one| u16::from(one.weight)).sum::<u16>() + wallets.len() as u16;
        let moves = 2.min(all);
        let mut guards: Vec<_> = self.guardians.iter().map(SecretKey::public).take(dice.index(GUARDIANS + 1)).collect();
        guards.sort();
        KeyPolicy {
            keys: keys.into(),
            wallets: wallets.into(),
            moves,
            governs: moves + dice.below(u64::from(all - moves) + 1) as u16,
            guardians: guards.len().min(2) as u8,
            guardian_keys: guards.into(),
            guardian_wallets: [].into(),
            delay: dice.below(5) as u32,
        }
    }

    /// A change that those have signed who may, as far as its client knows; now and then one too few.
    fn change(&mut self, who: usize, by: ChangedBy, dice: &mut Dice) -> (KeysChange, KeySignatures) {
        let policy = self.policy(dice);
        let one = &self.institutions[who];
        let last = one.known.as_ref().map_or(Digest::default(), |keys| keys.last);
        let sessions = if dice.once_in(2) { SessionsFate::Keep } else { SessionsFate::Close };
        let change = KeysChange { account: one.address, last, policy, sessions };
        let in_force = one.known.as_ref().map(|keys| &keys.policy);
        let mut signatures = self.consents(&change, by, &change.policy);
        if let (ChangedBy::Signers, Some(policy)) = (by, in_force) {
            signatures = signatures.with(&self.consents(&change, by, policy));
        }
        let others = match (by, in_force) {
            (ChangedBy::Guardians, _) => &self.guardians[..],
            (ChangedBy::Signers, None) => std::slice::from_ref(&one.first),
            (ChangedBy::Signers, Some(_)) => &[],
        };
        let guards = |key: &&SecretKey| in_force.is_none_or(|policy| policy.guardian_keys.contains(&key.public()));
        let signed = others.iter().filter(guards).map(|key| change.sign(by, &self.network, key));
        signatures = signed.fold(signatures, |all, one| all.with(&one));
        if dice.once_in(8) {
            signatures.keys = signatures.keys.iter().skip(2).copied().collect();
        }
        (change, signatures)
    }

    /// The signatures of all signers of a policy on a change.
    fn consents(&self, change: &KeysChange, by: ChangedBy, policy: &KeyPolicy) -> KeySignatures {
        self.signed_by(policy.signers().map(|(signer, _)| signer), |signer| match signer {
            Signer::Key(key) => change.sign(by, &self.network, key),
            Signer::Wallet(key) => change.sign_typed(by, self.chain, &self.network, key),
        })
    }

    /// The signatures of these signers on a body.
    fn requests(&self, body: &Body, last: &Digest, by: impl Iterator<Item = KeyHolder>) -> KeySignatures {
        self.signed_by(by, |signer| match signer {
            Signer::Key(key) => body.sign_for_policy(last, &self.network, key),
            Signer::Wallet(key) => body.sign_typed_for_policy(last, &self.network, key),
        })
    }

    fn signed_by(
        &self,
        holders: impl Iterator<Item = KeyHolder>,
        sign: impl Fn(Signer<'_>) -> KeySignatures,
    ) -> KeySignatures {
        let signer = |holder| match holder {
            KeyHolder::Key(public) => self.keys.iter().find(|key| key.public() == public).map(Signer::Key),
            KeyHolder::Wallet(address) => self.wallets.iter().find(|key| key.address() == address).map(Signer::Wallet),
        };
        let signed = holders.filter_map(signer).map(sign);
        signed.fold(KeySignatures::default(), |all, one| all.with(&one))
    }

    fn set(&mut self, who: usize, dice: &mut Dice) -> Operation {
        let (change, signatures) = self.change(who, ChangedBy::Signers, dice);
        let first = self.institutions[who].first.public();
        self.keep(who, Operation::SetKeys(Box::new(SetKeys { change, first, signatures })))
    }

    fn recover(&mut self, who: usize, dice: &mut Dice) -> Operation {
        let (change, signatures) = self.change(who, ChangedBy::Guardians, dice);
        self.keep(who, Operation::RecoverKeys(Box::new(RecoverKeys { change, signatures })))
    }

    fn keep(&mut self, who: usize, operation: Operation) -> Operation {
        self.institutions[who].kept.push(operation.clone());
        operation
    }

    /// Somebody posts a change that was signed before.
    fn kept_change(&mut self, who: usize, dice: &mut Dice) -> Operation {
        let kept = &self.institutions[who].kept;
        if kept.is_empty() { self.set(who, dice) } else { kept[dice.index(kept.len())].clone() }
    }

    /// A payment to an institution, with a reference or without.
    fn pay(&mut self, who: usize, dice: &mut Dice) -> Operation {
        let (to, asset) = (self.institutions[who].address, AssetId(dice.below(self.assets) as u32));
        let amount = 1 + dice.below(1_000);
        if dice.once_in(2) {
            return Operation::Pay { to, asset, amount };
        }
        let reference = Reference { kind: ReferenceKind::Number, bytes: amount.to_be_bytes()[..].into() };
        Operation::PayReferenced { to, asset, amount, reference }
    }

    fn body(&mut self, who: usize, dice: &mut Dice) -> Body {
        let to = self.clerks[dice.index(self.clerks.len())].key.public().address();
        let (asset, amount) = (AssetId(dice.below(self.assets) as u32), 1 + dice.below(1_000));
        let operation = if dice.once_in(4) { receiving(dice) } else { Operation::Pay { to, asset, amount } };
        let one = &mut self.institutions[who];
        one.next += 1;
        Body { chain: self.chain, account: one.address, sequence: one.next - 1, until: 50_000, operation }
    }

    /// The first key alone: it signs until there is a policy, and never after.
    fn alone(&mut self, who: usize, dice: &mut Dice) -> Transaction {
        let body = self.body(who, dice);
        body.sign(&self.network, &self.institutions[who].first)
    }

    /// A request, by signers of the policy in force or of the one that waits.
    fn request(&mut self, who: usize, dice: &mut Dice) -> Transaction {
        let body = self.body(who, dice);
        let one = &self.institutions[who];
        let Some(known) = &one.known else { return body.sign(&self.network, &one.first) };
        let waits = known.waiting.as_ref().filter(|_| dice.once_in(4));
        let policy = waits.map_or(&known.policy, |waits| &waits.policy);
        let needed = if dice.once_in(2) { policy.moves } else { policy.governs };
        let mut missing = i32::from(needed);
        let enough = policy.signers().take_while(|(_, weight)| {
            missing -= i32::from(*weight);
            missing + i32::from(*weight) > 0
        });
        let signatures = self.requests(&body, &known.last, enough.map(|(signer, _)| signer));
        let request = Transaction::by_policy(body, known.last, signatures);
        self.institutions[who].requests.push(request.clone());
        request
    }

    /// Somebody posts a request that was signed before, under a new number: that changes the body, so those who signed
    /// then sign it again, as thieves of old keys do.
    fn kept_request(&mut self, who: usize, dice: &mut Dice) -> Transaction {
        let old = &self.institutions[who].requests;
        let Some(old) = (!old.is_empty()).then(|| old[dice.index(old.len())].clone()) else {
            return self.request(who, dice);
        };
        let SignedBy::Policy(signed) = &old.signed_by else { return old };
        let body = self.body(who, dice);
        let signatures = self.requests(&body, &signed.last, signed.signatures.holders());
        Transaction::by_policy(body, signed.last, signatures)
    }

    /// One signer stands as often as its weight would have to.
    fn twice(&mut self, who: usize, dice: &mut Dice) -> (Transaction, bool) {
        let mut request = self.request(who, dice);
        let SignedBy::Policy(signed) = &mut request.signed_by else { return (request, false) };
        let Some(one) = signed.signatures.keys.first().copied() else { return (request, false) };
        signed.signatures.keys = vec![one; 4].into();
        signed.signatures.wallets = [].into();
        (request, true)
    }

    /// Clients read the keys of institutions, and the next numbers of all.
    pub fn look(&mut self, ledger: &Ledger) {
        let next = |address: &Address, next: Sequence| {
            let highest = ledger.accounts().get(address).map_or(0, |account| account.window().highest());
            next.clamp(highest + 1, highest + 40)
        };
        for one in &mut self.institutions {
            one.next = next(&one.address, one.next);
            one.known = ledger.account_keys(&one.address).cloned();
        }
        for clerk in &mut self.clerks {
            clerk.next = next(&clerk.key.public().address(), clerk.next);
        }
    }
}

fn receiving(dice: &mut Dice) -> Operation {
    let references = if dice.once_in(2) { ReferenceRule::Required } else { ReferenceRule::Optional };
    Operation::SetReceiving { references }
}
