//! Clients that trade by session keys, and that replace offers.

use kernel::Dice;
use ledger::{Ledger, Pair, Place};
use primitives::{
    Address, Amount, AssetId, Body, ClientId, Digest, ExactSide, Height, Life, OfferPlace, OfferReplacement, Operation,
    Price, SecretKey, Sequence, SessionCap, SessionOperation, SessionScope, SessionSlot, SessionTerms, Transaction,
    session_possession_bytes, slot_of, slot_sequence,
};

/// Session keys that a client remembers, those that are over included: it goes on using them.
const BOTS: usize = 5;
/// Units that clients hold of each asset.
const HOLDING: Amount = 100_000_000;

/// A session key of a client, who does not know whether it was authorised, or is over.
struct Bot {
    key: SecretKey,
    slot: SessionSlot,
    /// The next number within the slot.
    next: u64,
    /// Whether it could trade when its owner looked.
    trades: bool,
}

/// An offer as its client saw it last.
#[derive(Clone, Copy)]
struct Resting {
    place: OfferPlace,
    amount: Amount,
    /// Whether it rested when its owner looked.
    is_seen: bool,
}

struct Owner {
    address: Address,
    /// All keys that it has had; the last one controls the account unless a change was lost or refused.
    keys: Vec<SecretKey>,
    next: Sequence,
    /// The last slot that it knows of.
    slots: SessionSlot,
    bots: Vec<Bot>,
    offers: Vec<Resting>,
}

/// See the module text.
pub(crate) struct SessionClients {
    chain: u64,
    network: Digest,
    owners: Vec<Owner>,
    assets: u64,
    /// The newest height that they know of.
    height: Height,
    /// How many times longer than usual their keys live: where many blocks are made between two of their turns.
    pub patience: u64,
}

/// Who signs: the owner, or one of its session keys.
#[derive(Clone, Copy)]
enum Signer {
    Owner,
    Bot(usize),
}

fn secret(dice: &mut Dice) -> SecretKey {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&dice.bits().to_le_bytes()));
    SecretKey::from_seed(seed)
}

impl SessionClients {
    /// `owners` clients of a chain with so many assets.
    pub fn new(owners: usize, assets: u64, (chain, network): (u64, Digest), dice: &mut Dice) -> SessionClients {
        let owner = |_| {
            let key = secret(dice);
            let (address, keys) = (key.public().address(), vec![key]);
            Owner { address, keys, next: 1, slots: 0, bots: Vec::new(), offers: Vec::new() }
        };
        let owners = (0..owners).map(owner).collect();
        SessionClients { chain, network, owners, assets, height: 0, patience: 1 }
    }

