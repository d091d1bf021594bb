//! Committees that make sealing keys in tests: seats with secrets, and what they post.

use std::collections::BTreeMap;

use payments::{Dealing, KeyShare, SealSeed, dealing, false_dealing};
use primitives::{Address, Digest, Height};
use proofs::{Refusal, SealTerms};

use super::{Acting, SEAL_STEP_HEIGHTS, SealPost, SealStep, Seals};

pub(super) const NETWORK: Digest = Digest([9; 32]);

/// What a seat does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Conduct {
    Correct,
    /// It posts nothing.
    Silent,
    /// It registers what does not verify.
    BadKey,
    /// It registers, and is silent then.
    NeverDeals,
    /// What it deals does not verify.
    BadDealing,
    /// It deals a wrong share to one who complains.
    WrongShare,
    /// It complains about a dealing that is right.
    Needless,
    /// It never says that all is fine.
    NeverFine,
    /// It never holds.
    NeverHolds,
    /// It proves that it holds another's share.
    BadHold,
}

pub(super) const CONDUCTS: [Conduct; 10] = [
    Conduct::Correct,
    Conduct::Silent,
    Conduct::BadKey,
    Conduct::NeverDeals,
    Conduct::BadDealing,
    Conduct::WrongShare,
    Conduct::Needless,
    Conduct::NeverFine,
    Conduct::NeverHolds,
    Conduct::BadHold,
];

pub(super) fn account(seat: u8) -> Address {
    Address([seat + 1; 20])
}

pub(super) fn terms(name: &str) -> SealTerms {
    SealTerms::named(name).expect("a name")
}

pub(super) fn acting(seats: impl IntoIterator<Item = u8>, ends: Height) -> Acting {
    Acting { network: NETWORK, seats: seats.into_iter().map(account).collect(), ends }
}

/// The place, and what its seats know.
#[derive(Clone)]
pub(super) struct World {
    pub seals: Seals,
    pub height: Height,
    pub conducts: BTreeMap<Address, Conduct>,
    /// By number and account.
    pub shares: BTreeMap<(u64, Address), KeyShare>,
}

pub(super) fn seed(account: &Address, number: u64) -> SealSeed {
    SealSeed([account.0[0] ^ (number as u8).wrapping_mul(37); 32])
}

impl World {
    pub(super) fn new(terms: SealTerms, conducts: &[Conduct]) -> World {
        let conducts = (0..).map(account).zip(conducts.iter().copied()).collect();
        World { seals: Seals::found(terms), height: 0, conducts, shares: BTreeMap::new() }
    }

    /// A block, with these posts about the present board if the place accepts them.
    pub(super) fn block(&mut self, acting: &Acting, posts: Vec<(Address, SealPost)>) -> Vec<Result<(), Refusal>> {
        self.height += 1;
        let number = self.seals.board().map_or(0, |board| board.number());
        let mut numbered: Vec<_> = posts.into_iter().map(|(account, post)| (account, number, post)).collect();
        numbered.sort_by_key(|(account, ..)| *account);
        let judged: Vec<_> =
            numbered.iter().map(|(account, number, post)| self.seals.check(account, *number, post)).collect();
        let accepted: Vec<_> =
            numbered.into_iter().zip(&judged).filter(|(_, one)| one.is_ok()).map(|(one, _)| one).collect();
        if !accepted.is_empty() || self.seals.is_due(self.height, acting) {
            self.seals.turn(self.height, acting, accepted);
        }
        assert_eq!(self.seals.fault(self.height), None);
        judged
    }

    /// What all seats post next.
    pub(super) fn posts(&self) -> Vec<(Address, SealPost)> {
        let all = self.conducts.iter();
        all.filter_map(|(account, conduct)| Some((*account, self.post(account, *conduct)?))).collect()
    }

    /// A block with what the seats post, and takes the shares that they have. Without posts it is the last one of the
    /// step, up to a height.
    pub(super) fn go(&mut self, acting: &Acting, most: Height) {
        let posts = self.posts();
        if let Some(board) =
            self.seals.board().filter(|_| posts.is_empty() && !self.seals.is_due(self.height + 1, acting))
        {
            let last = board.at().1 + SEAL_STEP_HEIGHTS - 1;
            self.height = self.height.max(last.min(most.saturating_sub(1)));
        }
        self.block(acting, posts);
        let Some((board, generation)) = self.seals.board().and_then(|board| Some((board, board.generation()?))) else {
            return;
        };
        for account in board.seats() {
            let id = (board.number(), *account);
            if let Some(member) = board.member(account).filter(|_| !self.shares.contains_key(&id)) {
                let share = generation.share(member, &seed(account, board.number()).key());
                share.into_iter().for_each(|share| drop(self.shares.insert(id, share)));
            }
        }
    }

    pub(super) fn go_to(&mut self, height: Height, acting: &Acting) {
        while self.height < height {
            self.go(acting, height);
        }
    }

    fn post(&self, account: &Address, conduct: Conduct) -> Option<SealPost> {
        let board = self.seals.board().filter(|board| board.awaited().any(|one| one == account))?;
        let (number, (step, _)) = (board.number(), board.at());
        let (seed, member) = (seed(account, number), board.member(account));
        match (step, conduct) {
            (_, Conduct::Silent) => None,
            (SealStep::Register, _) => {
                let of = number + u64::from(conduct == Conduct::BadKey);
                let possession = seed.possession(&NETWORK, of, account);
                Some(SealPost::Register { key: seed.key().public().to_bytes(), possession })
            }
            (_, Conduct::NeverDeals) => None,
            (SealStep::Deal, _) => {
                let (terms, member) = (board.generation()?.terms(), member?);
                let victim = (member + 1) % terms.keys.len() as u8;
                let mut dealt: Dealing = match conduct {
                    Conduct::WrongShare => false_dealing(terms, member, &seed.of_dealing(), victim),
                    _ => dealing(terms, member, &seed.of_dealing()),
                };
                if conduct == Conduct::BadDealing {
                    dealt.shares[usize::from(victim)][0] ^= 1;
                }
                Some(SealPost::Deal(dealt.encode()))
            }
            (SealStep::Complain, _) => {
                let (generation, member) = (board.generation()?, member?);
                let complaint = |dealer: u8| match conduct {
                    Conduct::Needless if dealer != member => generation.reveal(member, &seed.key(), dealer),
                    _ => generation.complaint(member, &seed.key(), dealer),
                };
                let open = generation.standing().filter(|dealer| !board.has_complained(member, *dealer));
                match open.filter_map(complaint).next() {
                    Some(complaint) => Some(SealPost::Complain(Box::new(complaint))),
                    None => (conduct != Conduct::NeverFine).then_some(SealPost::Fine),
                }
            }
            (SealStep::Hold, Conduct::NeverHolds) => None,
            (SealStep::Hold, _) => {
                let generation = board.generation()?;
                let share = generation.share(member?, &seed.key())?;
                let of_other = KeyShare::from_bytes(share.member() ^ 1, &share.to_bytes()).expect("a secret");
                let share = if conduct == Conduct::BadHold { of_other } else { share };
                Some(SealPost::Hold(share.hold(generation.terms())))
            }
        }
    }
}
