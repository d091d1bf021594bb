//! The queue of one seat among four that have made a key: strangers, copies, false shares, floods, and epochs that give
//! peers other indices.

use std::sync::OnceLock;
use std::time::Duration;

use consensus::{ALL_HEIGHTS, Chain, Rules};
use kernel::Planted;
use ledger::{BlockClock, Ledger};
use primitives::{Body, Operation, SecretKey, SubBlock, Transaction};
use sealing::{EnvelopeTerms, OpeningKey, SealShare, SealedText, SealingKey, seal};

use super::*;
use crate::seat::tests::{NETWORK, founded, key, nodes, rounds};
use crate::unsealing::{AHEAD, ENVELOPES_MAX, LOTS_MAX, UnsealMistake, UnsealWork, envelopes_of};
use crate::{EthereumSection, OwnKeys, PeerAddress};

/// Who has no share, and a link: a follower.
const STRANGER: u8 = 4;
/// The seat whose queue it is.
const OWN: Index = 0;

/// A ledger with a key in force at its next heights, and the share of each of its four seats.
fn made() -> &'static (Ledger, Vec<SealShare>) {
    static MADE: OnceLock<(Ledger, Vec<SealShare>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let (mut ledger, mut nodes) = (founded(), nodes());
        rounds(&mut ledger, &mut nodes, 16);
        let share = |index: usize| nodes[index].disk.share(&NETWORK, 1).expect("it holds");
        assert!(ledger.seals().is_some_and(|seals| seals.in_force(ledger.height() + 1).is_some()));
        let shares = (0..4).map(share).collect();
        (ledger, shares)
    })
}

/// The network as `own` sees it; `order` are the validators by index, and the follower comes last.
fn network(order: [u8; 4], own: Index) -> Network {
    let keys = order.map(|index| key(index).public());
    let peers =
        order.iter().chain([&STRANGER]).map(|index| PeerAddress { key: key(*index).public(), address: String::new() });
    Network {
        chain: Chain { genesis: NETWORK, epoch: 0, heights: ALL_HEIGHTS, keys: keys.to_vec() },
        rules: Rules::default(),
        ledger_rules: ledger::RULES_NEWEST,
        ethereum: EthereumSection::default(),
        me: own,
        own: OwnKeys::one(key(order[usize::from(own)])),
        listen: ([127, 0, 0, 1], 1).into(),
        peers: peers.collect(),
        committee_max: 4,
        unit: Duration::from_millis(1),
        grace: Duration::from_millis(1),
        heartbeat: Duration::from_millis(1),
        interval: Duration::from_millis(1),
    }
}

/// An envelope without orders, of a payer's number.
fn envelope(number: u64) -> Transaction {
    let (ledger, _) = made();
    let signer = SecretKey::from_seed([77; 32]);
    let (payer, until) = (signer.public().address(), ledger.height() + 200);
    let to = SealingKey::parse(&ledger.seals().expect("terms").keys()[0].group).expect("a point");
    let terms = EnvelopeTerms { network: NETWORK, signer: signer.public(), key: 1, payer, sequence: number, until };
    let sealed = seal(&to, &terms, &SealedText(Vec::new()), &[number as u8; 32]).expect("it fits");
    let operation = Operation::Sealed(Box::new(sealed.to_bytes(1)));
    Body { chain: 1, account: payer, sequence: number, until, operation }.sign(&NETWORK, &signer)
}

/// What the seats' shares for each envelope of a block are.
fn shares(seat: u8, native: &[Transaction]) -> Points {
    let label = |one: &Transaction| {
        let (bytes, name) = one.envelope().expect("an envelope");
        EnvelopeTerms::of(NETWORK, bytes, &name, one.body.until).label(bytes.size(), &bytes.point)
    };
    native.iter().map(|one| made().1[usize::from(seat)].of(&label(one))).collect()
}

/// A seat's queue. Jobs are done at once, and counted.
struct Seat {
    queue: UnsealQueue,
    network: Network,
    next: Height,
    sent: Vec<(Option<Index>, UnsealFrame)>,
    applied: Vec<(Height, Points)>,
    combined: usize,
    checked: usize,
}

impl Seat {
    fn new(mistake: Option<UnsealMistake>) -> Seat {
        let (ledger, _) = made();
        let (network, mistake): (_, Planted<UnsealMistake>) = (network([0, 1, 2, 3], OWN), mistake.into());
        let unsealer = Unsealer::new(ledger.height(), mistake);
        let queue = UnsealQueue::new(unsealer, (SealState::of(ledger), &network), ledger.opened_names());
        let (sent, applied, next) = (Vec::new(), Vec::new(), ledger.height() + 1);
        Seat { queue, network, next, sent, applied, combined: 0, checked: 0 }
    }

