//! The histories of rules 20 and 21: a committee makes sealing keys on the ledger, and blocks open envelopes.
//!
//! Terms of seals come with a genesis and never later, so the first chain begins under rules 20, and the second crosses
//! to rules 21 with a key in force.

use std::collections::BTreeMap;

use ledger::{Genesis, Ledger, Listing, SealPost, SealStep, SealTerms, Snapshot};
use payments::{KeyShare, SealSeed, dealing, false_dealing};
use primitives::{
    AssetId, Body, Enclosure, EnvelopeBytes, Height, Operation, Price, RULES_OF_ENVELOPES, RULES_OF_SEALS, Sequence,
    Superblock, Transaction, ValidatorSays,
};
use sealing::{EnvelopeTerms, Label, OpeningKey, SealShare, SealedText, SealingKey, combine, seal};

use ledger::{Refusal, Schedule};

use crate::charter::{NETWORK, World, account, genesis as plain, key};
use crate::recorded::{History, Seen, upgrade};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
/// Pays for envelopes, and trades nothing.
const PAYER: u8 = 4;
const TRADER: u8 = 5;
const OTHER: u8 = 3;

fn genesis() -> Genesis {
    let mut genesis = Genesis { rules: RULES_OF_SEALS, seals: SealTerms::named("fewest"), ..plain() };
    let membership = genesis.membership.as_mut().expect("a network");
    membership.terms.schedule = Schedule { epoch_heights: 20, delay: 8 };
    genesis.assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, account(0))).to_vec();
    genesis.balances = (0..6).flat_map(|person| [USD, EUR].map(|asset| (account(person), asset, 10_000_000))).collect();
    genesis
}

fn seed(person: u8, number: u64) -> SealSeed {
    SealSeed([person ^ (number as u8 * 16 + 7); 32])
}

/// What each seat has of each key, by number and person.
type Shares = BTreeMap<(u64, u8), KeyShare>;

/// What a seat posts at the present step. Seat 3 deals a wrong share to seat 0, which complains.
fn post(ledger: &Ledger, person: u8, shares: &mut Shares) -> (u64, SealPost) {
    let board = ledger.seals().and_then(|seals| seals.board()).expect("a key is being made");
    let (number, seed) = (board.number(), seed(person, board.number()));
    let generation = || (board.generation().expect("it began"), board.member(&account(person)).expect("a member"));
    let post = match board.at().0 {
        SealStep::Register => {
            let possession = seed.possession(&NETWORK, number, &account(person));
            SealPost::Register { key: seed.key().public().to_bytes(), possession }
        }
        SealStep::Deal => {
            let (generation, member) = generation();
            let victim = board.member(&account(0)).expect("it registered");
            let dealt = match person {
                3 => false_dealing(generation.terms(), member, &seed.of_dealing(), victim),
                _ => dealing(generation.terms(), member, &seed.of_dealing()),
            };
            SealPost::Deal(dealt.encode())
        }
        SealStep::Complain => {
            let (generation, member) = generation();
            let told = |dealer: &u8| !board.has_complained(member, *dealer);
            let wrong = generation.standing().filter(told).find_map(|of| generation.complaint(member, &seed.key(), of));
            wrong.map_or(SealPost::Fine, |wrong| SealPost::Complain(Box::new(wrong)))
        }
        SealStep::Hold => {
            let (generation, member) = generation();
            let share = generation.share(member, &seed.key()).expect("it fits");
            let proof = share.hold(generation.terms());
            shares.insert((number, person), share);
            SealPost::Hold(proof)
        }
    };
    (number, post)
}

fn says(world: &mut World, posts: &[(u8, u64, SealPost)]) -> Vec<Option<Refusal>> {
    let duty = |(person, key, post): &(u8, u64, SealPost)| {
        world.says(*person, ValidatorSays::Seals { key: *key, post: post.encode() })
    };
    let native = posts.iter().map(duty).collect();
    world.apply(native)
}

/// All seats post until there is no board.
fn make_key(world: &mut World, shares: &mut Shares) {
    while let Some(board) = world.ledger.seals().and_then(|seals| seals.board()) {
        let awaits: Vec<u8> = (0..4).filter(|person| board.awaited().any(|one| *one == account(*person))).collect();
        let posts: Vec<_> = awaits.into_iter().map(|person| (person, post(&world.ledger, person, shares))).collect();
        let posts: Vec<_> = posts.into_iter().map(|(person, (number, post))| (person, number, post)).collect();
        assert!(says(world, &posts).iter().all(Option::is_none));
    }
}

