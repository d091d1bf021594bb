//! The committee's sealing key through whole blocks: signed duties, roots, snapshots, proofs, restarts.

use ledger::{
    Genesis, GenesisError, Ledger, Listing, Member, Membership, Outcome, RULES_NEWEST, Refusal, Restart, RestartError,
    Restore, Roots, Schedule, SealPost, SealStep, SealTerms, Signatures, Snapshot, Terms,
};
use payments::{SealSeed, dealing};
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Operation, RULES_OF_SEALS, SecretKey, SubBlock, Superblock, Transaction,
    ValidatorPost, ValidatorSays,
};

const NETWORK: Digest = Digest([42; 32]);

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

fn node(person: u8) -> SecretKey {
    SecretKey::from_seed([100 + person; 32])
}

fn account(person: u8) -> Address {
    key(person).public().address()
}

fn seed(person: u8, number: u64) -> SealSeed {
    SealSeed([person ^ (number as u8 * 16 + 7); 32])
}

fn genesis(seats: u8) -> Genesis {
    let founder = |person: u8| {
        let (account, key) = (account(person), node(person).public());
        Member { account, key, address: format!("v{person}:1"), stake: 1_000 }
    };
    let terms = Terms { network: NETWORK, committee: seats.into(), minimum_stake: 100, ..Terms::default() };
    Genesis {
        chain: 1,
        fee: 1,
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 2, account(0))],
        balances: (0..seats).map(|person| (account(person), AssetId(0), 10_000)).collect(),
        membership: Some(Membership { terms, reward_pool: 1_000, founders: (0..seats).map(founder).collect() }),
        seals: SealTerms::named("fewest"),
        ..Genesis::default()
    }
}

struct World {
    ledger: Ledger,
    roots: Roots,
}

impl World {
    fn new(genesis: &Genesis) -> World {
        let ledger = Ledger::new(genesis).expect("sound");
        World { roots: Roots::of(&ledger), ledger }
    }

    /// Applies a block; its state, the tries, a restored snapshot and the proof of the keys agree.
    fn block(&mut self, native: Vec<Transaction>) -> Vec<Outcome> {
        let sub_blocks = vec![SubBlock { proposer: 0, native, ..SubBlock::default() }];
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let block =
            Superblock { height, parent, parent_root: self.roots.parts().root(), sub_blocks, ..Superblock::default() };
        let applied = self.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        self.ledger.audit().expect("sound");
        let root = self.roots.apply(&applied.changes);
        assert_eq!(root, Roots::of(&self.ledger).parts().root(), "changes and state are one");
        let chunks: Vec<Vec<u8>> = Snapshot::of(&self.ledger).collect();
        let mut restore = Restore::default();
        chunks.iter().for_each(|chunk| restore.push(chunk).expect("its own"));
        let restored = restore.finish().expect("sound");
        assert!(Snapshot::of(&restored).eq(chunks), "canonical");
        assert_eq!(restored.seals(), self.ledger.seals());
        let proof = self.roots.prove_seals(&self.ledger);
        assert_eq!(proof.verify(&root).expect("holds").cloned(), self.ledger.seals().map(|seals| seals.record()));
        applied.outcomes
    }

    fn refusals(&mut self, native: Vec<Transaction>) -> Vec<Option<Refusal>> {
        self.block(native).iter().map(Outcome::refusal).collect()
    }

    fn duty(&self, person: u8, number: u64, post: &SealPost) -> Transaction {
        let says = ValidatorSays::Seals { key: number, post: post.encode() };
        let (network, until) = (self.ledger.network(), self.ledger.height() + 200);
        ValidatorPost { network, chain: 1, account: account(person), until, says }.sign(&node(person)).expect("here")
    }

    fn register(&self, person: u8, number: u64) -> SealPost {
        let (seed, network) = (seed(person, number), self.ledger.network());
        let possession = seed.possession(&network, number, &account(person));
        SealPost::Register { key: seed.key().public().to_bytes(), possession }
    }

    /// What a correct seat posts at the present step.
    fn post(&self, person: u8) -> (u64, SealPost) {
        let board = self.ledger.seals().and_then(|seals| seals.board()).expect("a key is being made");
        let (number, seed) = (board.number(), seed(person, board.number()));
        let generation = || (board.generation().expect("it began"), board.member(&account(person)).expect("a member"));
        let post = match board.at().0 {
            SealStep::Register => self.register(person, number),
            SealStep::Deal => {
                let (generation, member) = generation();
                SealPost::Deal(dealing(generation.terms(), member, &seed.of_dealing()).encode())
            }
            SealStep::Complain => SealPost::Fine,
            SealStep::Hold => {
                let (generation, member) = generation();
                SealPost::Hold(generation.share(member, &seed.key()).expect("it fits").hold(generation.terms()))
            }
        };
        (number, post)
    }

    fn step(&mut self, people: std::ops::Range<u8>) -> Vec<Option<Refusal>> {
        let duties = people.map(|person| {
            let (number, post) = self.post(person);
            self.duty(person, number, &post)
        });
        let duties = duties.collect();
        self.refusals(duties)
    }

    fn make_key(&mut self) {
        self.block(Vec::new());
        for _ in 0..4 {
            assert_eq!(self.step(0..4), [None; 4]);
        }
        assert!(self.ledger.seals().is_some_and(|seals| seals.board().is_none() && seals.keys().len() == 1));
    }
}