    fn take(&mut self, effects: Vec<QueueEffect>) {
        for effect in effects {
            match effect {
                QueueEffect::Send(to, frame) => self.sent.push((to, frame)),
                QueueEffect::Recall(..) => {}
                QueueEffect::Apply(agreed) => self.applied.push((agreed.height, agreed.keys)),
                QueueEffect::Job(job) => {
                    let done = self.perform(job);
                    let effects = self.queue.done(done);
                    self.take(effects);
                }
            }
        }
    }

    fn perform(&mut self, job: UnsealJob) -> UnsealDone {
        match job {
            UnsealJob::Find(work) => UnsealDone::Found(work.perform(|slot, payload| {
                envelopes_of(&SubBlock::from_payload(slot.into(), payload).expect("a sub-block"))
            })),
            UnsealJob::Keys(work) => {
                self.combined += usize::from(matches!(work, UnsealWork::Combine { .. }));
                self.checked += usize::from(matches!(work, UnsealWork::Check { .. }));
                UnsealDone::Keys(work.perform(|_| Some(made().1[usize::from(OWN)].clone())))
            }
        }
    }

    /// The next height is decided with these.
    fn decide(&mut self, native: &[Transaction]) -> Height {
        let height = self.next;
        self.next += 1;
        let payload = SubBlock { native: native.to_vec(), ..SubBlock::default() }.to_payload();
        let sub_blocks = vec![(0, payload.into())];
        let clock = BlockClock::of_one_in_turn(1);
        let effects = self.queue.decided(Agreed { height, sub_blocks, clock, keys: Points::default() });
        self.take(effects);
        height
    }

    fn hear(&mut self, from: Index, frame: UnsealFrame) {
        let effects = self.queue.frame(from, frame);
        self.take(effects);
    }

    fn hear_shares(&mut self, from: Index, height: Height, points: Points) {
        self.hear(from, UnsealFrame::Shares { height, key: 1, points });
    }

    fn tick(&mut self) {
        let effects = self.queue.tick();
        self.take(effects);
    }

    /// The keys of a block that the own share and that of another seat open.
    fn opened_by(envelopes: &[Transaction], other: Index) -> Points {
        let mut seat = Seat::new(None);
        seat.decide(&[]);
        let height = seat.decide(envelopes);
        seat.hear_shares(other, height, shares(other, envelopes));
        seat.applied.pop().expect("it is open").1
    }

    fn is_open(&self, height: Height) -> bool {
        self.applied.iter().any(|(of, _)| *of == height)
    }

    /// Frames and points that it keeps of peers.
    fn kept(&self) -> (usize, usize) {
        let unsealer = &self.queue.unsealer;
        let shares = unsealer.shares.values().flatten().map(|(_, points)| points.len());
        let keys = unsealer.keys.values().flat_map(|frames| frames.values()).map(|points| points.len());
        let all: Vec<usize> = shares.chain(keys).collect();
        (all.len(), all.iter().sum())
    }
}

#[test]
fn a_decided_block_waits_for_t_seats_and_comes_out_with_its_keys() {
    let mut seat = Seat::new(None);
    let quiet = seat.decide(&[]);
    assert!(seat.is_open(quiet) && seat.sent.is_empty(), "nothing waits without envelopes");
    let envelopes = [envelope(1), envelope(2)];
    let height = seat.decide(&envelopes);
    let after = seat.decide(&[]);
    let own = UnsealFrame::Shares { height, key: 1, points: shares(0, &envelopes) };
    assert_eq!((seat.sent.as_slice(), seat.applied.len()), (&[(None, own)][..], 1));
    assert_eq!(seat.queue.waits(), Some((height, vec![1, 2, 3])), "it names the silent");
    seat.hear_shares(2, height, shares(2, &envelopes));
    assert!(seat.is_open(height) && seat.is_open(after));
    // Whichever two open it, the keys are the same.
    let other = Seat::opened_by(&envelopes, 3);
    assert_eq!((seat.applied[1].1.len(), &seat.applied[1].1), (2, &other));
}

#[test]
fn shares_of_strangers_and_copies_of_one_seats_frame_open_nothing() {
    let mut seat = Seat::new(None);
    let envelopes = [envelope(1)];
    let right = shares(2, &envelopes);
    let ahead = seat.next;
    // Also of a height that is decided later.
    for _ in 0..3 {
        [STRANGER, 9, Index::MAX].into_iter().for_each(|from| seat.hear_shares(from, ahead, right.clone()));
        seat.hear(1, UnsealFrame::Shares { height: ahead, key: 7, points: right.clone() });
    }
    let height = seat.decide(&envelopes);
    assert_eq!((seat.combined, seat.kept()), (0, (0, 0)), "strangers' frames are gone");
    [STRANGER, 9].into_iter().for_each(|from| seat.hear_shares(from, height, right.clone()));
    assert_eq!((seat.combined, seat.is_open(height)), (0, false));
    seat.hear_shares(2, height, right.clone());
    seat.hear_shares(2, height, right);
    assert_eq!((seat.combined, seat.is_open(height)), (1, true));
}