/// Blocks follow until a key is in force.
fn await_key(world: &mut World) -> u64 {
    loop {
        let height = world.ledger.height();
        if let Some(key) = world.ledger.seals().and_then(|seals| seals.in_force(height + 1)) {
            return key.number;
        }
        world.until(height + 1);
    }
}

fn lost(world: &mut World, person: u8, number: u64) {
    assert_eq!(says(world, &[(person, number, SealPost::Lost)]), [None]);
}

pub fn of_seals() -> History {
    let mut world = World::new(&genesis());
    let state = Snapshot::of(&world.ledger).collect();
    let mut shares = Shares::new();
    world.until(1);
    let (number, first) = post(&world.ledger, 1, &mut shares);
    let early = says(&mut world, &[(1, number, SealPost::Fine), (0, number + 1, first)]);
    assert_eq!(early, [Some(Refusal::OTHER_SEAL_STEP), Some(Refusal::OTHER_SEAL_KEY)]);
    make_key(&mut world, &mut shares);
    let number = await_key(&mut world);
    let envelope = letter(&world, number, 1, Vec::new());
    assert_eq!(world.apply(vec![envelope]), [Some(Refusal::RULES_TO_COME)]);
    // Below t + f holders the key ends, and the seats make another.
    lost(&mut world, 1, number);
    lost(&mut world, 2, number);
    make_key(&mut world, &mut shares);
    await_other(&mut world, number);
    let height = world.ledger.height();
    world.until(height + 30);
    (state, world.blocks)
}

fn order(sequence: Sequence, sell: AssetId, within: Option<Enclosure>) -> Transaction {
    let buy = if sell == USD { EUR } else { USD };
    let operation = Operation::offer(sell, buy, 10_000, Price::from_f64(0.9).expect("in range"));
    let body = Body { chain: 1, account: account(TRADER), sequence, until: 200, operation };
    match within {
        Some(within) => body.sign_sealed(&NETWORK, &within, &key(TRADER)),
        None => body.sign(&NETWORK, &key(TRADER)),
    }
}

fn within(sequence: Sequence) -> Enclosure {
    Enclosure { payer: account(PAYER), sequence }
}

fn sealed(world: &World, number: u64, terms: &EnvelopeTerms, inside: Vec<Transaction>) -> EnvelopeBytes {
    let keys = world.ledger.seals().expect("terms").keys();
    let of = keys.iter().find(|key| key.number == number).unwrap_or(&keys[0]);
    let to = SealingKey::parse(&of.group).expect("a point");
    seal(&to, terms, &SealedText(inside), &[terms.sequence as u8; 32]).expect("it fits").to_bytes(number)
}

/// An envelope of the payer.
fn letter(world: &World, number: u64, sequence: Sequence, inside: Vec<Transaction>) -> Transaction {
    ending(world, number, sequence, world.ledger.height() + 100, inside)
}

fn ending(world: &World, number: u64, sequence: Sequence, until: Height, inside: Vec<Transaction>) -> Transaction {
    let (signer, payer) = (key(PAYER), account(PAYER));
    let terms = EnvelopeTerms { network: NETWORK, signer: signer.public(), key: number, payer, sequence, until };
    let operation = Operation::Sealed(Box::new(sealed(world, number, &terms, inside)));
    Body { chain: 1, account: payer, sequence, until, operation }.sign(&NETWORK, &signer)
}

/// Applies a block with the keys that t seats make together.
fn open(world: &mut World, shares: &Shares, native: Vec<Transaction>) -> Vec<Option<Refusal>> {
    let mut block: Superblock = world.block(native);
    let keys = world.ledger.seals().expect("terms").keys().to_vec();
    let numbers: Vec<u64> = keys.iter().filter(|key| key.is_in_force(block.height)).map(|key| key.number).collect();
    let opening = world.ledger.opening(&block, None, &numbers);
    let key_of = |number: u64, label: &Label| -> OpeningKey {
        let of = keys.iter().find(|key| key.number == number).expect("in force");
        let holds = |place: u8| of.holders.iter().find(|one| one.place == place).map(|one| one.account);
        let share = |(_, share): (&(u64, u8), &KeyShare)| {
            let own = SealShare::parse(&share.to_bytes()).expect("a number");
            (share.member(), vec![own.of(label)])
        };
        let of_key = shares.iter().filter(|((of, _), share)| *of == number && holds(share.member()).is_some());
        let parts: Vec<_> = of_key.map(share).take(of.t.into()).collect();
        combine(&parts).expect("enough")[0]
    };
    block.openings = opening.opened.iter().map(|one| key_of(one.key, &one.label).0).collect();
    world.apply_block(block)
}

