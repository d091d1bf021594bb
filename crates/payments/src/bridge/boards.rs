//! Key generations over the ledger, each for the next epoch, where the genesis requires group keys.
//!
//! ```text
//! heights of an epoch   0 ······· 1/2 ······· 3/4 ······· 1
//! of the next epoch      dealings   complaints   the group key, or none
//! ```
//!
//! A board opens when every member has registered its keys of the next epoch, in the first half of this one. If a
//! member has not registered, or was convicted and must not, that epoch has no group key. Dealings count in the same
//! half, complaints in the third quarter; then the board is finished as it is. No height waits for a member: where
//! there is no group key, aggregates are used. A board is kept until its epoch is dropped, so that a member can
//! recompute its share after a restart.
//!
//! Registrations and the clock determine which board is open, and in which phase. The state contains the posts and
//! decisions of boards with at least one dealing:
//!
//! ```text
//! boards    count 4 · (epoch 8 · board)[]
//! board     dealings 1 · (dealing · signature 64) each · out 1 · member 1 each · struck 1 · member 1 each
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use primitives::Signature;

use super::{Bridge, BridgeEvent, LaneBls};
use crate::layout::Reader;
use crate::{
    BlsPublicKey, BridgeEntry, BridgeRefusal, Complaint, Dealing, DkgPurpose, DkgRefusal, DkgTerms, HomeEpoch,
    KeyGeneration, LaneCommittee, LaneRefusal, Quorums,
};

const WRONG: LaneRefusal = LaneRefusal::Malformed("a board of a key generation is impossible");

/// The key generation of an epoch, with its dealers' signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Board {
    generation: KeyGeneration,
    signatures: BTreeMap<u8, Signature>,
}

/// The parts of an epoch by the heights that have passed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Dealings,
    Complaints,
    Rest,
}

impl Board {
    fn new(terms: DkgTerms) -> Board {
        Board { generation: KeyGeneration::new(terms), signatures: BTreeMap::new() }
    }

    fn is_empty(&self) -> bool {
        self.signatures.is_empty()
    }

    /// Moves the board to a part of the epoch; returns whether this finishes it.
    fn turn(&mut self, part: Part) -> bool {
        let was_finished = self.generation.is_finished();
        match part {
            Part::Dealings => {}
            Part::Complaints => self.generation.close_dealing(),
            Part::Rest => {
                self.generation.finish();
            }
        }
        !was_finished && self.generation.is_finished()
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.push(self.signatures.len() as u8);
        for (dealing, signature) in self.generation.dealings().zip(self.signatures.values()) {
            to.extend(dealing.encode());
            to.extend(signature.0);
        }
        for members in [self.generation.out(), self.generation.struck()] {
            to.push(members.len() as u8);
            to.extend(members);
        }
    }

    /// Parses a board on these terms. No proof and no signature is checked.
    fn read(terms: DkgTerms, read: &mut Reader<'_>) -> Result<Board, LaneRefusal> {
        let quorums = Quorums::new(terms.keys.len());
        let mut board = Board::new(terms);
        for _ in 0..read.u8()? {
            let (dealing, signature) = (Dealing::read(quorums, read)?, read.signature()?);
            if board.signatures.last_key_value().is_some_and(|(last, _)| *last >= dealing.dealer) {
                return Err(WRONG);
            }
            board.signatures.insert(dealing.dealer, signature);
            board.generation.deal_verified(dealing).map_err(|_| WRONG)?;
        }
        let mut members = || {
            let count = read.u8()?;
            let members = read.bytes(count.into())?;
            let ascend = members.windows(2).all(|pair| pair[0] < pair[1]);
            let known = members.iter().all(|member| usize::from(*member) < quorums.validators);
            if ascend && known { Ok(members.iter().copied().collect::<BTreeSet<u8>>()) } else { Err(WRONG) }
        };
        let (out, struck) = (members()?, members()?);
        if board.is_empty() || out.iter().any(|dealer| !board.signatures.contains_key(dealer)) {
            return Err(WRONG);
        }
        board.generation.decided(out, struck);
        Ok(board)
    }
}

