//! A place for tests: units that wait for accounts and are paid with the next block. It shows what a new place needs.

use primitives::{Address, Amount, AssetId, Digest, Superblock};
use proofs::Refusal;

use super::{Audited, ChunkFault, Custody, Moved, ReadChunks, Restored, Rules, Turn, bytes_of, in_place, tagged};
use crate::places::sums::Credit;
use crate::places::unsound::AuditError;
use crate::terms::Genesis;

/// Units of asset 0 by the account that they wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trial {
    pub waiting: Vec<(Address, Amount)>,
    /// Units that it pays and does not have: a fault.
    pub invented: Amount,
}

impl Trial {
    fn sum(&self) -> Amount {
        self.waiting.iter().map(|(_, units)| units).sum()
    }
}

impl Custody for Trial {
    const TAG: u8 = 250;
    const NAME: &'static str = "waiting units";
    /// Units that the sender asks for.
    type Edit<'a> = Amount;
    type Change = Option<Digest>;
    type Tries = Option<Digest>;
    type Reader = TrialReader;

    fn found(_: &Genesis, _: Digest) -> Trial {
        Trial::default()
    }

    fn check(&self, _: &Rules, sender: Address, units: Amount) -> Result<(), Refusal> {
        match () {
            _ if units == 0 => Err(Refusal::ZERO_AMOUNT),
            _ if self.waiting.iter().all(|(account, _)| *account != sender) => Err(Refusal::UNKNOWN_ACCOUNT),
            _ => Ok(()),
        }
    }

    fn apply(&mut self, _: &mut Turn<'_>, _: &[(Address, Amount)]) -> Moved<Option<Digest>> {
        let paid = std::mem::take(&mut self.waiting);
        let mut moved = Moved::default();
        for (to, units) in paid {
            moved.held.add(AssetId(0), -i128::from(units));
            moved.credits.push(Credit { to, asset: AssetId(0), amount: units + self.invented });
        }
        moved
    }

    fn whole(&self) -> Option<Digest> {
        (!self.waiting.is_empty()).then(|| Digest::of("walras 2026 trial place v1", &bytes_of(&self.waiting)))
    }

    fn follow(part: &mut Option<Digest>, change: &Option<Digest>) {
        *part = *change;
    }

    fn part(part: &mut Option<Digest>) -> Option<Digest> {
        *part
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        Box::new(self.waiting.chunks(2).map(|part| tagged(Self::TAG, &part.to_vec())))
    }

    fn entries(&self) -> u64 {
        self.waiting.len() as u64
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let mut held = audited.zero();
        held[0] = u128::from(self.sum());
        Ok(held)
    }
}

/// Reads its chunks.
#[derive(Default)]
pub(crate) struct TrialReader(Vec<(Address, Amount)>);

impl ReadChunks<Trial> for TrialReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        let part: Vec<(Address, Amount)> = borsh::from_slice(bytes)?;
        in_place(self.0.len().is_multiple_of(2) && (1..=2).contains(&part.len()))?;
        self.0.extend(part);
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.0.len() as u64
    }

    fn finish(self, _: &Restored) -> Result<Trial, AuditError> {
        Ok(Trial { waiting: self.0, invented: 0 })
    }
}

mod tests {
    use super::*;
    use crate::places::PlaceEdit;
    use crate::{Fault, Ledger, Listing, Restore, Roots, Signatures, Snapshot};
    use primitives::Fraction;
    use proofs::RootPart;

    fn account(number: u8) -> Address {
        Address([number; 20])
    }

    /// A ledger in which units wait for three accounts, and are issued.
    fn ledger() -> Ledger {
        let assets = vec![Listing::new("USD", 2, account(9))];
        let genesis = Genesis { mu: Fraction::power_of_two(10), assets, ..Genesis::default() };
        let mut ledger = Ledger::new(&genesis).expect("sound");
        ledger.places.trial.waiting = (1..=3).map(|one| (account(one), 10 * Amount::from(one))).collect();
        ledger.assets[0].issued += 60;
        ledger
    }