#[test]
fn a_genesis_has_terms_of_seals_only_for_networks_that_can_make_a_key() {
    let fault = |genesis: Genesis| match Ledger::new(&genesis) {
        Err(GenesisError::Seals(why)) => why,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert!(fault(Genesis { rules: RULES_OF_SEALS - 1, ..genesis(4) }).contains("rules"));
    assert!(fault(Genesis { membership: None, ..genesis(4) }).contains("one node"));
    for seats in [1, 33] {
        assert!(fault(genesis(seats)).contains("2 to 32"), "{seats}");
    }
    let with_delay = |delay: u64| {
        let mut genesis = genesis(4);
        let membership = genesis.membership.as_mut().expect("a network");
        membership.terms.schedule = Schedule { epoch_heights: 100, delay };
        genesis
    };
    assert!(fault(with_delay(7)).contains("delay"));
    assert!(Ledger::new(&with_delay(8)).is_ok());
    let plain = Genesis { seals: None, ..genesis(4) };
    assert_ne!(plain.digest(), genesis(4).digest());
    assert!(World::new(&plain).ledger.seals().is_none());
}

#[test]
fn validators_make_a_key_by_free_duties_and_it_acts_eight_heights_later() {
    let mut world = World::new(&genesis(4));
    world.make_key();
    let (height, seals) = (world.ledger.height(), world.ledger.seals().expect("terms"));
    assert_eq!([7, 8].map(|ahead| seals.in_force(height + ahead).map(|key| key.number)), [None, Some(1)]);
    assert_eq!(seals.in_force(height + 8).map(|key| (key.t, key.holders.len())), Some((2, 4)));
    let balance = |person| world.ledger.accounts().get(&account(person)).expect("there").balance(AssetId(0));
    assert!((1..4).all(|person| balance(person) == 10_000), "duties are free");
    let before = seals.record();
    for _ in 0..9 {
        world.block(Vec::new());
    }
    assert_eq!(world.ledger.seals().expect("terms").record(), before, "quiet blocks change nothing");
}

#[test]
fn a_duty_needs_the_validators_key_number_zero_a_seat_and_its_quota() {
    let mut world = World::new(&genesis(4));
    world.block(Vec::new());
    let post = world.register(1, 1);
    let body = |sequence| {
        let operation = Operation::SealDuty { key: 1, post: post.encode() };
        Body { chain: 1, account: account(1), sequence, until: 100, operation }
    };
    let by_account = body(0).sign(&NETWORK, &key(1));
    let numbered = body(1).sign(&NETWORK, &node(1));
    let of_other = {
        let operation = Operation::SealDuty { key: 1, post: post.encode() };
        Body { chain: 1, account: account(2), sequence: 0, until: 100, operation }.sign(&NETWORK, &node(1))
    };
    let long = {
        let operation = Operation::SealDuty { key: 1, post: vec![2; 4_097] };
        Body { chain: 1, account: account(3), sequence: 0, until: 100, operation }.sign(&NETWORK, &node(3))
    };
    let refusals = world.refusals(vec![by_account, numbered, of_other, long]);
    let key = Some(Refusal::NOT_VALIDATORS_KEY);
    assert_eq!(refusals, [key, Some(Refusal::SEAL_POST), key, Some(Refusal::SEAL_POST)]);
    // Eight of a sub-block are looked at: here two of each seat, of which one counts.
    let other = |person| {
        let says = ValidatorSays::Seals { key: 1, post: world.register(person, 1).encode() };
        ValidatorPost { network: NETWORK, chain: 1, account: account(person), until: 77, says }.sign(&node(person))
    };
    let first = (0..4).map(|person| world.duty(person, 1, &world.register(person, 1)));
    let mut native: Vec<Transaction> = first.chain((0..4).map(|person| other(person).expect("here"))).collect();
    native.push(world.duty(0, 1, &SealPost::Fine));
    let outcomes = world.block(native);
    let applied = outcomes[..8].iter().filter(|outcome| **outcome == Outcome::Applied).count();
    assert_eq!((applied, outcomes[8].refusal()), (4, Some(Refusal::OVER_QUOTA)));
    let others = outcomes[..8].iter().filter_map(Outcome::refusal).collect::<Vec<_>>();
    assert_eq!(others, [Refusal::SEQUENCE_CONFLICT; 4], "{outcomes:?}");
    let board = world.ledger.seals().and_then(|seals| seals.board()).expect("it goes on");
    assert_eq!(board.at().0, SealStep::Deal);
}

#[test]
fn before_its_rules_a_duty_is_refused_and_without_terms_it_is_for_nothing() {
    let without = |rules| World::new(&Genesis { rules, seals: None, ..genesis(4) });
    for (rules, why) in [(RULES_OF_SEALS - 1, Refusal::RULES_TO_COME), (RULES_NEWEST, Refusal::NO_SEALS)] {
        let mut world = without(rules);
        let duty = world.duty(0, 1, &world.register(0, 1));
        assert_eq!(world.refusals(vec![duty]), [Some(why)]);
        assert_eq!(world.roots.parts().get(ledger::RootPart::SEALS), None);
    }
}

#[test]
fn a_restarted_network_needs_the_rules_and_makes_a_key_of_its_own() {
    let mut world = World::new(&genesis(4));
    world.make_key();
    let restart = |rules| Restart {
        number: 1,
        snapshot: Snapshot::digest(&world.ledger),
        committee: Vec::new(),
        lane: None,
        rules: Some(rules),
    };
    let (older, same) = (restart(RULES_OF_SEALS - 1), restart(RULES_OF_SEALS));
    let refused = world.ledger.begin_again(&NETWORK, &older, None);
    assert_eq!(refused, Err(RestartError::Seals(RULES_OF_SEALS - 1)));
    world.ledger.begin_again(&NETWORK, &same, None).expect("agreed");
    world.roots = Roots::of(&world.ledger);
    assert!(world.ledger.seals().is_some_and(|seals| seals.keys().is_empty()));
    world.block(Vec::new());
    let board = world.ledger.seals().and_then(|seals| seals.board()).expect("at once");
    assert_eq!(board.number(), 2);
}