/// The committee with the group key derived from a board that a node sent, in the format of [`Bridge::board_bytes`]:
/// it checks each dealing and its dealer's signature. It cannot check which dealers are out, and need not: of any f+1
/// dealers one is correct, and no one knows what it dealt to q members.
///
/// # Errors
/// [`LaneRefusal::NoGroupKey`] if no key follows from it, [`LaneRefusal::Malformed`] or
/// [`LaneRefusal::WrongRegistration`] if it is not a board of this committee.
pub fn with_told_board(committee: LaneCommittee, bytes: &[u8]) -> Result<LaneCommittee, LaneRefusal> {
    let terms = DkgTerms::of(&committee)?;
    if terms.keys.len() > crate::DKG_MEMBERS_MAX {
        return Err(WRONG);
    }
    let mut reader = Reader::new(bytes);
    let mut board = Board::read(terms, &mut reader)?;
    reader.end()?;
    for (dealing, signature) in board.generation.dealings().zip(board.signatures.values()) {
        check_dealing(&committee, board.generation.terms(), dealing, signature)?;
    }
    board.turn(Part::Rest);
    committee.with_threshold(&board.generation)
}

fn check_dealing(
    committee: &LaneCommittee,
    terms: &DkgTerms,
    dealing: &Dealing,
    signature: &Signature,
) -> Result<(), LaneRefusal> {
    let key = committee.key(dealing.dealer, 0)?;
    let is_signed = dealing.is_signed(&committee.network(), committee.epoch(), &key, signature);
    if is_signed && dealing.verify(terms).is_ok() { Ok(()) } else { Err(LaneRefusal::WrongDealing) }
}

/// Checks a posted dealing: its dealer's signature, its points and proofs.
///
/// # Errors
/// [`LaneRefusal::WrongDealing`], or as for [`DkgTerms::of`].
pub(super) fn verify_dealing(
    committee: &LaneCommittee,
    dealing: &Dealing,
    signature: &Signature,
) -> Result<(), LaneRefusal> {
    check_dealing(committee, &DkgTerms::of(committee)?, dealing, signature)
}

impl Bridge {
    /// The key generation of an epoch, if its board was opened and the epoch is not dropped.
    pub fn generation(&self, epoch: HomeEpoch) -> Option<&KeyGeneration> {
        self.boards.get(&epoch).map(|board| &board.generation)
    }

    /// The board of an epoch with at least one dealing, in the format that [`with_told_board`] reads.
    pub fn board_bytes(&self, epoch: HomeEpoch) -> Option<Vec<u8>> {
        let board = self.boards.get(&epoch).filter(|board| !board.is_empty())?;
        let mut bytes = Vec::new();
        board.write(&mut bytes);
        Some(bytes)
    }

    fn part(&self) -> Part {
        let (heights, left) = (self.clock.schedule().epoch_heights, self.clock.heights_left());
        match heights - left {
            passed if passed < heights / 2 => Part::Dealings,
            passed if passed < heights - heights / 4 => Part::Complaints,
            _ => Part::Rest,
        }
    }

    /// The terms of the key generation of an epoch, once all members have registered.
    fn terms_of(&self, epoch: HomeEpoch) -> Option<DkgTerms> {
        let registrations: Vec<_> = self.registrations(epoch).collect();
        if self.rules.bls != LaneBls::Threshold || registrations.len() < self.rules.registrars.len() {
            return None;
        }
        let key = |of: &&crate::LaneRegistration| BlsPublicKey::parse(&of.bls.first()?.key).ok();
        let keys = registrations.iter().map(key).collect::<Option<_>>()?;
        Some(DkgTerms { network: self.rules.network, epoch, purpose: DkgPurpose::Lane, keys })
    }

    /// Opens the board of the next epoch if it is time and all members have registered.
    pub(super) fn open_board(&mut self) {
        let next = self.clock.epoch() + 1;
        if self.part() != Part::Dealings || self.boards.contains_key(&next) {
            return;
        }
        if let Some(terms) = self.terms_of(next) {
            self.boards.insert(next, Arc::new(Board::new(terms)));
        }
    }

    /// Moves the board of the next epoch along with the clock when a height begins.
    pub(super) fn turn_board(&mut self, events: &mut Vec<BridgeEvent>) {
        self.boards = self.boards.split_off(&self.resolver.oldest());
        let (next, part) = (self.clock.epoch() + 1, self.part());
        let Some(board) = self.boards.get_mut(&next) else { return };
        if part == Part::Dealings || board.generation.is_finished() {
            return;
        }
        if board.is_empty() {
            self.boards.remove(&next);
            return;
        }
        if part == Part::Rest || board.generation.awaits_dealings() {
            let board = Arc::make_mut(board);
            if board.turn(part) {
                events.push(BridgeEvent::GroupKey(next, board.generation.outcome().is_some()));
            }
        }
    }