    fn block(ledger: &Ledger) -> Superblock {
        let parent_root = Roots::of(ledger).parts().root();
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        Superblock { height, parent, time_ms: height, parent_root, sub_blocks: Vec::new(), ..Superblock::default() }
    }

    #[test]
    fn a_trial_place_is_audited_and_pays_with_the_next_block() {
        let mut ledger = ledger();
        let audit = ledger.audit().expect("sound");
        assert_eq!((audit[0].elsewhere(Trial::NAME), audit[0].issued), (0, 60));
        let applied = ledger.apply(&block(&ledger), Signatures::Valid, &mut |_| {}).expect("conserves");
        assert_eq!(applied.modified, [account(1), account(2), account(3)]);
        assert_eq!(ledger.accounts().get(&account(3)).expect("paid").balance(AssetId(0)), 30);
        assert_eq!(ledger.audit().expect("sound")[0].elsewhere("balances"), 0);
    }

    #[test]
    fn a_trial_place_that_pays_what_it_does_not_have_stops_the_ledger() {
        let mut ledger = ledger();
        ledger.places.trial.invented = 1;
        let fault = ledger.apply(&block(&ledger), Signatures::Valid, &mut |_| {}).expect_err("three units appeared");
        let Fault::Conservation { places, issued: 0, .. } = fault else { panic!("{fault}") };
        assert!(places.contains(&(Trial::NAME, -60)) && places.contains(&("balances", 63)), "{places:?}");
    }

    #[test]
    fn a_trial_place_is_in_the_root_and_changes_no_other_proof() {
        let (with, mut without) = (ledger(), ledger());
        without.places.trial = Trial::default();
        let (mut with_roots, mut without_roots) = (Roots::of(&with), Roots::of(&without));
        let (one, other) = (with_roots.parts(), without_roots.parts());
        assert_eq!(one.list()[..other.list().len()], *other.list());
        assert_eq!(one.get(Trial::TAG), with.places.trial.whole());
        let (mut proof, unlike) =
            (with_roots.prove_account(&with, &account(9)), without_roots.prove_account(&without, &account(9)));
        assert!(proof.verify(&one.root(), &account(9)).expect("holds").is_some());
        assert_eq!((&proof.account, &proof.path), (&unlike.account, &unlike.path));
        proof.parts = other;
        assert!(proof.verify(&one.root(), &account(9)).is_err(), "a part is missing");
    }

    #[test]
    fn a_trial_place_is_restored_from_its_chunks_in_their_order_only() {
        let ledger = ledger();
        let chunks: Vec<Vec<u8>> = Snapshot::of(&ledger).collect();
        let load = |chunks: &[Vec<u8>]| {
            let mut restore = Restore::default();
            chunks.iter().try_for_each(|chunk| restore.push(chunk))?;
            restore.finish()
        };
        let restored = load(&chunks).expect("whole");
        assert_eq!(restored.places.trial, ledger.places.trial);
        assert_eq!(Snapshot::of(&restored).collect::<Vec<_>>(), chunks);
        let first = chunks.iter().position(|chunk| chunk[0] == Trial::TAG).expect("its chunks");
        assert_eq!(chunks[first - 1][0], RootPart::CHARTER);
        for two in 0..chunks.len() - 1 {
            let mut swapped = chunks.clone();
            swapped.swap(two, two + 1);
            assert!(load(&swapped).is_err(), "chunks {two} and the next");
        }
        for missing in 0..chunks.len() {
            let mut fewer = chunks.clone();
            fewer.remove(missing);
            assert!(load(&fewer).is_err(), "without chunk {missing}");
        }
    }

    #[test]
    fn a_trial_place_refuses() {
        let ledger = ledger();
        let check = |who, units| ledger.places.check(&ledger.rules(), account(who), PlaceEdit::Trial(units));
        assert_eq!(
            (check(1, 5), check(1, 0), check(4, 5)),
            (Ok(()), Err(Refusal::ZERO_AMOUNT), Err(Refusal::UNKNOWN_ACCOUNT))
        );
    }
}
