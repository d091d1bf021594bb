//! Simulated clients: valid transactions, and every kind of invalid one.

use kernel::Dice;
use ledger::{
    Genesis, Ledger, Limits, Listing, ListingPolicy, ListingTerms, Member, Membership, Pair, Place, PoolTerms,
    Schedule, Terms,
};
use primitives::{
    Address, AssetControl, AssetId, Body, ClientId, Committed, Contradiction, Digest, Evidence, ExactSide, Fraction,
    Life, OfferPlace, Operation, PoolKey, PoolOperation, Price, Scope, SecretKey, Sequence, SignedBy, Stake,
    Transaction, ValidatorPost, ValidatorSays,
};

use crate::ethereum::EthereumClients;
use crate::listings::{ListingClients, listing_terms};
use crate::policies::PolicyClients;
use crate::proposals::ProposalClients;
use crate::sessions::SessionClients;

pub(crate) const CHAIN: u64 = 4_242;
const HOLDING: u64 = 100_000_000;
const NETWORK: Digest = Digest([42; 32]);
/// So few that listed assets take all of their part. The others take less than half.
const OPEN_PAIRS: u32 = 48;
const RESTING_OFFERS: u64 = 640;
/// Number of clients that stake at the start.
const FOUNDERS: usize = 4;

struct Person {
    address: Address,
    /// All keys it has had; the last one controls the account unless a change was lost or refused.
    keys: Vec<SecretKey>,
    next: Sequence,
    /// Keys of the validators that it has run; the last one is running.
    nodes: Vec<SecretKey>,
    /// Cancellations of the offers that it made.
    offers: Vec<Operation>,
    /// Shares of pools that it held when it looked.
    shares: Vec<(PoolKey, u64)>,
}

/// A transaction, and whether every node must refuse it.
pub(crate) struct Drawn {
    pub transaction: Transaction,
    pub must_refuse: bool,
}

pub(crate) struct Clients {
    people: Vec<Person>,
    assets: u64,
    /// The newest committee that clients know of, and its epoch.
    committee: (u64, Vec<Member>),
    /// The newest height that clients know of.
    height: u64,
    /// Every transaction ever sent, for replays.
    sent: Vec<Transaction>,
    pub ethereum: EthereumClients,
    sessions: SessionClients,
    policies: PolicyClients,
    listings: ListingClients,
    /// Those who vote, if any do.
    proposals: Option<ProposalClients>,
}

fn key(dice: &mut Dice) -> SecretKey {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&dice.bits().to_le_bytes()));
    SecretKey::from_seed(seed)
}

impl Clients {
    pub fn new(people: u64, assets: u64, dice: &mut Dice) -> Clients {
        let person = |_| {
            let (address_key, node) = (key(dice), key(dice));
            let address = address_key.public().address();
            Person {
                address,
                keys: vec![address_key],
                next: 1,
                nodes: vec![node],
                offers: Vec::new(),
                shares: Vec::new(),
            }
        };
        let people: Vec<Person> = (0..people).map(person).collect();
        let ethereum = EthereumClients::new(people.iter().map(|person| person.address));
        let sessions = SessionClients::new(3, assets, (CHAIN, NETWORK), dice);
        let policies = PolicyClients::new(2, assets, (CHAIN, NETWORK), dice);
        let mut others: Vec<Address> = ethereum.balances().map(|(account, ..)| account).collect();
        others.dedup();
        let listings = ListingClients::new(assets, (CHAIN, NETWORK), others, dice);
        let (committee, height, sent) = ((0, Vec::new()), 0, Vec::new());
        let proposals = None;
        Clients { people, assets, committee, height, sent, ethereum, sessions, policies, listings, proposals }
    }

    /// From the genesis on validators propose and vote.
    pub fn voting(self) -> Clients {
        Clients { proposals: Some(ProposalClients { issuer: self.listings.issuer() }), ..self }
    }

    /// Every client holds some of every asset; the first issues all assets but the last, which one may close who lists
    /// others, and which it controls.
    pub fn genesis(&self, fee: u64) -> Genesis {
        let assets = self.assets;
        let issuer = |asset| if asset + 1 == assets { self.listings.issuer() } else { self.people[0].address };
        let holdings = |person: &Person| {
            (0..assets).map(|asset| (person.address, AssetId(asset as u32), HOLDING)).collect::<Vec<_>>()
        };
        Genesis {
            chain: CHAIN,
            fee,
            epsilon: Fraction::power_of_two(15),
            mu: Fraction::power_of_two(10),
            assets: (0..assets).map(|asset| Listing::new(format!("A{asset}"), 2, issuer(asset))).collect(),
            balances: self
                .people
                .iter()
                .flat_map(holdings)
                .chain(self.ethereum.balances())
                .chain(self.sessions.balances())
                .chain(self.policies.balances())
                .chain(self.listings.balances())
                .collect(),
            limits: Limits { open_pairs: OPEN_PAIRS, resting_offers: RESTING_OFFERS, ..crate::ethereum::limits(3) },
            listings: self.listing_terms(fee),
            controls: vec![(AssetId(assets as u32 - 1), AssetControl::Recoverable)],
            membership: Some(self.membership()),
            pools: Some(PoolTerms::default()),
            ..Genesis::default()
        }
    }

