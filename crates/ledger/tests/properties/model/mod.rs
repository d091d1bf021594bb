//! The ledger in its simplest form: maps, one transaction after another, arbitrary precision. Slow, sequential, and
//! written only from the rules, to compare the real ledger with.

mod exact;
mod exacts;
pub mod market;
pub mod pools;
pub mod sessions;
mod solver;
pub mod validators;

use std::collections::{BTreeMap, BTreeSet};

use exact::{asked, comes_back};
use exacts::ModelExact;
use ledger::{Asset, Attached, ExactTrade, Genesis, LIFE_MAX, Ledger, Pair, Place, Refusal};
use market::{Executed, Judged, Market};
use pools::{ModelPool, ModelPools};
use primitives::{
    Address, Amount, AssetId, Body, Digest, ExactSide, Life, MAX_ISSUED, OfferPlace, Operation, PoolKey, PoolOperation,
    Price, PublicKey, SessionOperation, SignedBy, Transaction,
};
use sessions::{ModelSessions, is_relief, slot};
use validators::ModelValidators;

/// What transactions of an account draw on together.
#[derive(Clone, Copy, PartialEq)]
enum Drawn {
    Balance(AssetId),
    Shares(PoolKey),
}

#[derive(Clone, Default, Debug, PartialEq)]
pub struct ModelAccount {
    pub key: Option<PublicKey>,
    pub used: BTreeSet<u64>,
    pub balances: BTreeMap<AssetId, Amount>,
    pub sessions: ModelSessions,
}

#[derive(Clone)]
pub struct Model {
    pub chain: u64,
    pub network: Digest,
    pub fee: Amount,
    pub genesis: Genesis,
    pub assets: Vec<Asset>,
    pub accounts: BTreeMap<Address, ModelAccount>,
    /// Amounts and last heights.
    pub offers: BTreeMap<(Pair, Place), (Amount, u64)>,
    pub validators: ModelValidators,
    pub pools: ModelPools,
    /// What took part in the last batch.
    pub market: Market,
}

/// The pair and place of an offer of an account.
fn key_of(account: &Address, named: &OfferPlace) -> (Pair, Place) {
    let place = Place { limit: named.limit, account: *account, id: named.offer };
    (Pair { sell: named.sell, buy: named.buy }, place)
}

fn highest(account: &ModelAccount) -> u64 {
    account.used.last().copied().unwrap_or(0)
}

impl Model {
    pub fn new(genesis: &Genesis) -> Model {
        let mut accounts: BTreeMap<Address, ModelAccount> = BTreeMap::new();
        for listing in &genesis.assets {
            accounts.entry(listing.issuer).or_default();
        }
        for (account, asset, amount) in &genesis.balances {
            *accounts.entry(*account).or_default().balances.entry(*asset).or_default() += amount;
        }
        let assets = genesis.issued_assets().expect("a sound genesis");
        let (chain, fee) = (genesis.chain, genesis.fee);
        let network = genesis.membership.as_ref().map_or_else(|| genesis.digest(), |all| all.terms.network);
        let membership = genesis.membership.clone().unwrap_or_default();
        for founder in &membership.founders {
            accounts.entry(founder.account).or_default();
        }
        let validators = ModelValidators::new(chain, &membership, genesis.limits.validators as usize);
        let fees = genesis.pools.clone().expect("the model's chains have pools").fees;
        let (offers, pools) = (BTreeMap::new(), ModelPools { fees, ..ModelPools::default() });
        Model {
            chain,
            network,
            fee,
            genesis: genesis.clone(),
            assets,
            accounts,
            offers,
            validators,
            pools,
            market: Market::default(),
        }
    }

    fn balance(&self, account: &Address, asset: AssetId) -> Amount {
        self.accounts.get(account).and_then(|a| a.balances.get(&asset)).copied().unwrap_or(0)
    }