pub fn of_envelopes() -> History {
    let mut world = World::new(&genesis());
    let state = Snapshot::of(&world.ledger).collect();
    let mut shares = Shares::new();
    world.until(1);
    make_key(&mut world, &mut shares);
    let number = await_key(&mut world);
    let early = letter(&world, number, 1, Vec::new());
    assert_eq!(world.apply(vec![early]), [Some(Refusal::RULES_TO_COME)]);
    upgrade(&mut world, RULES_OF_ENVELOPES);
    opens(&mut world, &shares, number);
    // With another key beside: the old one opens until it ends.
    lost(&mut world, 1, number);
    lost(&mut world, 2, number);
    make_key(&mut world, &mut shares);
    let ended = await_other(&mut world, number);
    let stale = letter(&world, number, 9, Vec::new());
    let fresh = letter(&world, ended, 10, vec![order(4, USD, Some(within(10)))]);
    assert_eq!(open(&mut world, &shares, vec![stale, fresh]), [Some(Refusal::SEALED_KEY), None]);
    let height = world.ledger.height();
    world.until(height + 20);
    (state, world.blocks)
}

fn await_other(world: &mut World, number: u64) -> u64 {
    loop {
        let next = await_key(world);
        let height = world.ledger.height();
        if next != number && world.ledger.seals().is_some_and(|seals| seals.opening(number, height + 1).is_none()) {
            return next;
        }
        world.until(height + 1);
    }
}

/// A sealed order meets a plain one; garbage pays; what is not bound, or is no order, counts nowhere; what has ended,
/// or was opened, stays closed.
fn opens(world: &mut World, shares: &Shares, number: u64) {
    let height = world.ledger.height() + 1;
    let inside = vec![
        order(1, USD, Some(within(1))),
        order(2, USD, None),
        Body { chain: 1, account: account(TRADER), sequence: 3, until: 200, operation: pays() }.sign_sealed(
            &NETWORK,
            &within(1),
            &key(TRADER),
        ),
    ];
    let first = letter(world, number, 1, inside);
    let meets = Operation::offer(EUR, USD, 20_000, Price::from_f64(0.9).expect("in range"));
    let meets = world.sign(OTHER, meets);
    let native =
        vec![first.clone(), meets, ending(world, number, 2, height - 1, Vec::new()), garbage(world, number, 3)];
    assert_eq!(open(world, shares, native), [None, None, Some(Refusal::ENDED), None]);
    let wrong = letter(world, number + 1, 4, Vec::new());
    assert_eq!(open(world, shares, vec![first, wrong]), [Some(Refusal::NAME_OPENED), Some(Refusal::SEALED_KEY)]);
    let far = ending(world, number, 5, world.ledger.height() + 258, Vec::new());
    let empty = letter(world, number, 6, Vec::new());
    let copies = vec![far, empty.clone(), empty];
    assert_eq!(open(world, shares, copies), [Some(Refusal::SEALED_TOO_LATE), None, Some(Refusal::DUPLICATE)]);
}

fn pays() -> Operation {
    Operation::Pay { to: account(OTHER), asset: USD, amount: 10 }
}

/// An envelope whose box is of another one.
fn garbage(world: &World, number: u64, sequence: Sequence) -> Transaction {
    let (one, other) = (letter(world, number, sequence, Vec::new()), letter(world, number, sequence + 50, Vec::new()));
    let (Operation::Sealed(bytes), Operation::Sealed(of_other)) = (&one.body.operation, &other.body.operation) else {
        unreachable!("an envelope")
    };
    let mixed = EnvelopeBytes::new(number, bytes.point, of_other.sealed().to_vec().into()).expect("a size");
    let operation = Operation::Sealed(Box::new(mixed));
    Body { operation, ..one.body }.sign(&NETWORK, &key(PAYER))
}

#[test]
fn the_chain_of_rules_20_makes_two_keys() {
    let refused = [Refusal::OTHER_SEAL_STEP, Refusal::OTHER_SEAL_KEY, Refusal::RULES_TO_COME];
    Seen::from(RULES_OF_SEALS, RULES_OF_SEALS).has(&["seal_duty"], &refused);
}

#[test]
fn the_chain_of_rules_21_opens_envelopes_and_crosses_their_first_height() {
    let refused = [
        Refusal::RULES_TO_COME,
        Refusal::ENDED,
        Refusal::NAME_OPENED,
        Refusal::SEALED_KEY,
        Refusal::SEALED_TOO_LATE,
        Refusal::DUPLICATE,
        Refusal::NOT_SEALABLE,
        Refusal::BAD_SIGNATURE,
    ];
    Seen::of(RULES_OF_ENVELOPES).has(&["sealed", "create_offer", "seal_duty"], &refused);
}
