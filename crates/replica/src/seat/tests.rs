//! Four seats on a ledger: keys are made, crashes at each point change nothing, lost disks are told.

use ledger::{Genesis, Listing, Member, Membership, SealTerms, Signatures, Terms};
use primitives::{Fraction, SecretKey, SubBlock, Superblock};

use super::*;

pub(crate) const NETWORK: Digest = Digest([7; 32]);

pub(crate) fn key(index: u8) -> SecretKey {
    SecretKey::from_seed([index + 1; 32])
}

pub(crate) fn founded() -> Ledger {
    let founder = |index: u8| {
        let account = key(100 + index).public().address();
        Member { account, key: key(index).public(), address: String::new(), stake: 100 }
    };
    let terms = Terms { network: NETWORK, committee: 4, minimum_stake: 1, ..Terms::default() };
    let membership = Some(Membership { terms, reward_pool: 0, founders: (0..4).map(founder).collect() });
    let assets = vec![Listing::new("USD", 2, key(9).public().address())];
    let (mu, seals) = (Fraction::power_of_two(10), SealTerms::named("fewest"));
    let rules = primitives::RULES_OF_SEALS;
    Ledger::new(&Genesis { rules, chain: 1, mu, assets, membership, seals, ..Genesis::default() }).expect("sound")
}

fn apply(ledger: &mut Ledger, native: Vec<Transaction>) {
    let sub_blocks = vec![SubBlock { proposer: 0, native, ..SubBlock::default() }];
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
    ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
}

/// A node with a seat: what its disk has, and what its process has.
pub(crate) struct Node {
    index: u8,
    pub(crate) disk: SeatSecrets,
    seat: SealSeat,
    pool: Mempool,
    mistake: Planted<SeatMistake>,
    draws: u8,
}

impl Node {
    fn new(index: u8) -> Node {
        let seat = SealSeat::new(Arc::new(key(index)), SeatSecrets::default());
        let (disk, pool) = (SeatSecrets::default(), Mempool::new(100));
        Node { index, disk, seat, pool, mistake: Planted::NOTHING, draws: 0 }
    }

    fn with_mistake(mut self, mistake: SeatMistake) -> Node {
        self.mistake = Some(mistake).into();
        self.restart();
        self
    }

    /// The process is killed, and starts with what its disk has.
    fn restart(&mut self) {
        self.seat = SealSeat::new(Arc::new(key(self.index)), self.disk.clone()).with_mistake(self.mistake);
        self.pool = Mempool::new(100);
    }

    /// A tick; the process may be killed before or after its secrets are durable. Returns what it posts.
    fn tick(&mut self, ledger: &Ledger, killed: Option<bool>) -> Vec<Transaction> {
        self.draws += 1;
        let fresh = [self.draws ^ self.index.wrapping_mul(50); 32];
        let done = self.seat.work(ledger).map(|work| work.perform(fresh));
        let took = done.is_some_and(|done| self.seat.take(done, ledger));
        let changes = self.seat.erase(ledger, ledger.height()) || took;
        if killed == Some(false) {
            self.restart();
            return Vec::new();
        }
        if changes {
            self.disk = self.seat.secrets().clone();
        }
        if killed == Some(true) {
            self.restart();
            return Vec::new();
        }
        self.seat.sign((NETWORK, 1), ledger.height());
        self.seat.post(ledger, &mut self.pool, 0);
        self.pool.take(9).into_iter().map(|entry| entry.transaction).collect()
    }
}

fn round(ledger: &mut Ledger, nodes: &mut [Node]) {
    let posts = nodes.iter_mut().flat_map(|node| node.tick(ledger, None)).collect();
    apply(ledger, posts);
    for node in nodes {
        node.pool = Mempool::new(100);
    }
}

pub(crate) fn rounds(ledger: &mut Ledger, nodes: &mut [Node], count: u64) {
    (0..count).for_each(|_| round(ledger, nodes));
}

pub(crate) fn nodes() -> Vec<Node> {
    (0..4).map(Node::new).collect()
}

/// Whether each seat that the state says holds the key has the share.
fn all_hold(ledger: &Ledger, nodes: &[Node]) -> bool {
    let key = ledger.seals().and_then(|seals| seals.keys().last()).expect("a key");
    key.holders.iter().all(|holder| {
        let node = nodes.iter().find(|node| self::key(100 + node.index).public().address() == holder.account);
        let share = node.and_then(|node| node.seat.share(&NETWORK, key.number, holder.place));
        share.is_some_and(|share| share.public().to_bytes() == holder.key)
    })
}

#[test]
fn four_seats_make_a_key_and_each_has_its_share() {
    let (mut ledger, mut nodes) = (founded(), nodes());
    rounds(&mut ledger, &mut nodes, 9);
    let seals = ledger.seals().expect("terms");
    assert_eq!((seals.keys().len(), seals.keys()[0].holders.len(), seals.board()), (1, 4, None));
    assert!(all_hold(&ledger, &nodes) && nodes.iter().all(|node| node.seat.is_content(&ledger)));
    assert!(nodes.iter().all(|node| matches!(node.disk.secrets.get(&1), Some(SeatSecret::Share(_)))), "no seed stays");
}

