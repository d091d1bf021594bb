//! Clients who list assets, close them, and trade what is listed; they get it wrong, and compete for the room.

use kernel::Dice;
use ledger::{Ledger, ListingPolicy, ListingTerms, Pair, Place};
use primitives::{
    Address, Amount, AssetId, AssetListing, Body, ClientId, Closing, Digest, ExactSide, Height, Life, OfferPlace,
    Operation, PoolKey, PoolOperation, Price, SecretKey, Sequence, Transaction,
};

use crate::controls::{ControlClients, control};

/// Units that each of them holds of each asset of the genesis.
const HOLDING: Amount = 100_000_000;
const SUPPLY_MAX: Amount = 40_000_000;
const LEAST: Amount = 4_096;
/// Symbols of listings. The first ones look like assets of the genesis.
const SYMBOLS: [&str; 8] = ["AO", "a-1", "GBP", "GBP", "JPY", "CHF", "A", "XAU"];
/// Heights from an announcement to the last one of an asset.
const NOTICE: Height = 6;

/// Terms under which few assets have room, and the price doubles soon.
pub(crate) fn listing_terms(fee: Amount) -> ListingTerms {
    let policy = if fee > 0 { ListingPolicy::Priced } else { ListingPolicy::Closed };
    ListingTerms { policy, fees: 20, assets_max: 8, notice: NOTICE }
}

struct Lister {
    key: SecretKey,
    next: Sequence,
    offers: Vec<OfferPlace>,
    /// Shares of pools that it held when it looked.
    shares: Vec<(PoolKey, u64)>,
}

impl Lister {
    fn address(&self) -> Address {
        self.key.public().address()
    }
}

/// See the module text.
pub(crate) struct ListingClients {
    chain: u64,
    network: Digest,
    founded: u64,
    listers: Vec<Lister>,
    /// What the chain told when a client looked: its height, the fees of a listing, and of each asset its issuer, and
    /// whether it closes.
    height: Height,
    fees: u64,
    assets: Vec<(Address, bool)>,
    controls: ControlClients,
}