    fn alone(&self, t: &Transaction) -> Result<(), Refusal> {
        t.check()?;
        let Body { chain, account, sequence, until, operation } = &t.body;
        if *chain != self.chain {
            return Err(Refusal::WRONG_CHAIN);
        }
        if !t.is_signed(&self.network) {
            return Err(Refusal::BAD_SIGNATURE);
        }
        let held = self.accounts.get(account).ok_or(Refusal::UNKNOWN_ACCOUNT)?;
        if matches!(operation, Operation::Present { .. }) {
            self.validators.speaks_for(account, &t.signed_by)?;
        } else if slot(*sequence) > 0 {
            self.session_alone(t)?;
        } else {
            self.signed_by_owner(t, held)?;
        }
        let height = self.validators.height + 1;
        if *until < height {
            return Err(Refusal::ENDED);
        }
        if *until > height + self.genesis.limits.until_max {
            return Err(Refusal::ENDS_TOO_LATE);
        }
        if operation.assets().into_iter().flatten().any(|asset| asset.0 as usize >= self.assets.len()) {
            return Err(Refusal::UNKNOWN_ASSET);
        }
        self.validators.alone(account, operation)?;
        match operation {
            Operation::CreateAccount { account: other, .. }
                if other != account && self.accounts.contains_key(other) =>
            {
                Err(Refusal::ACCOUNT_EXISTS)
            }
            Operation::Cancel(places) => {
                let known = places.iter().any(|named| self.offers.contains_key(&key_of(account, named)));
                if known { Ok(()) } else { Err(Refusal::UNKNOWN_OFFER) }
            }
            Operation::Replace(replace) => {
                let (sell, buy) = (replace.old.sell, replace.old.buy);
                let (sell, buy) = (&self.assets[sell.0 as usize], &self.assets[buy.0 as usize]);
                match self.offers.get(&key_of(account, &replace.old)) {
                    None => Err(Refusal::UNKNOWN_OFFER),
                    Some((rests, _)) if *rests > replace.remains => Err(Refusal::REMAINS_TOO_FEW),
                    _ if replace.amount < sell.least_units => Err(Refusal::SELLS_TOO_LITTLE),
                    _ if asked(replace.amount, replace.limit) < buy.least_units.into() => Err(Refusal::ASKS_TOO_LITTLE),
                    _ if matches!(replace.life, Life::Until(until) if until < height) => Err(Refusal::LIFE_ENDED),
                    _ => Ok(()),
                }
            }
            Operation::CreateOffer { sell, buy, amount, limit, life, .. } => {
                let pair = Pair { sell: *sell, buy: *buy };
                let (sell, buy) = (&self.assets[sell.0 as usize], &self.assets[buy.0 as usize]);
                match () {
                    _ if *amount < sell.least_units => Err(Refusal::SELLS_TOO_LITTLE),
                    _ if asked(*amount, *limit) < buy.least_units.into() => Err(Refusal::ASKS_TOO_LITTLE),
                    _ if self.offers.len() as u64 >= self.genesis.limits.resting_offers => Err(Refusal::BOOK_FULL),
                    _ if self.room() == 0 && !self.is_open(pair) => Err(Refusal::TOO_MANY_PAIRS),
                    _ if matches!(life, Life::Until(until) if *until < height) => Err(Refusal::LIFE_ENDED),
                    _ if matches!(life, Life::Until(until) if *until > height + LIFE_MAX) => {
                        Err(Refusal::LIFE_TOO_LONG)
                    }
                    _ => Ok(()),
                }
            }
            Operation::Pool(operation) => self.pools.alone(operation, &self.assets),
            Operation::Session(operation) => self.operation_alone(account, operation),
            Operation::Exact { sell, buy, side, units, .. } => {
                let exact = if *side == ExactSide::Buy { buy } else { sell };
                let is_enough = *units >= self.assets[exact.0 as usize].least_units;
                if is_enough { Ok(()) } else { Err(Refusal::EXACT_TOO_SMALL) }
            }
            Operation::Issue { asset, .. }
            | Operation::IssueReferenced { asset, .. }
            | Operation::Burn { asset, .. }
                if self.assets[asset.0 as usize].issuer != *account =>
            {
                Err(Refusal::NOT_ISSUER)
            }
            _ => Ok(()),
        }
    }