    fn open_generation(&self, epoch: HomeEpoch) -> Result<&KeyGeneration, BridgeRefusal> {
        let is_next = epoch == self.clock.epoch() + 1;
        self.generation(epoch).filter(|_| is_next).ok_or(BridgeRefusal::NotAwaited(DkgRefusal::WrongPhase))
    }

    pub(super) fn check_deal(&self, epoch: HomeEpoch, dealing: &Dealing) -> Result<(), BridgeRefusal> {
        let generation = self.open_generation(epoch)?;
        if generation.dealing_of(dealing.dealer) == Some(dealing) {
            return Ok(());
        }
        generation.awaits(dealing.dealer).map_err(BridgeRefusal::NotAwaited)
    }

    pub(super) fn check_complaint(&self, epoch: HomeEpoch, complaint: &Complaint) -> Result<(), BridgeRefusal> {
        self.open_generation(epoch)?.check_complaint(complaint).map_err(|refusal| match refusal {
            DkgRefusal::WrongProof => BridgeRefusal::WrongComplaint,
            refusal => BridgeRefusal::NotAwaited(refusal),
        })
    }

    /// Adds a member's dealing; returns the entry to write, or `None` if the member has already dealt.
    pub(super) fn deal(&mut self, epoch: HomeEpoch, dealing: Dealing, signature: Signature) -> Option<BridgeEntry> {
        let board = self.boards.get_mut(&epoch)?;
        board.generation.awaits(dealing.dealer).ok()?;
        let (board, dealer) = (Arc::make_mut(board), dealing.dealer);
        board.generation.deal_verified(dealing).expect("the filter has verified it");
        board.signatures.insert(dealer, signature);
        let dealing = board.generation.dealing_of(dealer)?;
        Some(BridgeEntry::dealing(epoch, dealing, &signature))
    }

    /// Adds a member's complaint; returns the entry to write, or `None` if it decides nothing new.
    pub(super) fn complain(&mut self, epoch: HomeEpoch, complaint: &Complaint) -> Option<BridgeEntry> {
        let board = self.boards.get_mut(&epoch)?;
        let judged = Arc::make_mut(board).generation.judge(complaint)?;
        Some(BridgeEntry::judged(epoch, judged))
    }

    pub(super) fn board_entries(&self) -> impl Iterator<Item = BridgeEntry> + '_ {
        self.boards.iter().flat_map(|(epoch, board)| {
            let Board { generation, signatures } = &**board;
            let dealings = generation.dealings().zip(signatures.values());
            let dealings = dealings.map(|(dealing, signature)| BridgeEntry::dealing(*epoch, dealing, signature));
            dealings.chain(generation.judged().map(|judged| BridgeEntry::judged(*epoch, judged)))
        })
    }

    pub(super) fn write_boards(&self, to: &mut Vec<u8>) {
        if self.rules.bls != LaneBls::Threshold {
            return;
        }
        let written = || self.boards.iter().filter(|(_, board)| !board.is_empty());
        to.extend((written().count() as u32).to_le_bytes());
        for (epoch, board) in written() {
            to.extend(epoch.to_le_bytes());
            board.write(to);
        }
    }

    pub(super) fn read_boards(&mut self, read: &mut Reader<'_>) -> Result<(), LaneRefusal> {
        if self.rules.bls != LaneBls::Threshold {
            return Ok(());
        }
        let next = self.clock.epoch() + 1;
        for _ in 0..read.u32()? {
            let epoch = read.u64()?;
            let ascends = self.boards.last_key_value().is_none_or(|(last, _)| *last < epoch);
            let terms = self.terms_of(epoch).filter(|_| ascends && (self.oldest()..=next).contains(&epoch));
            let mut board = Board::read(terms.ok_or(WRONG)?, read)?;
            board.turn(if epoch < next { Part::Rest } else { self.part() });
            self.boards.insert(epoch, Arc::new(board));
        }
        self.open_board();
        Ok(())
    }
}