/// What seat 3 costs that sends false shares for every height, before anybody else.
fn cost_of_false_shares(mistake: Option<UnsealMistake>) -> usize {
    let mut seat = Seat::new(mistake);
    for number in 1..=8 {
        let envelopes = [envelope(number)];
        let height = seat.decide(&envelopes);
        seat.hear_shares(3, height, [OpeningKey([number as u8; 48])].into());
        seat.hear_shares(1, height, shares(1, &envelopes));
        assert!(seat.is_open(height));
    }
    seat.combined - 8
}

#[test]
fn false_share_costs_one_check() {
    assert_eq!(cost_of_false_shares(None), 1);
    assert_eq!(cost_of_false_shares(Some(UnsealMistake::DoubtForgotten)), 8, "and would cost one each");
}

#[test]
fn false_keys_cost_one_check_of_each_sender() {
    let mut seat = Seat::new(None);
    for number in 1..=8 {
        let envelopes = [envelope(number)];
        let height = seat.decide(&envelopes);
        for from in [1, 2, 3, STRANGER] {
            seat.hear(from, UnsealFrame::Keys { height, points: [OpeningKey([9; 48])].into() });
        }
        assert!(!seat.is_open(height));
        // A doubted seat's shares come last, and still open what nobody else opens.
        seat.hear_shares(1, height, shares(1, &envelopes));
        (0..3).for_each(|_| seat.tick());
        assert!(seat.is_open(height), "{number}");
    }
    assert_eq!(seat.checked, 4);
}

#[test]
fn in_another_epoch_seats_have_other_indices_and_old_frames_count_for_nobody() {
    let mut seat = Seat::new(None);
    let envelopes = [envelope(1)];
    let height = seat.next;
    seat.hear_shares(1, height, shares(1, &envelopes));
    // Seats 1 and 3 change their places.
    seat.network = network([0, 3, 2, 1], OWN);
    seat.queue.begin_epoch(&seat.network);
    seat.decide(&envelopes);
    assert_eq!((seat.combined, seat.is_open(height)), (0, false), "what was sent before is forgotten");
    seat.hear_shares(1, height, shares(3, &envelopes));
    assert!(seat.is_open(height), "its index now");
    // By its old index it would be a false share.
    let envelopes = [envelope(2)];
    let height = seat.decide(&envelopes);
    seat.hear_shares(1, height, shares(1, &envelopes));
    assert!(!seat.is_open(height));
    seat.hear_shares(2, height, shares(2, &envelopes));
    assert_eq!((seat.is_open(height), seat.combined), (true, 3));
}

/// Five peers send all that frames can say, for heights and keys without end.
#[test]
fn a_flood_of_frames_takes_bounded_memory_and_no_work() {
    let mut seat = Seat::new(None);
    let waiting = seat.decide(&[envelope(1)]);
    let full: Points = [OpeningKey([5; 48]); ENVELOPES_MAX].into();
    let mut answers = 0;
    for height in (0..200).chain([Height::MAX - 1, Height::MAX]) {
        for from in [1, 2, 3, STRANGER, 200] {
            for number in 0..5 {
                seat.hear(from, UnsealFrame::Shares { height, key: number, points: full.clone() });
                seat.hear(from, UnsealFrame::Keys { height, points: full.clone() });
                seat.hear(from, UnsealFrame::Ask(height));
            }
        }
        answers = seat.sent.len();
    }
    let (frames, points) = seat.kept();
    let most = (AHEAD as usize + 1) * 5 * (LOTS_MAX + 1);
    assert!(frames <= most && points <= most * ENVELOPES_MAX, "{frames} frames, {points} points");
    assert_eq!((seat.combined, seat.checked), (0, 0), "of another length than the block opens");
    assert!(answers <= 1 + 5 * crate::unsealing::ASKS, "{answers} answers");
    // Who sent a frame of another length is doubted, and opens the height when nobody else does.
    seat.hear_shares(2, waiting, shares(2, &[envelope(1)]));
    assert!(!seat.is_open(waiting));
    (0..3).for_each(|_| seat.tick());
    assert!(seat.is_open(waiting) && seat.queue.waits().is_none());
}

/// Reading the points of all holders at each height would cost more than a small block.
#[test]
fn points_are_read_once_for_as_long_as_holders_and_peers_stay() {
    let (ledger, _) = made();
    let mut seat = Seat::new(None);
    let next = ledger.height() + 1;
    let committee = |seat: &Seat| seat.queue.view.as_ref().expect("a key").committees(next)[0].clone();
    let before = committee(&seat);
    let state = || SealState::of(ledger).expect("a key");
    let effects = seat.queue.seen(state(), &seat.network);
    seat.take(effects);
    assert!(Arc::ptr_eq(&before, &committee(&seat)));
    seat.network = network([0, 3, 2, 1], OWN);
    let effects = seat.queue.seen(state(), &seat.network);
    seat.take(effects);
    let after = committee(&seat);
    assert_eq!((before.place(1), before.place(3)), (after.place(3), after.place(1)), "peers have changed");
}