    /// Whether the account's own key signs, with a free number.
    fn signed_by_owner(&self, t: &Transaction, held: &ModelAccount) -> Result<(), Refusal> {
        let Body { account, sequence, .. } = &t.body;
        match (&t.signed_by, held.key) {
            (SignedBy::Key { signer, .. }, Some(key)) if key != *signer => return Err(Refusal::WRONG_SIGNER),
            (SignedBy::Key { signer, .. }, None) if signer.address() != *account => return Err(Refusal::WRONG_SIGNER),
            _ => {}
        }
        if *sequence > highest(held) + 64 {
            return Err(Refusal::SEQUENCE_TOO_FAR);
        }
        if *sequence == 0 || *sequence + 64 <= highest(held) {
            return Err(Refusal::SEQUENCE_TOO_OLD);
        }
        if held.used.contains(sequence) {
            return Err(Refusal::SEQUENCE_USED);
        }
        Ok(())
    }

    /// For each transaction, its refusal. Of an account's transactions with one number the one that ends last, then
    /// the one with the highest id, counts, and among its copies the one with the smallest signature.
    pub fn filter(&self, block: &[Transaction]) -> Vec<Option<Refusal>> {
        let mut refusals: Vec<Option<Refusal>> = block.iter().map(|t| self.alone(t).err()).collect();
        let standing: Vec<usize> = (0..block.len()).filter(|i| refusals[*i].is_none()).collect();
        let mut distinct = Vec::new();
        for &i in &standing {
            let (account, number) = (block[i].body.account, block[i].body.sequence);
            let mut rivals: Vec<((u64, Digest), &SignedBy, usize)> = standing
                .iter()
                .filter(|j| (block[**j].body.account, block[**j].body.sequence) == (account, number))
                .map(|j| ((block[*j].body.until, block[*j].id()), &block[*j].signed_by, *j))
                .collect();
            rivals.sort_unstable_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            let counts = rivals[0].2;
            match () {
                _ if counts == i => distinct.push(i),
                _ if block[counts].body == block[i].body => refusals[i] = Some(Refusal::DUPLICATE),
                _ => refusals[i] = Some(Refusal::SEQUENCE_CONFLICT),
            }
        }
        for (address, account) in &self.accounts {
            let own: Vec<usize> = distinct.iter().copied().filter(|i| block[*i].body.account == *address).collect();
            self.refuse_beyond_caps(address, &own, block, &mut refusals);
            let own: Vec<usize> = own.into_iter().filter(|i| refusals[*i].is_none()).collect();
            let is_owner = |i: usize| slot(block[i].body.sequence) == 0;
            let relieves = |i: usize| is_relief(&block[i]);
            // The first of these that is within the balance stands.
            let sets: [&dyn Fn(usize) -> bool; 6] = [
                &|_| true,
                &|i| is_owner(i) || relieves(i),
                &is_owner,
                &relieves,
                &|i| is_owner(i) && relieves(i),
                &|_| false,
            ];
            let conflict = self.account_conflict(address, account, &own, block);
            let of = |set: &&&dyn Fn(usize) -> bool| own.iter().copied().filter(|i| set(*i)).collect::<Vec<_>>();
            let stands =
                |set: &&&dyn Fn(usize) -> bool| self.account_conflict(address, account, &of(set), block).is_none();
            let set = sets.iter().find(stands).expect("nothing conflicts with nothing");
            own.iter().filter(|i| !set(**i)).for_each(|i| refusals[*i] = conflict);
        }
        for &i in &distinct {
            let operation = &block[i].body.operation;
            let others = || distinct.iter().copied().filter(move |j| *j != i).map(|j| &block[j].body);
            let clash = match operation {
                Operation::Stake(stake) => others()
                    .any(|b| matches!(&b.operation, Operation::Stake(other) if other.key == stake.key))
                    .then_some(Refusal::VALIDATOR_KEY_CONFLICT),
                Operation::Issue { asset, amount, .. } => {
                    let more: u128 = others()
                        .filter_map(|b| match &b.operation {
                            Operation::Issue { asset: same, amount, .. } if same == asset => Some(u128::from(*amount)),
                            _ => None,
                        })
                        .sum();
                    let total = u128::from(self.assets[asset.0 as usize].issued) + u128::from(*amount) + more;
                    (total > u128::from(MAX_ISSUED)).then_some(Refusal::ISSUE_TOO_LARGE)
                }
                _ => None,
            };
            refusals[i] = refusals[i].or(clash);
        }
        let mut opened: Vec<Pair> = Vec::new();
        for &i in distinct.iter().filter(|i| refusals[**i].is_none()) {
            opened.extend(opens(&block[i]).filter(|pair| !self.is_open(*pair)));
        }
        opened.sort_unstable();
        opened.dedup();
        opened.truncate(self.room());
        for &i in &distinct {
            let shut = opens(&block[i]).is_some_and(|pair| !self.is_open(pair) && !opened.contains(&pair));
            refusals[i] = refusals[i].or(shut.then_some(Refusal::TOO_MANY_PAIRS));
        }
        refusals
    }