impl ListingClients {
    /// Clients of a chain with so many assets at its genesis; these others hold some of them.
    pub fn new(founded: u64, (chain, network): (u64, Digest), others: Vec<Address>, dice: &mut Dice) -> ListingClients {
        let mut lister = || {
            let mut seed = [0; 32];
            seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&dice.bits().to_le_bytes()));
            Lister { key: SecretKey::from_seed(seed), next: 1, offers: Vec::new(), shares: Vec::new() }
        };
        let listers: Vec<Lister> = (0..3).map(|_| lister()).collect();
        // Those who trade what is listed are frozen most.
        let own = (0..6).flat_map(|_| listers.iter().map(Lister::address));
        let controls = ControlClients::new(own.chain(others).collect());
        let assets = vec![(Address::default(), false); founded as usize];
        ListingClients { chain, network, founded, listers, height: 0, fees: 20, assets, controls }
    }

    /// Who issues the last asset of the genesis, and may close it.
    pub fn issuer(&self) -> Address {
        self.listers[0].address()
    }

    /// What they hold at the genesis.
    pub fn balances(&self) -> impl Iterator<Item = (Address, AssetId, Amount)> + '_ {
        let all = self.listers.iter().map(Lister::address);
        all.flat_map(|one| (0..self.founded as u32).map(move |asset| (one, AssetId(asset), HOLDING)))
    }

    /// The next transaction. Clients look at a ledger from time to time.
    pub fn draw(&mut self, ledger: &Ledger, dice: &mut Dice) -> Transaction {
        if !dice.once_in(4) {
            self.look(ledger);
        }
        let who = dice.index(self.listers.len());
        let operation = match dice.below(23) {
            20.. => {
                let issuer = self.listers[who].address();
                self.controls.draw(issuer, dice).unwrap_or_else(|| self.offer(dice))
            }
            0..3 => self.list(dice),
            3 | 4 => self.close(who, dice),
            5..8 => self.issue(who, dice),
            8 => Operation::Burn { asset: self.own(who, dice), amount: 1 + dice.below(1_000) },
            9 => {
                Operation::Pay { to: self.somebody(dice), asset: self.any(dice), amount: 1 + dice.below(HOLDING / 20) }
            }
            10..12 => self.pool(who, dice),
            12 => self.cancel(who, dice),
            13 => self.exact(dice),
            _ => self.offer(dice),
        };
        self.sign(who, operation)
    }

    fn sign(&mut self, who: usize, operation: Operation) -> Transaction {
        let lister = &mut self.listers[who];
        if let Operation::CreateOffer { sell, buy, limit, .. } = operation {
            lister.offers.push(OfferPlace { sell, buy, limit, offer: lister.next });
        }
        lister.next += 1;
        let (account, sequence) = (lister.address(), lister.next - 1);
        Body { chain: self.chain, account, sequence, until: 50_000, operation }.sign(&self.network, &lister.key)
    }

    fn somebody(&self, dice: &mut Dice) -> Address {
        self.listers[dice.index(self.listers.len())].address()
    }

    /// Any asset; mostly a listed one, if there is one.
    fn any(&self, dice: &mut Dice) -> AssetId {
        let (all, founded) = (self.assets.len() as u64, self.founded);
        AssetId(
            if all > founded && dice.once_in(2) { founded + dice.below(all - founded) } else { dice.below(all) } as u32
        )
    }

    /// The newest asset that a client issues, or now and then any.
    fn own(&self, who: usize, dice: &mut Dice) -> AssetId {
        let issuer = self.listers[who].address();
        let own: Vec<usize> = (0..self.assets.len()).filter(|at| self.assets[*at].0 == issuer).collect();
        if own.is_empty() || dice.once_in(8) { self.any(dice) } else { AssetId(own[dice.index(own.len())] as u32) }
    }

    /// A listing for what was asked for when the client looked; now and then for something else.
    fn list(&self, dice: &mut Dice) -> Operation {
        Operation::ListAsset(Box::new(AssetListing {
            symbol: SYMBOLS[dice.index(SYMBOLS.len())].into(),
            decimals: dice.below(4) as u8,
            control: control(dice),
            least_units: LEAST,
            supply_max: SUPPLY_MAX,
            document: Digest([dice.below(3) as u8; 32]),
            fees: if dice.once_in(8) { self.fees * 2 } else { self.fees },
        }))
    }

    /// A word about the end of an asset: mostly one that takes it back, if an own one closes.
    fn close(&self, who: usize, dice: &mut Dice) -> Operation {
        let issuer = self.listers[who].address();
        let closing = self.assets.iter().rposition(|(of, closes)| *of == issuer && *closes);
        match closing {
            Some(at) if !dice.once_in(4) => {
                Operation::CloseAsset { asset: AssetId(at as u32), closing: Closing::Revoke }
            }
            _ => Operation::CloseAsset { asset: self.own(who, dice), closing: Closing::Announce },
        }
    }

    /// Several issues of a block may exceed what the listing permits.
    fn issue(&self, who: usize, dice: &mut Dice) -> Operation {
        let (to, asset) = (self.somebody(dice), self.own(who, dice));
        Operation::Issue { to, asset, amount: 1 + dice.below(SUPPLY_MAX / 2) }
    }

    /// Mostly a listed asset and the first one, so that they meet.
    fn pair(&self, dice: &mut Dice) -> (AssetId, AssetId) {
        let sell = self.any(dice);
        if sell.0 > 0 && !dice.once_in(3) {
            return if dice.once_in(2) { (sell, AssetId(0)) } else { (AssetId(0), sell) };
        }
        let others = self.assets.len() as u64 - 1;
        let other = AssetId(((u64::from(sell.0) + 1 + dice.below(others)) % (others + 1)) as u32);
        (sell, other)
    }

    fn offer(&self, dice: &mut Dice) -> Operation {
        let (sell, buy) = self.pair(dice);
        let limit = Price::from_f64(dice.between(0.9, 1.05)).expect("in range");
        let life = match dice.below(6) {
            0 => Life::OneBatch,
            1..4 => Life::Until(self.height + dice.below(8)),
            _ => Life::Rests,
        };
        let amount = LEAST + dice.below(1_000_000);
        Operation::CreateOffer { sell, buy, amount, limit, life, client: ClientId::NONE }
    }

    fn exact(&self, dice: &mut Dice) -> Operation {
        let (sell, buy) = self.pair(dice);
        let units = LEAST + dice.below(8_000);
        let side = if dice.once_in(2) { ExactSide::Buy } else { ExactSide::Sell };
        Operation::exact(sell, buy, side, units, (units as f64 * dice.between(0.8, 1.3)) as u64)
    }

    fn cancel(&self, who: usize, dice: &mut Dice) -> Operation {
        let offers = &self.listers[who].offers;
        if offers.is_empty() { self.offer(dice) } else { Operation::Cancel([offers[dice.index(offers.len())]].into()) }
    }

    fn pool(&self, who: usize, dice: &mut Dice) -> Operation {
        let (one, other) = self.pair(dice);
        let pool = PoolKey { a: one.min(other), b: one.max(other), class: 0 };
        let units = |dice: &mut Dice| 1 + dice.below(HOLDING / 40);
        let held = &self.listers[who].shares;
        Operation::Pool(Box::new(match dice.below(4) {
            0 | 1 => PoolOperation::Open { pool, x: units(dice), y: units(dice) },
            2 if !held.is_empty() => {
                let (pool, shares) = held[dice.index(held.len())];
                PoolOperation::Leave { pool, shares: 1 + dice.below(shares), least_a: 0, least_b: 0 }
            }
            _ => {
                let pool = if held.is_empty() { pool } else { held[dice.index(held.len())].0 };
                let (most_a, most_b) = (units(dice), units(dice));
                PoolOperation::Provide { pool, shares: 1 + dice.below(1 << 20), most_a, most_b }
            }
        }))
    }

    /// Clients read what there is, their next numbers, and what of theirs rests.
    pub fn look(&mut self, ledger: &Ledger) {
        self.controls.look(ledger);
        (self.height, self.fees) = (ledger.height(), ledger.listing_fees());
        let closes = |number: u32| ledger.listings().closes(AssetId(number)).is_some_and(|last| last > self.height);
        self.assets = (0..).zip(ledger.assets()).map(|(number, asset)| (asset.issuer, closes(number))).collect();
        for lister in &mut self.listers {
            let account = lister.address();
            let highest = ledger.accounts().get(&account).map_or(0, |account| account.window().highest());
            lister.next = lister.next.clamp(highest + 1, highest + 40);
            lister.shares = ledger.pools().map_or_else(Vec::new, |pools| pools.holdings_of(account).collect());
            lister.offers.retain(|of| {
                let place = Place { limit: of.limit, account, id: of.offer };
                let offers = ledger.book().get(Pair { sell: of.sell, buy: of.buy });
                offers.is_some_and(|offers| offers.get(&place).is_some())
            });
        }
    }
}