    /// Where validators vote, mostly they list.
    fn listing_terms(&self, fee: u64) -> ListingTerms {
        let terms = listing_terms(fee);
        let is_voted = self.proposals.is_some() && self.people.len().is_multiple_of(2);
        ListingTerms { policy: if is_voted { ListingPolicy::Voted } else { terms.policy }, ..terms }
    }

    /// Epochs of five blocks, so that a short run has several.
    fn membership(&self) -> Membership {
        let terms = Terms {
            network: NETWORK,
            schedule: Schedule { epoch_heights: 5, delay: 2 },
            committee: 3,
            minimum_stake: 1_000,
            unbonding_epochs: 1,
            reward: 77,
            slash: Fraction::power_of_two(3),
        };
        let founder = |person: &Person| {
            let (account, key) = (person.address, person.nodes[0].public());
            Member { account, key, address: String::new(), stake: 10_000 }
        };
        let founders = self.people.iter().take(FOUNDERS).map(founder).collect();
        Membership { terms, reward_pool: 1_500, founders }
    }

    /// The next transaction, by clients that look at the ledger from time to time.
    pub fn draw(&mut self, ledger: &Ledger, dice: &mut Dice) -> Drawn {
        if dice.once_in(4) {
            self.look(ledger);
        }
        let drawn = match dice.below(12) {
            _ if self.proposals.is_some() && dice.once_in(3) => self.vote(ledger, dice),
            _ if dice.once_in(6) => self.present(ledger, dice),
            _ if dice.once_in(4) => {
                let (transaction, must_refuse) = self.policies.draw(ledger, dice);
                Drawn { transaction, must_refuse }
            }
            _ if dice.once_in(3) => Drawn { transaction: self.listings.draw(ledger, dice), must_refuse: false },
            0..6 => {
                let (transaction, must_refuse) = self.sessions.draw(ledger, dice);
                Drawn { transaction, must_refuse }
            }
            6 => self.bad(dice),
            _ => self.sensible(dice),
        };
        self.sent.push(drawn.transaction.clone());
        drawn
    }

    /// Somebody proposes or votes.
    fn vote(&mut self, ledger: &Ledger, dice: &mut Dice) -> Drawn {
        let people: Vec<Address> = self.people.iter().map(|person| person.address).collect();
        let voters = self.proposals.as_ref().expect("validators vote here");
        let (who, operation) = voters.draw(ledger, &people, dice);
        Drawn { transaction: self.sign(who, operation, dice), must_refuse: false }
    }

    fn sensible(&mut self, dice: &mut Dice) -> Drawn {
        let who = dice.index(self.people.len());
        let operation = match dice.below(24) {
            20 | 21 => self.stake(who, dice),
            22 => Operation::Unstake { units: [1, 500, 5_000, 10_000][dice.index(4)] },
            23 if dice.once_in(4) && !self.committee.1.is_empty() => self.accuse(dice),
            0..5 => self.pay(who, dice),
            5..8 if !self.people[who].offers.is_empty() => {
                // Sometimes several offers, and sometimes one that another transaction cancels, too.
                let offers = &self.people[who].offers;
                let mut places: Vec<OfferPlace> =
                    (0..1 + dice.index(3)).flat_map(|_| named(&offers[dice.index(offers.len())])).collect();
                places.sort_unstable();
                places.dedup();
                Operation::Cancel(places.into())
            }
            8 => self.issue(dice),
            9 => Operation::Burn { asset: self.asset(dice), amount: 1 + dice.below(1_000) },
            10 => {
                let new = key(dice).public();
                Operation::CreateAccount { account: new.address(), key: new }
            }
            11 => self.rotate(who, dice),
            12 | 13 => self.pool(who, dice),
            _ => self.offer(dice),
        };
        Drawn { transaction: self.sign(who, operation, dice), must_refuse: false }
    }

    fn asset(&self, dice: &mut Dice) -> AssetId {
        AssetId(dice.below(self.assets) as u32)
    }