    /// What they hold at the genesis.
    pub fn balances(&self) -> impl Iterator<Item = (Address, AssetId, Amount)> + '_ {
        let assets = self.assets as u32;
        self.owners.iter().flat_map(move |owner| (0..assets).map(|asset| (owner.address, AssetId(asset), HOLDING)))
    }

    /// The next transaction, and whether every node must refuse it. Clients look at a ledger from time to time.
    pub fn draw(&mut self, ledger: &Ledger, dice: &mut Dice) -> (Transaction, bool) {
        if dice.once_in(3) {
            self.look(ledger);
        }
        let who = dice.index(self.owners.len());
        let bots = &self.owners[who].bots;
        if bots.is_empty() || !bots.iter().any(|bot| bot.trades) && dice.once_in(3) {
            return (self.by_owner(who, 0, dice), false);
        }
        match dice.below(32) {
            0 => (self.overreach(who, dice), true),
            kind @ 1..9 => (self.by_owner(who, kind, dice), false),
            _ => (self.by_bot(who, dice), false),
        }
    }

    fn by_owner(&mut self, who: usize, kind: u64, dice: &mut Dice) -> Transaction {
        let slot = self.some_slot(who, dice);
        let operation = match kind {
            0 | 1 => self.authorize(who, dice),
            2 if dice.once_in(3) => Operation::Session(Box::new(SessionOperation::Revoke { slot })),
            2 | 3 => self.alive(slot, dice),
            4 if dice.once_in(8) => {
                let key = secret(dice);
                let operation = Operation::CreateAccount { account: self.owners[who].address, key: key.public() };
                self.owners[who].keys.push(key);
                operation
            }
            5 | 6 => self.replace(who, None, dice).unwrap_or_else(|| self.offer(dice)),
            _ => self.offer(dice),
        };
        self.sign(who, Signer::Owner, operation, dice)
    }

    fn by_bot(&mut self, who: usize, dice: &mut Dice) -> Transaction {
        // Mostly one that is in force.
        let bots = &self.owners[who].bots;
        let fit: Vec<usize> = (0..bots.len()).filter(|at| bots[*at].trades).collect();
        let at = match fit.len() {
            0 => dice.index(bots.len()),
            _ if dice.once_in(8) => dice.index(bots.len()),
            fits => fit[dice.index(fits)],
        };
        let slot = bots[at].slot;
        let operation = match dice.below(16) {
            0 => self.cancel(who, dice),
            1 | 2 => {
                let slot = if dice.once_in(4) { self.some_slot(who, dice) } else { slot };
                Some(self.alive(slot, dice))
            }
            // Some are of other slots, or the owner's.
            3..9 => self.replace(who, Some(slot).filter(|_| !dice.once_in(8)), dice),
            9 => Some(self.exact(dice)),
            _ => None,
        };
        let operation = operation.unwrap_or_else(|| self.offer(dice));
        self.sign(who, Signer::Bot(at), operation, dice)
    }

    fn some_slot(&self, who: usize, dice: &mut Dice) -> SessionSlot {
        let bots = &self.owners[who].bots;
        if bots.is_empty() { 1 } else { bots[dice.index(bots.len())].slot }
    }

    /// Caps of which some are used up soon, and heights that come soon.
    fn authorize(&mut self, who: usize, dice: &mut Dice) -> Operation {
        let (key, slot) = (secret(dice), self.owners[who].slots + 1);
        let cap = |dice: &mut Dice| [60_000, 400_000, 5_000_000, 50_000_000][dice.index(4)] + dice.below(1_000);
        let caps = (0..self.assets as u32).filter(|asset| *asset == 0 || !dice.once_in(6)).collect::<Vec<_>>();
        let caps = caps.into_iter().map(|asset| SessionCap { asset: AssetId(asset), units: cap(dice) }).collect();
        let scope = if dice.once_in(6) { SessionScope::Cancel } else { SessionScope::Trade };
        let alive = self.height + self.patience * (4 + dice.below(16));
        let until = alive + self.patience * dice.below(20);
        let terms = SessionTerms { slot, key: key.public(), scope, until, alive, caps };
        let bytes = session_possession_bytes(&self.network, &self.owners[who].address, slot, &terms.key);
        let possession = key.sign(&bytes);
        let bots = &mut self.owners[who].bots;
        bots.push(Bot { key, slot, next: 1, trades: false });
        let forgotten = bots.len().saturating_sub(BOTS);
        bots.drain(..forgotten);
        Operation::Session(Box::new(SessionOperation::Authorize { terms, possession }))
    }

    fn alive(&self, slot: SessionSlot, dice: &mut Dice) -> Operation {
        let through = if dice.once_in(4) { 0 } else { self.height + self.patience * (4 + dice.below(20)) };
        Operation::Session(Box::new(SessionOperation::Alive { slot, through }))
    }

    fn pair(&self, dice: &mut Dice) -> (AssetId, AssetId) {
        let sell = dice.below(self.assets);
        let buy = (sell + 1 + dice.below(self.assets - 1)) % self.assets;
        (AssetId(sell as u32), AssetId(buy as u32))
    }

    fn amount(dice: &mut Dice) -> Amount {
        // Some are too small, and some exceed every cap.
        match dice.below(8) {
            0 => 4_000 + dice.below(400),
            1 => dice.below(HOLDING),
            _ => 5_000 + dice.below(60_000),
        }
    }

    /// Many rest for some blocks.
    fn limit(dice: &mut Dice) -> Price {
        Price::from_f64(dice.between(0.94, 1.12)).expect("in range")
    }

    fn life(&self, dice: &mut Dice) -> Life {
        match dice.below(6) {
            0 => Life::OneBatch,
            1 => Life::Until(self.height + dice.below(6)),
            _ => Life::Rests,
        }
    }

    fn offer(&self, dice: &mut Dice) -> Operation {
        let ((sell, buy), amount, life) = (self.pair(dice), SessionClients::amount(dice), self.life(dice));
        let limit = SessionClients::limit(dice);
        Operation::CreateOffer { sell, buy, amount, limit, life, client: ClientId::NONE }
    }

    fn exact(&self, dice: &mut Dice) -> Operation {
        let ((sell, buy), units) = (self.pair(dice), 4_000 + dice.below(8_000));
        let side = if dice.once_in(2) { ExactSide::Buy } else { ExactSide::Sell };
        let bound = (units as f64 * dice.between(0.8, 1.3)) as u64;
        Operation::exact(sell, buy, side, units, bound)
    }

    fn cancel(&self, who: usize, dice: &mut Dice) -> Option<Operation> {
        let offers = &self.owners[who].offers;
        if offers.is_empty() {
            return None;
        }
        let mut places: Vec<OfferPlace> =
            (0..1 + dice.index(3)).map(|_| offers[dice.index(offers.len())].place).collect();
        places.sort_unstable();
        places.dedup();
        Some(Operation::Cancel(places.into()))
    }

    /// Replaces one of the newer offers, of a slot if one is named: its size goes up or down, and so does its limit.
    fn replace(&self, who: usize, slot: Option<SessionSlot>, dice: &mut Dice) -> Option<Operation> {
        let sees = !dice.once_in(8);
        let is_of = |resting: &Resting| slot.is_none_or(|slot| slot_of(resting.place.offer) == slot);
        let is_fit = |resting: &&Resting| is_of(resting) && (resting.is_seen || !sees);
        let fit: Vec<&Resting> = self.owners[who].offers.iter().rev().filter(is_fit).take(6).collect();
        if fit.is_empty() {
            return None;
        }
        let Resting { place: old, amount: remains, .. } = *fit[dice.index(fit.len())];
        let amount = match dice.below(4) {
            0 => remains,
            1 => remains / 2,
            2 => remains + dice.below(HOLDING / 10),
            _ => remains + dice.below(100_000),
        };
        let limit = SessionClients::limit(dice);
        let (life, client) = (self.life(dice), ClientId::NONE);
        Some(Operation::Replace(Box::new(OfferReplacement { old, remains, amount, limit, life, client })))
    }

    /// What no session key may do, or one of somebody else.
    fn overreach(&mut self, who: usize, dice: &mut Dice) -> Transaction {
        let at = dice.index(self.owners[who].bots.len());
        let other = (who + 1) % self.owners.len();
        let (to, slot) = (self.owners[other].address, self.owners[who].bots[at].slot);
        let operation = match dice.below(5) {
            0 => Operation::Pay { to, asset: AssetId(0), amount: 1 },
            1 => Operation::Session(Box::new(SessionOperation::Revoke { slot })),
            2 => self.authorize(who, dice),
            3 => Operation::CreateAccount { account: self.owners[who].address, key: secret(dice).public() },
            _ => {
                // An offer that a stranger signs.
                let sequence = slot_sequence(slot, self.owners[who].bots[at].next);
                return self.body(who, sequence, self.offer(dice), dice).sign(&self.network, &secret(dice));
            }
        };
        // A new key may have pushed out the oldest.
        let bot = self.owners[who].bots.iter().find(|bot| bot.slot == slot);
        let (sequence, key) =
            bot.map_or((slot_sequence(slot, 1), secret(dice)), |bot| (slot_sequence(slot, bot.next), bot.key.clone()));
        self.body(who, sequence, operation, dice).sign(&self.network, &key)
    }

    fn body(&self, who: usize, sequence: Sequence, operation: Operation, dice: &mut Dice) -> Body {
        let until = if dice.once_in(8) { self.height + 1 + dice.below(4) } else { 50_000 };
        Body { chain: self.chain, account: self.owners[who].address, sequence, until, operation }
    }

    fn sign(&mut self, who: usize, signer: Signer, operation: Operation, dice: &mut Dice) -> Transaction {
        // Some numbers are given to two transactions.
        let step = u64::from(!dice.once_in(12));
        let owner = &mut self.owners[who];
        let (sequence, key) = match signer {
            Signer::Owner => {
                owner.next += step;
                (owner.next - step, owner.keys.last().expect("a key").clone())
            }
            Signer::Bot(at) => {
                let bot = &mut owner.bots[at];
                bot.next += step;
                (slot_sequence(bot.slot, bot.next - step), bot.key.clone())
            }
        };
        let placed = match &operation {
            &Operation::CreateOffer { sell, buy, limit, amount, .. } => Some((sell, buy, limit, amount)),
            Operation::Replace(replace) => Some((replace.old.sell, replace.old.buy, replace.limit, replace.amount)),
            _ => None,
        };
        if let Some((sell, buy, limit, amount)) = placed {
            let place = OfferPlace { sell, buy, limit, offer: sequence };
            owner.offers.push(Resting { place, amount, is_seen: false });
        }
        self.body(who, sequence, operation, dice).sign(&self.network, &key)
    }

    /// Clients read what controls their accounts, their numbers and slots, and what rests of their offers.
    pub fn look(&mut self, ledger: &Ledger) {
        self.height = ledger.height();
        for owner in &mut self.owners {
            let Some(account) = ledger.accounts().get(&owner.address) else { continue };
            let highest = account.window().highest();
            owner.next = owner.next.clamp(highest + 1, highest + 40);
            if let Some(at) = owner.keys.iter().position(|key| account.is_controlled_by(&key.public())) {
                let last = owner.keys.len() - 1;
                owner.keys.swap(at, last);
            }
            owner.slots = account.sessions().map_or(0, |sessions| sessions.slots);
            for bot in &mut owner.bots {
                let session = account.session(bot.slot).filter(|session| session.key == bot.key.public());
                let window = session.map(|session| session.window.highest());
                bot.next = window.map_or(bot.next, |highest| bot.next.clamp(highest + 1, highest + 40));
                let (trade, height) = (SessionScope::Trade, self.height);
                bot.trades = session.is_some_and(|one| one.alive > height && !one.is_closed && one.scope == trade);
            }
            let address = owner.address;
            owner.offers.retain_mut(|resting| {
                let OfferPlace { sell, buy, limit, offer: id } = resting.place;
                let offers = ledger.book().get(Pair { sell, buy });
                let rests = offers.and_then(|offers| offers.get(&Place { limit, account: address, id }));
                resting.amount = rests.unwrap_or(resting.amount);
                resting.is_seen = rests.is_some();
                rests.is_some()
            });
        }
    }
}