    /// Refuses what exceeds the caps of session keys: all of a slot, but its cancels and timers if these are within.
    fn refuse_beyond_caps(
        &self,
        address: &Address,
        own: &[usize],
        block: &[Transaction],
        refusals: &mut [Option<Refusal>],
    ) {
        let slots: BTreeSet<u64> = own.iter().map(|i| slot(block[*i].body.sequence)).filter(|of| *of > 0).collect();
        for of in slots {
            let mut of_slot: Vec<usize> = own.iter().copied().filter(|i| slot(block[*i].body.sequence) == of).collect();
            of_slot.sort_by_key(|i| block[*i].body.sequence);
            let conflict = |chosen: &[usize]| {
                let bodies: Vec<&Body> = chosen.iter().map(|i| &block[*i].body).collect();
                self.slot_conflict(address, of, &bodies)
            };
            let refusal = conflict(&of_slot);
            let relief: Vec<usize> = of_slot.iter().copied().filter(|i| is_relief(&block[*i])).collect();
            let stand = if conflict(&relief).is_none() { relief } else { Vec::new() };
            if refusal.is_some() {
                of_slot.iter().filter(|i| !stand.contains(i)).for_each(|i| refusals[*i] = refusal);
            }
        }
    }

    /// One fee, and one more for each eight offers that a cancel names, and for an offer with an end or of a session
    /// key that may rest.
    fn cost(&self, body: &Body) -> Amount {
        let is_keyed = slot(body.sequence) > 0;
        match &body.operation {
            Operation::Present { .. } => 0,
            Operation::Session(operation) if matches!(**operation, SessionOperation::Authorize { .. }) => {
                100 * self.fee
            }
            Operation::CreateOffer { life: Life::Rests, .. } if is_keyed => 2 * self.fee,
            Operation::Replace(replace) if is_keyed && replace.life == Life::Rests => 2 * self.fee,
            Operation::Cancel(places) => self.fee * (1 + places.len() as Amount / 8),
            Operation::CreateOffer { life: Life::Until(_), .. } => 2 * self.fee,
            Operation::Exact { .. } => 4 * self.fee,
            Operation::Replace(replace) if matches!(replace.life, Life::Until(_)) => 2 * self.fee,
            Operation::Pool(operation) if matches!(**operation, PoolOperation::Open { .. }) => 1_000 * self.fee,
            _ => self.fee,
        }
    }

    fn is_open(&self, pair: Pair) -> bool {
        self.offers.keys().any(|(open, _)| *open == pair)
    }

    /// Pairs that may still be opened.
    fn room(&self) -> usize {
        let open: BTreeSet<Pair> = self.offers.keys().map(|(pair, _)| *pair).collect();
        self.genesis.limits.open_pairs as usize - open.len()
    }