    fn pay(&self, who: usize, dice: &mut Dice) -> Operation {
        let other = (who + 1 + dice.index(self.people.len() - 1)) % self.people.len();
        // One in ten exceeds every balance.
        let amount = if dice.once_in(10) { HOLDING * 90 } else { 1 + dice.below(HOLDING / 3) };
        Operation::Pay { to: self.people[other].address, asset: self.asset(dice), amount }
    }

    fn issue(&self, dice: &mut Dice) -> Operation {
        let to = self.people[dice.index(self.people.len())].address;
        Operation::Issue { to, asset: self.asset(dice), amount: 1 + dice.below(1_000_000) }
    }

    fn rotate(&mut self, who: usize, dice: &mut Dice) -> Operation {
        let next = key(dice);
        let operation = Operation::CreateAccount { account: self.people[who].address, key: next.public() };
        self.people[who].keys.push(next);
        operation
    }

    /// Registers a validator, adds to the stake, or changes to another node.
    fn stake(&mut self, who: usize, dice: &mut Dice) -> Operation {
        let person = &mut self.people[who];
        if dice.once_in(4) {
            person.nodes.push(key(dice));
        }
        let node = person.nodes.last().expect("a node");
        let (units, place) = ([0, 900, 5_000, 20_000][dice.index(4)], format!("10.0.0.{who}:{}", 1 + dice.below(2)));
        Operation::Stake(Box::new(Stake::new(units, place, CHAIN, &person.address, node)))
    }

    /// The presence of somebody's node for the next draw, which may be signed by an earlier node.
    fn present(&self, ledger: &Ledger, dice: &mut Dice) -> Drawn {
        let person = &self.people[dice.index(self.people.len())];
        let node = &person.nodes[if dice.once_in(8) { 0 } else { person.nodes.len() - 1 }];
        let epoch = ledger.schedule().last_drawn(ledger.height() + 1) + 1;
        let account = person.address;
        let says = ValidatorSays::Present { epoch };
        let presence = ValidatorPost { network: NETWORK, chain: CHAIN, account, until: 50_000, says };
        Drawn { transaction: presence.sign(node).expect("the key is here"), must_refuse: false }
    }

    /// Makes evidence of a validator that contradicts itself, and accuses it.
    fn accuse(&self, dice: &mut Dice) -> Operation {
        let (epoch, committee) = (self.committee.0, &self.committee.1);
        let member = dice.index(committee.len());
        let mut nodes = self.people.iter().flat_map(|person| &person.nodes);
        let node =
            nodes.find(|node| node.public() == committee[member].key).expect("the nodes of all clients are known");
        let (scope, superblock) = (Scope { network: NETWORK, epoch }, Digest([1; 32]));
        // Some make the same statement twice.
        let roots = [Digest([2; 32]), Digest([2 + dice.below(2) as u8; 32])];
        let contradiction = Contradiction::Commits(roots.map(|root| {
            let signature = node.sign(&scope.commit(9, &superblock, &root).0);
            Committed { superblock, root, signature }
        }));
        Operation::Accuse(Box::new(Evidence { epoch, member: member as u8, height: 9, contradiction }))
    }

    /// Opens one of few pools, provides to one that may not exist, or leaves one with shares that it may have no
    /// longer.
    fn pool(&self, who: usize, dice: &mut Dice) -> Operation {
        let (a, class) = (dice.below(2) as u32, dice.below(2) as u8);
        let pool =
            PoolKey { a: AssetId(a), b: AssetId(a + 1 + dice.below(self.assets - 1 - u64::from(a)) as u32), class };
        let units = |dice: &mut Dice| 1 + dice.below(HOLDING / 20);
        let held = &self.people[who].shares;
        Operation::Pool(Box::new(match dice.below(4) {
            0 => PoolOperation::Open { pool, x: units(dice), y: units(dice) },
            1 if !held.is_empty() => {
                let (pool, shares) = held[dice.index(held.len())];
                let shares = if dice.once_in(3) { shares } else { 1 + dice.below(shares) };
                PoolOperation::Leave { pool, shares, least_a: 0, least_b: 0 }
            }
            _ => {
                let shares = 1 + dice.below(1 << 22);
                PoolOperation::Provide { pool, shares, most_a: units(dice), most_b: units(dice) }
            }
        }))
    }

    /// An exact order, some too small, some for more than there is, some beyond the rate.
    fn exact(&self, dice: &mut Dice) -> Operation {
        let sell = dice.below(self.assets);
        let buy = (sell + 1 + dice.below(self.assets - 1)) % self.assets;
        let units = if dice.once_in(4) { 1 + dice.below(HOLDING / 10) } else { 4_000 + dice.below(8_000) };
        let side = if dice.once_in(2) { ExactSide::Buy } else { ExactSide::Sell };
        let bound = (units as f64 * dice.between(0.8, 1.3)) as u64;
        let (sell, buy) = (AssetId(sell as u32), AssetId(buy as u32));
        Operation::exact(sell, buy, side, units, bound)
    }