/// What a seat deals first and after a crash between signing and the block.
fn dealings(mistake: Option<SeatMistake>) -> [Vec<Transaction>; 2] {
    let (mut ledger, mut nodes) = (founded(), nodes());
    nodes[0] = mistake.map_or(Node::new(0), |mistake| Node::new(0).with_mistake(mistake));
    rounds(&mut ledger, &mut nodes, 2);
    assert_eq!(ledger.seals().and_then(Seals::board).map(|board| board.at().0), Some(SealStep::Deal));
    let first = nodes[0].tick(&ledger, None);
    nodes[0].restart();
    [first, nodes[0].tick(&ledger, None)]
}

#[test]
fn a_seat_that_was_killed_deals_the_same_again_and_one_that_draws_anew_is_seen() {
    let [first, again] = dealings(None);
    assert!(first.len() == 1 && first == again);
    let [first, again] = dealings(Some(SeatMistake::DealsAnew));
    assert_ne!(first, again);
}

#[test]
fn killed_at_any_point_a_seat_takes_part_and_holds_its_share() {
    for at in 0..6 {
        for is_durable in [false, true] {
            let (mut ledger, mut nodes) = (founded(), nodes());
            rounds(&mut ledger, &mut nodes, at);
            nodes[0].tick(&ledger, Some(is_durable));
            rounds(&mut ledger, &mut nodes, 9);
            assert_eq!(ledger.seals().map(|seals| seals.keys()[0].holders.len()), Some(4), "{at} {is_durable}");
            assert!(all_hold(&ledger, &nodes), "{at} {is_durable}");
        }
    }
}

#[test]
fn a_lost_disk_is_told_and_a_seat_that_hides_it_is_seen() {
    for (mistake, holders) in [(None, 3), (Some(SeatMistake::HidesLoss), 4)] {
        let (mut ledger, mut nodes) = (founded(), nodes());
        nodes[2] = mistake.map_or(Node::new(2), |mistake| Node::new(2).with_mistake(mistake));
        rounds(&mut ledger, &mut nodes, 9);
        nodes[2].disk = SeatSecrets::default();
        nodes[2].restart();
        rounds(&mut ledger, &mut nodes, 3);
        let key = ledger.seals().expect("terms").keys()[0].clone();
        assert_eq!((key.holders.len(), key.last), (holders, Height::MAX));
        assert_eq!(all_hold(&ledger, &nodes), mistake.is_none());
    }
    // A seat that erases its share too early is the same.
    let (mut ledger, mut nodes) = (founded(), nodes());
    nodes[1] = Node::new(1).with_mistake(SeatMistake::ErasesEarly);
    rounds(&mut ledger, &mut nodes, 12);
    assert_eq!(ledger.seals().map(|seals| seals.keys()[0].holders.len()), Some(3));
}

#[test]
fn a_seat_that_deals_wrongly_or_complains_without_need_changes_nothing_for_the_others() {
    for (mistake, holders) in [(SeatMistake::DealsWrongShares, 4), (SeatMistake::ComplainsNeedlessly, 3)] {
        let (mut ledger, mut nodes) = (founded(), nodes());
        nodes[3] = Node::new(3).with_mistake(mistake);
        rounds(&mut ledger, &mut nodes, 12);
        assert_eq!(ledger.seals().map(|seals| seals.keys()[0].holders.len()), Some(holders), "{mistake:?}");
        assert!(all_hold(&ledger, &nodes));
    }
}

#[test]
fn secrets_are_erased_with_their_key_and_those_of_another_network_at_once() {
    for (mistake, kept) in [(None, 1), (Some(SeatMistake::KeepsSecrets), 2)] {
        let (mut ledger, mut nodes) = (founded(), nodes());
        if let Some(mistake) = mistake {
            nodes = (0..4).map(|index| Node::new(index).with_mistake(mistake)).collect();
        }
        rounds(&mut ledger, &mut nodes, 9);
        // Two lose their disks: the key ends, and another one is made.
        for node in &mut nodes[..2] {
            node.disk = SeatSecrets::default();
            node.restart();
        }
        rounds(&mut ledger, &mut nodes, 30);
        assert_eq!(ledger.seals().map(|seals| (seals.keys().len(), seals.keys()[0].number)), Some((1, 2)));
        assert_eq!(nodes[3].disk.secrets.len(), kept);
        assert!(all_hold(&ledger, &nodes));
    }
    let (ledger, mut node) = (founded(), Node::new(0));
    node.disk = SeatSecrets { network: Digest([8; 32]), secrets: [(1, SeatSecret::Seed([1; 32]))].into() };
    node.restart();
    node.tick(&ledger, None);
    assert!(node.disk.secrets.is_empty() && node.seat.share(&NETWORK, 1, 0).is_none());
}

#[test]
fn a_pool_keeps_one_free_post_of_a_seat_however_many_it_signs() {
    let (mut ledger, mut pool) = (founded(), Mempool::new(100));
    apply(&mut ledger, Vec::new());
    let (account, seed) = (key(100).public().address(), SealSeed([1; 32]));
    let possession = seed.possession(&NETWORK, 1, &account);
    let post = SealPost::Register { key: seed.key().public().to_bytes(), possession }.encode();
    let mut admits = |until: Height| {
        let says = ValidatorSays::Seals { key: 1, post: post.clone() };
        let signed = ValidatorPost { network: NETWORK, chain: 1, account, until, says }.sign(&key(0)).expect("here");
        pool.admit(PoolEntry::new(signed.id(), 0, signed), &ledger).is_ok()
    };
    assert!(admits(50));
    assert!(!(51..60).any(&mut admits));
}