    fn account_conflict(
        &self,
        address: &Address,
        account: &ModelAccount,
        own: &[usize],
        block: &[Transaction],
    ) -> Option<Refusal> {
        let bodies: Vec<&Body> = own.iter().map(|i| &block[*i].body).collect();
        let rotations = bodies
            .iter()
            .filter(|b| matches!(&b.operation, Operation::CreateAccount { account, .. } if account == address));
        if rotations.count() > 1 {
            return Some(Refusal::KEY_CONFLICT);
        }
        let moves = bodies.iter().filter(|b| matches!(&b.operation, Operation::Stake(_) | Operation::Unstake { .. }));
        if moves.count() > 1 {
            return Some(Refusal::STAKE_CONFLICT);
        }
        // Sums in the order in which the account's transactions first meet them, by number.
        let mut sums: Vec<(Drawn, u128)> = Vec::new();
        let mut draw = |what: Drawn, units: u64| match sums.iter_mut().find(|(known, _)| *known == what) {
            Some((_, sum)) => *sum += u128::from(units),
            None => sums.push((what, units.into())),
        };
        let mut by_number = bodies.clone();
        by_number.sort_by_key(|body| (slot(body.sequence) == 0, body.sequence));
        for body in by_number {
            draw(Drawn::Balance(AssetId(0)), self.cost(body));
            if let Operation::Pool(operation) = &body.operation
                && let PoolOperation::Leave { pool, shares, .. } = **operation
            {
                draw(Drawn::Shares(pool), shares);
            }
            for (asset, amount) in body.operation.debits().into_iter().flatten() {
                draw(Drawn::Balance(asset), amount);
            }
        }
        let refusal = |(what, sum): (Drawn, u128)| match what {
            Drawn::Balance(asset) => {
                let has = u128::from(account.balances.get(&asset).copied().unwrap_or(0));
                (sum > has).then_some(Refusal::OVERDRAFT)
            }
            Drawn::Shares(pool) => {
                (sum > u128::from(self.pools.shares((pool, *address)))).then_some(Refusal::SHARES_NOT_HELD)
            }
        };
        sums.into_iter().find_map(refusal)
    }

    fn move_units(&mut self, account: &Address, asset: AssetId, change: i128) {
        let held = self.accounts.entry(*account).or_default();
        let balance = held.balances.entry(asset).or_default();
        *balance = Amount::try_from(i128::from(*balance) + change).expect("no overdraft, no overflow");
        if *balance == 0 {
            held.balances.remove(&asset);
        }
    }