    fn offer(&self, dice: &mut Dice) -> Operation {
        if dice.once_in(8) {
            return self.exact(dice);
        }
        let sell = dice.below(self.assets);
        let buy = (sell + 1 + dice.below(self.assets - 1)) % self.assets;
        let limit = Price::from_f64(dice.between(0.9, 1.05)).expect("in range");
        // Some are too small, and so are some remainders.
        let amount = if dice.once_in(4) { 4_000 + dice.below(4_000) } else { 1 + dice.below(HOLDING / 10) };
        let life = match dice.below(6) {
            0 => Life::OneBatch,
            1 | 2 => Life::Until(self.height + dice.below(6)),
            _ => Life::Rests,
        };
        let (sell, buy) = (AssetId(sell as u32), AssetId(buy as u32));
        Operation::CreateOffer { sell, buy, amount, limit, life, client: ClientId::NONE }
    }

    /// Signs with the newest key or an older one, because clients do not know whether the change took effect.
    fn sign(&mut self, who: usize, operation: Operation, dice: &mut Dice) -> Transaction {
        let person = &mut self.people[who];
        if let Operation::CreateOffer { sell, buy, limit, .. } = operation {
            person.offers.push(Operation::cancel(sell, buy, limit, person.next));
        }
        let body = Body { chain: CHAIN, account: person.address, sequence: person.next, until: 50_000, operation };
        person.next += 1;
        let key = if dice.once_in(10) { dice.index(person.keys.len()) } else { person.keys.len() - 1 };
        body.sign(&NETWORK, &person.keys[key])
    }

    fn bad(&mut self, dice: &mut Dice) -> Drawn {
        let Drawn { mut transaction, .. } = self.sensible(dice);
        if dice.once_in(3) && !self.sent.is_empty() {
            let transaction = self.sent[dice.index(self.sent.len())].clone();
            return Drawn { transaction, must_refuse: false };
        }
        let account = transaction.body.account;
        let person = self.people.iter().find(|person| person.address == account).expect("a person");
        let body = &mut transaction.body;
        let asset = AssetId(0);
        match dice.below(7) {
            0 => {
                if let SignedBy::Key { signature, .. } = &mut transaction.signed_by {
                    signature.0[dice.index(64)] ^= 1 << dice.below(8);
                }
                return Drawn { transaction, must_refuse: true };
            }
            1 => body.chain += 1,
            2 => body.sequence += 1 << 40,
            3 => body.operation = Operation::Burn { asset: AssetId(1_000), amount: 1 },
            4 => body.operation = Operation::Burn { asset, amount: 0 },
            5 => body.operation = Operation::Pay { to: account, asset, amount: 1 },
            _ => body.operation = Operation::Burn { asset, amount: u64::MAX },
        }
        let transaction = transaction.body.sign(&NETWORK, person.keys.last().expect("a key"));
        Drawn { transaction, must_refuse: true }
    }

    /// Clients read which key controls their account, the next sequence number, and their resting offers.
    pub fn look(&mut self, ledger: &Ledger) {
        self.sessions.look(ledger);
        self.policies.look(ledger);
        self.listings.look(ledger);
        self.height = ledger.height();
        let epoch = ledger.validators().last_epoch();
        self.committee = (epoch, ledger.committee(epoch).unwrap_or_default().to_vec());
        for person in &mut self.people {
            let Some(account) = ledger.accounts().get(&person.address) else { continue };
            let highest = account.window().highest();
            person.next = person.next.clamp(highest + 1, highest + 40);
            if let Some(at) = person.keys.iter().position(|key| account.is_controlled_by(&key.public())) {
                let last = person.keys.len() - 1;
                person.keys.swap(at, last);
            }
            let address = person.address;
            person.shares = ledger.pools().map_or_else(Vec::new, |pools| pools.holdings_of(address).collect());
            person.offers.retain(|cancel| rests(ledger, address, cancel));
        }
    }
}

/// The offers that a cancel names.
fn named(cancel: &Operation) -> Vec<OfferPlace> {
    if let Operation::Cancel(places) = cancel { places.to_vec() } else { Vec::new() }
}

fn rests(ledger: &Ledger, account: Address, cancel: &Operation) -> bool {
    let Operation::Cancel(places) = cancel else { return false };
    let rests = |&OfferPlace { sell, buy, limit, offer }: &OfferPlace| {
        let place = Place { limit, account, id: offer };
        ledger.book().get(Pair { sell, buy }).is_some_and(|offers| offers.get(&place).is_some())
    };
    places.iter().any(rests)
}