    /// Applies a block with a clearing that must be correct; returns refusals and fills.
    pub fn apply(
        &mut self,
        block: &[Transaction],
        seed: &Digest,
        claim: &Attached,
    ) -> (Vec<Option<Refusal>>, Vec<Executed>) {
        let refusals = self.filter(block);
        // The model uses two sub-blocks with half of the transactions each and an empty one; sub-blocks without an
        // invalid transaction are paid.
        let (first, second) = refusals.split_at(block.len() / 2);
        let sound = |part: &[Option<Refusal>]| !part.iter().flatten().any(|refusal| is_false(*refusal));
        let paid_for = [(0, sound(first)), (1, sound(second)), (2, true)];
        let proposers: Vec<u32> = paid_for.iter().filter(|(_, is_sound)| *is_sound).map(|(index, _)| *index).collect();
        let standing: Vec<&Transaction> =
            block.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none()).map(|(t, _)| t).collect();
        let paid = self.validators.apply(&standing, &proposers, seed);
        // What leaves rested before the block, so cancels act first, then replacements by falling number: one that
        // finds its offer gone pays and does nothing.
        let turn = |t: &&&Transaction| match t.body.operation {
            Operation::Cancel(_) => (0, 0),
            // The owner's numbers come before those of session keys.
            Operation::Replace(_) if slot(t.body.sequence) == 0 => (1, u64::MAX - t.body.sequence),
            Operation::Replace(_) => (2, u64::MAX - t.body.sequence),
            _ => (3, 0),
        };
        let mut by_turn: Vec<&&Transaction> = standing.iter().collect();
        by_turn.sort_by_key(turn);
        let pools = self.pools.clone();
        // Of the openings of one pool that with the lowest id counts.
        let opens = |of: &PoolOperation| matches!(of, PoolOperation::Open { .. });
        let is_opening = |t: &&&Transaction| matches!(&t.body.operation, Operation::Pool(of) if opens(of));
        let mut openings: Vec<_> = standing.iter().filter(is_opening).collect();
        openings.sort_by_key(|t| t.id());
        openings.into_iter().for_each(|t| self.act_on_pool(&pools, t));
        let others = standing.iter().filter(|t| matches!(t.body.operation, Operation::Pool(_)) && !is_opening(t));
        others.for_each(|t| self.act_on_pool(&pools, t));
        by_turn.into_iter().for_each(|t| self.act(t));
        let fills = self.trade(exacts::in_order(&standing), claim);
        for (key, before) in &pools.pools {
            assert!(self.pools.pools[key].is_worth_as_much_as(before), "a·b/T² of {key:?} fell");
        }
        let ending = self.turn_sessions(&standing);
        self.end(&ending);
        self.end_sessions(&standing);
        for (account, units) in paid {
            self.move_units(&account, AssetId(0), i128::from(units));
        }
        (refusals, fills)
    }

    fn act_on_pool(&mut self, before: &ModelPools, t: &Transaction) {
        let Operation::Pool(operation) = &t.body.operation else { return };
        let [a, b] = self.pools.act(before, t.body.account, operation);
        self.move_units(&t.body.account, operation.pool().a, a);
        self.move_units(&t.body.account, operation.pool().b, b);
    }

    fn act(&mut self, t: &Transaction) {
        let Body { account, sequence, operation, .. } = &t.body;
        match slot(*sequence) {
            0 if matches!(operation, Operation::Present { .. }) => {}
            0 => drop(self.accounts.get_mut(account).expect("known").used.insert(*sequence)),
            _ => self.use_session(&t.body),
        }
        let cost = self.cost(&t.body);
        self.move_units(account, AssetId(0), -i128::from(cost));
        self.assets[0].issued -= cost;
        match operation {
            Operation::Stake(stake) => self.move_units(account, AssetId(0), -i128::from(stake.units)),
            Operation::Unstake { .. } | Operation::Accuse(_) | Operation::Present { .. } => {}
            Operation::Approve { .. } | Operation::Unapprove { .. } => {}
            Operation::SetKeys(_) | Operation::RecoverKeys(_) | Operation::CompleteKeys { .. } => {
                unreachable!("the rules of this chain have no policies")
            }
            Operation::SetReceiving { .. } => unreachable!("nobody asks for references here"),
            Operation::ListAsset(_) | Operation::CloseAsset { .. } => unreachable!("the model's chains list no assets"),
            Operation::Propose(_) | Operation::Vote { .. } => unreachable!("nobody stakes on the model's chains"),
            Operation::SealDuty { .. } => unreachable!("the model's chains make no sealing key"),
            Operation::SetHolder { .. } | Operation::Recover(_) => unreachable!("all assets of the model are open"),
            Operation::Sealed(_) => unreachable!("nobody seals on the model's chains"),
            Operation::Withdraw { .. } | Operation::Lane(_) => unreachable!("the model's chains have no payment lane"),
            Operation::Venue(_) => unreachable!("the model's chains have no venues"),
            // They acted before, and act in the batch.
            Operation::Pool(_) | Operation::Exact { .. } | Operation::Session(_) => {}
            Operation::CreateAccount { account: other, .. } if other != account => {
                self.accounts.entry(*other).or_default();
            }
            Operation::CreateAccount { key, .. } => self.accounts.get_mut(account).expect("known").key = Some(*key),
            Operation::CreateOffer { sell, buy, amount, limit, life, .. } => {
                self.move_units(account, *sell, -i128::from(*amount));
                let place = Place { limit: *limit, account: *account, id: *sequence };
                let until = match life {
                    Life::Rests => u64::MAX,
                    Life::Until(until) => *until,
                    Life::OneBatch => self.validators.height,
                };
                self.offers.insert((Pair { sell: *sell, buy: *buy }, place), (*amount, until));
            }
            Operation::Replace(replace) => {
                let Some((rests, _)) = self.offers.remove(&key_of(account, &replace.old)) else { return };
                let (pair, _) = key_of(account, &replace.old);
                // What was sold of the old offer since it had `remains` is not sold again.
                let size = i128::from(replace.amount) - (i128::from(replace.remains) - i128::from(rests));
                let least = [pair.sell, pair.buy].map(|asset| self.assets[asset.0 as usize].least_units);
                let fits = size >= i128::from(least[0]) && asked(size as Amount, replace.limit) >= least[1].into();
                let size = if fits { size as Amount } else { 0 };
                self.move_units(account, pair.sell, i128::from(rests) - i128::from(size));
                // It used what it debited already.
                let old = key_of(account, &replace.old).1;
                let is_own = slot(old.id) == slot(*sequence);
                let debit = i128::from(replace.amount.saturating_sub(replace.remains));
                let kept = if is_own { i128::from(size) - debit } else { 0 };
                self.release(&old, pair.sell, i128::from(rests) - kept);
                if size > 0 {
                    let until = match replace.life {
                        Life::Rests => u64::MAX,
                        Life::Until(until) => until,
                        Life::OneBatch => self.validators.height,
                    };
                    let place = Place { limit: replace.limit, account: *account, id: *sequence };
                    self.offers.insert((pair, place), (size, until));
                }
            }
            Operation::Cancel(places) => {
                for named in places {
                    // Another cancel of the account may have removed it in this block.
                    let amount = self.offers.remove(&key_of(account, named)).map_or(0, |rest| rest.0);
                    self.move_units(account, named.sell, i128::from(amount));
                    self.release(&key_of(account, named).1, named.sell, i128::from(amount));
                }
            }
            Operation::Pay { to, asset, amount } | Operation::PayReferenced { to, asset, amount, .. } => {
                self.move_units(account, *asset, -i128::from(*amount));
                self.move_units(to, *asset, i128::from(*amount));
            }
            Operation::Issue { to, asset, amount } | Operation::IssueReferenced { to, asset, amount, .. } => {
                self.move_units(to, *asset, i128::from(*amount));
                self.assets[asset.0 as usize].issued += amount;
            }
            Operation::Burn { asset, amount } => {
                self.move_units(account, *asset, -i128::from(*amount));
                self.assets[asset.0 as usize].issued -= amount;
            }
        }
    }

    /// Returns what was for this block at most, and what belongs to these slots.
    fn end(&mut self, slots: &BTreeSet<(Address, u64)>) {
        let height = self.validators.height;
        let is_over = |(key, rest): &(&(Pair, Place), &(Amount, u64))| {
            rest.1 <= height || slots.contains(&(key.1.account, slot(key.1.id)))
        };
        let over: Vec<_> = self.offers.iter().filter(is_over).map(|(key, rest)| (*key, rest.0)).collect();
        for ((pair, place), left) in over {
            self.offers.remove(&(pair, place));
            self.move_units(&place.account, pair.sell, i128::from(left));
            self.release(&place, pair.sell, i128::from(left));
        }
    }

    /// What takes part in the batch.
    fn market_of(&self, exacts: Vec<ModelExact>) -> Market {
        let mut offers: BTreeMap<Pair, Vec<(Place, Amount)>> = BTreeMap::new();
        for ((pair, place), (amount, _)) in &self.offers {
            offers.entry(*pair).or_default().push((*place, *amount));
        }
        let least: Vec<Amount> = self.assets.iter().map(|asset| asset.least_units).collect();
        let is_awake = |key: &PoolKey, pool: &ModelPool| {
            pool.a >= 4 * least[key.a.0 as usize] && pool.b >= 4 * least[key.b.0 as usize]
        };
        let awake = self.pools.pools.iter().filter(|(key, pool)| is_awake(key, pool));
        let pools = awake.map(|(key, pool)| (*key, *pool, self.pools.fees[usize::from(key.class)])).collect();
        let (epsilon, mu) = (self.genesis.epsilon, self.genesis.mu);
        Market { epsilon, mu, least, offers, pools, exacts }
    }

    /// Executes a clearing if it is correct.
    fn trade(&mut self, exacts: Vec<ModelExact>, claim: &Attached) -> Vec<Executed> {
        self.market = self.market_of(exacts);
        let pairs = self.market.pairs();
        let Judged { fills, kept } = self.market.judged(claim).expect("a correct clearing");
        if !pairs.is_empty() {
            let last = (0..).zip(&self.assets).map(|(number, asset)| asset.valuation.filter(|_| number > 0));
            let last: Vec<Price> = last.map(|known| known.unwrap_or(Price::ONE)).collect();
            solver::assert_found(&self.market, &last, claim);
        }
        for (number, asset) in self.assets.iter_mut().enumerate() {
            asset.valuation = comes_back(number as u32, &pairs).then(|| claim.valuations[number]);
        }
        for fill in &claim.pools {
            let pool = self.pools.pools.get_mut(&fill.pool).expect("awake");
            let (gives, takes) = if fill.sells_a { (&mut pool.a, &mut pool.b) } else { (&mut pool.b, &mut pool.a) };
            (*gives, *takes) = (*gives - fill.sold, *takes + fill.bought);
        }
        for exact in self.market.exacts.clone() {
            let place = Place { limit: Price::ONE, account: exact.account, id: exact.id };
            self.release(&place, exact.pair.sell, i128::from(exact.locks()));
        }
        for ExactTrade { pair, account, id, sold, bought, .. } in &claim.exacts {
            self.move_units(account, pair.sell, -i128::from(*sold));
            self.move_units(account, pair.buy, i128::from(*bought));
            let place = Place { limit: Price::ONE, account: *account, id: *id };
            self.release(&place, pair.sell, -i128::from(*sold));
            self.release(&place, pair.buy, i128::from(*bought));
        }
        for (pair, place, sold, bought, returned) in &fills {
            let left = self.offers.get_mut(&(*pair, *place)).expect("rests");
            left.0 -= sold + returned;
            if left.0 == 0 {
                self.offers.remove(&(*pair, *place));
            }
            self.move_units(&place.account, pair.buy, i128::from(*bought));
            self.move_units(&place.account, pair.sell, i128::from(*returned));
            self.release(place, pair.buy, i128::from(*bought));
            self.release(place, pair.sell, i128::from(*returned));
        }
        for (asset, kept) in self.assets.iter_mut().zip(kept) {
            asset.issued = Amount::try_from(i128::from(asset.issued) - kept).expect("no more is kept than exists");
        }
        fills
    }

    /// Asserts that the real ledger holds exactly what the model holds.
    pub fn assert_same(&self, real: &Ledger) {
        assert_eq!(real.accounts().len(), self.accounts.len());
        for (address, account) in &self.accounts {
            let state = real.accounts().get(address).expect("exists").state();
            assert_eq!(state.balances, account.balances.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>(), "{address}");
            assert_eq!(state.key, account.key);
            assert_eq!(state.window.highest(), highest(account));
            for sequence in 0..highest(account) + 70 {
                let free = sequence > 0
                    && sequence + 64 > highest(account)
                    && sequence <= highest(account) + 64
                    && !account.used.contains(&sequence);
                assert_eq!(state.window.check(sequence).is_ok(), free, "{address} {sequence}");
            }
        }
        let offers: Vec<_> = real
            .book()
            .iter()
            .flat_map(|(pair, offers)| offers.iter().map(move |o| ((pair, o.place), (o.amount, o.until))))
            .collect();
        assert_eq!(offers, self.offers.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>());
        assert_eq!(real.assets(), self.assets);
        self.validators.assert_same(real);
        self.pools.assert_same(real);
        self.assert_same_sessions(real);
    }

    pub fn balance_of(&self, account: &Address, asset: AssetId) -> Amount {
        self.balance(account, asset)
    }
}

/// Whether everyone could know that the transaction is refused, whatever the state.
pub fn is_false(refusal: Refusal) -> bool {
    let by_itself = [
        Refusal::ZERO_AMOUNT,
        Refusal::AMOUNT_TOO_LARGE,
        Refusal::SAME_ASSET,
        Refusal::CANCEL_LIST,
        Refusal::SELF_PAYMENT,
        Refusal::RESERVED_ADDRESS,
        Refusal::BAD_SIGNATURE,
    ];
    let by_names = [Refusal::ADDRESS_NOT_OF_KEY, Refusal::NETWORK_ADDRESS];
    let by_the_genesis = [
        Refusal::WRONG_CHAIN,
        Refusal::UNKNOWN_ASSET,
        Refusal::NOT_ISSUER,
        Refusal::SELLS_TOO_LITTLE,
        Refusal::ASKS_TOO_LITTLE,
        Refusal::COMMITTEE_FIXED,
        Refusal::POOL_ASSETS,
        Refusal::SESSION_TERMS,
        Refusal::NO_POOL_CLASS,
    ];
    let by_signatures = [Refusal::NOT_POSSESSED, Refusal::BAD_EVIDENCE];
    by_itself.contains(&refusal)
        || by_names.contains(&refusal)
        || by_the_genesis.contains(&refusal)
        || by_signatures.contains(&refusal)
}

/// The pair of an offer that a transaction makes.
fn opens(transaction: &Transaction) -> Option<Pair> {
    match transaction.body.operation {
        Operation::CreateOffer { sell, buy, .. } => Some(Pair { sell, buy }),
        _ => None,
    }
}
