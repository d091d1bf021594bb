//! Opens a replica from its home.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use consensus::{Committee, Contents, Engine, Finality, LogEntry, Members, PayloadCheck, Start};
use kernel::Planted;
use ledger::contracts::{EthereumRules, check_in_section};
use ledger::{
    Ledger, NETWORK_SPEC, POLICY_SIGNATURES_PER_SUB_BLOCK, TYPED_DATA_PER_SUB_BLOCK, are_envelopes_sound,
    envelopes_per_sub_block, outcome_root,
};
use primitives::venue::VENUE_SIGNATURES_PER_SUB_BLOCK;
use primitives::{Digest, Height, Operation, SubBlock, Transaction};
use proofs::Lineage;
use store::{Disk, Options, Store, StoreError, VoteLog, VoteOptions};

use crate::machine::Replica;
use crate::unsealing::{SealState, UnsealQueue, Unsealer};
use crate::{Defect, EthereumSection, HandoverLog, Home, Network, Now, Past, ReplicaError, ReplicaSettings, Waiting};

/// The check of a sub-block's payload at heights of these rules. It decodes as a sub-block. If it has an operation of
/// later rules, which older programs cannot decode, it is early. Its Ethereum transactions can be valid in some state
/// and are within the quotas of gas, of signature recoveries, and of the signatures of policies and of orders. Its
/// envelopes are no more than its share where a committee has so many seats, and their points are points. Returns what
/// consensus must know of it.
pub fn check_payload(section: EthereumSection, rules: u32, seats: usize) -> PayloadCheck {
    let envelopes = envelopes_per_sub_block(seats as u32) as usize;
    Arc::new(move |bytes| {
        let sub_block = SubBlock::from_payload(0, bytes).ok()?;
        let is_early = sub_block.native.iter().any(|one| one.since_rules() > rules);
        let sum =
            |count: fn(&Transaction) -> u32| sub_block.native.iter().map(|one| u64::from(count(one))).sum::<u64>();
        if sum(Transaction::recoveries) > TYPED_DATA_PER_SUB_BLOCK.into()
            || sum(Transaction::policy_signatures) > POLICY_SIGNATURES_PER_SUB_BLOCK.into()
        {
            return None;
        }
        if !are_envelopes_sound(&sub_block.native, envelopes) {
            return None;
        }
        let signatures: usize = sub_block.native.iter().map(venue_signatures).sum();
        if signatures > VENUE_SIGNATURES_PER_SUB_BLOCK as usize {
            return None;
        }
        let mut gas_left = section.sub_block_gas;
        let transactions = EthereumRules { chain: section.chain, spec: NETWORK_SPEC };
        let mut is_sound = |bytes: &Vec<u8>| check_in_section(bytes, transactions, &mut gas_left).is_ok();
        let transactions = sub_block.native.len() + sub_block.ethereum.len();
        let contents = Contents { transactions, time_ms: Some(sub_block.time_ms), is_early };
        sub_block.ethereum.iter().all(&mut is_sound).then_some(contents)
    })
}

/// Signatures of orders that a transaction carries.
fn venue_signatures(transaction: &Transaction) -> usize {
    match &transaction.body.operation {
        Operation::Venue(operation) => operation.order_signatures(),
        _ => 0,
    }
}

/// An opened replica, and the parts that work beside it.
pub struct Opened<D: Disk> {
    /// The machine.
    pub replica: Replica<D>,
    /// Its archive.
    pub past: Past<D>,
    /// The proofs of later committees.
    pub handovers: HandoverLog<D>,
    /// The height of a state without a certificate, restored from a file.
    pub unproved: Option<Height>,
    /// Certificates up to this height are durable.
    pub certified_durably: Height,
}

impl<D: Disk + Clone> Replica<D> {
    /// Restores the machine from its home. `network` is that of the genesis; `ledger` has applied the last logged
    /// block, and `newest` is the height of that block with its state root; `blocks` is the archive of the block
    /// store.
    ///
    /// # Errors
    /// [`ReplicaError`] names the damage.
    pub fn open(
        home: &Home<D>,
        network: &Network,
        settings: ReplicaSettings,
        ledger: &Ledger,
        newest: (Height, Digest),
        blocks: store::Archive<D>,
    ) -> Result<Opened<D>, ReplicaError> {
        if ledger.height() < network.rules.begins {
            return Err(ReplicaError::NotRestarted(network.rules.begins));
        }
        let (stored, genesis) = (ledger.validators().terms.network, network.chain.genesis);
        if stored != genesis {
            return Err(ReplicaError::OtherNetwork { stored, genesis });
        }
        let (finality, _) = Store::open(home.certificates.clone(), Options::default())?;
        let begins = network.rules.begins;
        let past = Past { blocks, certificates: finality.archive(), begins };
        let (lag, chain) = (network.rules.lag, network.chain.clone());
        let lineage = Lineage { schedule: ledger.schedule(), lag, begins, chain };
        let handovers = HandoverLog::open(home.handovers.clone(), lineage, finality.archive())?;
        let unproved = unproved(&finality, ledger, &past)?;
        let height = unproved.unwrap_or(finality.last_height().max(begins).min(ledger.height()));
        // A node without the rules of the next height stays in the epoch that is over: it reads, and votes no more.
        let opens_anyway = settings.defect.is(Defect::OpensWithoutRules);
        let follows = ledger.follows_at(height + 1) || opens_anyway;
        let network = network.at(ledger, if follows { height + 1 } else { height })?;
        let start = start(&network, &past, ledger, height, newest)?;
        let mut engine = Engine::new(
            network.setup(check_payload(network.ethereum, network.ledger_rules, network.committee_max)),
            start,
        );
        engine.gather_from(settings.gather_from);
        if unproved.is_some() {
            // It has no superblock to continue from: until it finds one, it only reports the height of its state.
            engine.rejoin();
        }
        let votes = open_votes(home, &mut engine, vote_options(&network), settings.defect)?;
        let certified_durably = finality.durable_height();
        let unsealer = Unsealer::new(ledger.height(), settings.unsealing);
        let unsealing = UnsealQueue::new(unsealer, (SealState::of(ledger), &network), ledger.opened_names());
        let replica = Replica {
            engine,
            network,
            settings,
            home: home.clone(),
            votes,
            finality,
            now: Now::default(),
            waiting: Waiting::default(),
            effects: Vec::new(),
            generation: 0,
            up: Members::default(),
            timers: BinaryHeap::new(),
            next_tick: Duration::ZERO,
            assembling: None,
            forwarding: false,
            proposed: BTreeSet::new(),
            rests_until: Duration::ZERO,
            began: None,
            applied: (0, 0),
            left_out: false,
            skip: 0,
            halves: BTreeMap::new(),
            offences: BTreeMap::new(),
            duplicates: Members::default(),
            clocks: BTreeMap::new(),
            rounds: BTreeMap::new(),
            voted: BTreeMap::new(),
            last_decided: Duration::ZERO,
            is_turning_over: false,
            unsealing,
        };
        Ok(Opened { replica, past, handovers, unproved, certified_durably })
    }
}

/// Creates the vote log of a validator that has never voted.
///
/// # Errors
/// If there is one already, or it cannot be written.
pub fn create_votes<D: Disk + Clone>(votes: &D) -> Result<(), ReplicaError> {
    VoteLog::create(votes.clone(), VoteOptions::default())?;
    Ok(())
}

/// Capacity for the proposals of all validators at the heights in progress at one time.
pub(crate) fn vote_options(network: &Network) -> VoteOptions {
    let (members, bytes) = (network.committee_max as u64, network.rules.payload_bytes as u64);
    let defaults = VoteOptions::default();
    let bytes_max = defaults.bytes_max.max(ledger::votes_bytes(network.rules.horizon(), members, bytes));
    VoteOptions { bytes_max, ..defaults }
}

/// Loads the vote log into the engine, or tells the engine that the log is lost.
fn open_votes<D: Disk + Clone>(
    home: &Home<D>,
    engine: &mut Engine,
    options: VoteOptions,
    defect: Planted<Defect>,
) -> Result<Option<VoteLog<D>>, ReplicaError> {
    let damaged = |error: &StoreError| {
        matches!(error, StoreError::VotesLost(_) | StoreError::Damaged { remedy: store::Remedy::Rejoin, .. })
    };
    match VoteLog::open(home.votes.clone(), options) {
        Ok((log, found)) => {
            for repair in found.repairs {
                tracing::warn!(%repair, "the vote log ended with an incomplete entry; it was never sent");
            }
            engine.stay_silent_below(found.floor);
            let entries = found.records.into_iter().flat_map(|(height, records)| {
                records.into_iter().map(move |bytes| borsh::from_slice(&bytes).map(|entry| (height, entry)))
            });
            let entries: Result<Vec<(Height, LogEntry)>, _> = entries.collect();
            engine.restore(entries.map_err(|error| ReplicaError::Undecodable(found.floor, error))?);
            Ok(Some(log))
        }
        Err(error) if damaged(&error) && defect.is(Defect::SilenceBroken) => {
            Ok(Some(VoteLog::rejoin(home.votes.clone(), options, 1)?))
        }
        Err(error) if damaged(&error) => {
            tracing::warn!(%error, "listening without voting until it is known where it is safe to vote again");
            engine.rejoin();
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The height of a state that was restored from a file: the blocks between it and the last certificate are missing.
fn unproved<D: Disk>(finality: &Store<D>, ledger: &Ledger, past: &Past<D>) -> Result<Option<Height>, ReplicaError> {
    let (applied, certified) = (ledger.height(), finality.last_height().max(past.begins));
    let lacks = applied > certified && past.blocks.block(certified + 1)?.is_none();
    Ok(lacks.then_some(applied))
}

/// The engine's start: the newest archived certificate of a block that is logged here, if there is one.
fn start<D: Disk>(
    network: &Network,
    past: &Past<D>,
    ledger: &Ledger,
    height: Height,
    newest: (Height, Digest),
) -> Result<Start, ReplicaError> {
    let applied = ledger.height();
    let committee: Committee = network.chain.committee();
    let first = Engine::first_benches(&committee, &network.rules);
    let (superblock, benches) = match past.finality(height)? {
        Some(Finality { certificate, benches, .. }) => {
            // Attendance counts restart in each epoch.
            let goes_on = network.chain.heights.contains(&height);
            (certificate.statement.superblock, if goes_on { benches } else { first })
        }
        None => (Digest::default(), first),
    };
    let mut roots = Vec::new();
    for of in network.rules.signed_by(height)..=applied {
        let Some((state, receipts)) = past.outcome(of, newest)? else { continue };
        roots.push((of, outcome_root(&state, &receipts)));
    }
    Ok(Start { height, superblock, benches, applied, roots })
}

#[cfg(test)]
mod tests {
    use consensus::Contents;
    use ledger::contracts::{EthereumKey, EthereumRequest};
    use ledger::{POLICY_SIGNATURES_PER_SUB_BLOCK, TYPED_DATA_PER_SUB_BLOCK};
    use primitives::{
        Address, AssetId, Body, Digest, EnvelopeBytes, KeySignature, KeySignatures, Operation, PublicKey, Reference,
        ReferenceKind, SecretKey, Signature, SignedBy, SignedByWallet, SubBlock, Transaction, WalletSignature,
    };

    use super::check_payload;
    use crate::EthereumSection;

    const SECTION: EthereumSection = EthereumSection { chain: 7, sub_block_gas: 100_000 };

    fn checked(native: Vec<Transaction>, ethereum: Vec<Vec<u8>>) -> Option<Contents> {
        let sub_block = SubBlock { time_ms: 5, native, ethereum, ..SubBlock::default() };
        check_payload(SECTION, 11, 4)(&sub_block.to_payload())
    }

    /// A validator checks no more wallet signatures than the quota allows before it votes for a sub-block.
    #[test]
    fn a_sub_block_of_too_many_recoveries_gets_no_vote() {
        let operation = Operation::Pay { to: Address([2; 20]), asset: AssetId(0), amount: 1 };
        let body = Body { chain: 7, account: Address([1; 20]), sequence: 1, until: 50_000, operation };
        let signed_by = SignedBy::TypedData { network: Digest::default(), signature: WalletSignature([1; 64]) };
        let typed = Transaction { body, signed_by };
        let quota = TYPED_DATA_PER_SUB_BLOCK as usize;
        let transactions = |count| checked(vec![typed.clone(); count], Vec::new()).map(|found| found.transactions);
        assert_eq!(transactions(quota), Some(quota));
        assert_eq!(transactions(quota + 1), None);
    }

    /// The attack: a proposer packs requests of accounts with policies, each with as many signatures as it can have.
    #[test]
    fn a_sub_block_of_too_many_signatures_of_policies_gets_no_vote() {
        let operation = Operation::Pay { to: Address([2; 20]), asset: AssetId(0), amount: 1 };
        let body = Body { chain: 7, account: Address([1; 20]), sequence: 1, until: 50_000, operation };
        let keys = |count: u8| {
            (0..count).map(|at| KeySignature { key: PublicKey([at; 32]), signature: Signature([1; 64]) }).collect()
        };
        let wallets = |count: u8| {
            let signature = WalletSignature([1; 64]);
            (0..count).map(|at| SignedByWallet { wallet: Address([at; 20]), signature }).collect()
        };
        let of = |of_keys, of_wallets| {
            let signatures = KeySignatures { keys: keys(of_keys), wallets: wallets(of_wallets) };
            Transaction::by_policy(body.clone(), Digest::default(), signatures)
        };
        let check = |count: usize, one: &Transaction, more: &[Transaction]| {
            check_payload(SECTION, 99, 4)(
                &SubBlock { native: [&vec![one.clone(); count][..], more].concat(), ..SubBlock::default() }
                    .to_payload(),
            )
            .is_some()
        };
        let most = POLICY_SIGNATURES_PER_SUB_BLOCK as usize / 16;
        assert!(check(most, &of(16, 0), &[]) && !check(most, &of(16, 0), &[of(1, 0)]));
        let most = TYPED_DATA_PER_SUB_BLOCK as usize / 16;
        assert!(check(most, &of(0, 16), &[]) && !check(most, &of(0, 16), &[of(0, 1)]));
        assert!(check(most, &of(0, 16), &[of(16, 0)]), "each kind has its own quota");
    }

    /// The attack: a proposer fills its sub-block with envelopes, or sends one that no client can open.
    #[test]
    fn a_sub_block_of_too_many_envelopes_or_of_one_without_a_point_gets_no_vote() {
        // The generator of G2.
        const POINT: [&str; 2] = [
            "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e",
            "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8",
        ];
        let of = |point: [u8; 96]| {
            let envelope = EnvelopeBytes::new(1, point, vec![0; 512].into()).expect("a size");
            let operation = Operation::Sealed(Box::new(envelope));
            let body = Body { chain: 7, account: Address([1; 20]), sequence: 1, until: 50_000, operation };
            body.sign(&Digest::default(), &SecretKey::from_seed([1; 32]))
        };
        let sound = of(primitives::from_hex(&POINT.concat()).expect("96 bytes"));
        let seats = |seats: usize, count: usize, one: &Transaction| {
            let sub_block = SubBlock { native: vec![one.clone(); count], ..SubBlock::default() };
            check_payload(SECTION, 99, seats)(&sub_block.to_payload()).is_some()
        };
        for (committee, most) in [(0, 64), (1, 64), (4, 16), (32, 2)] {
            assert!(seats(committee, most, &sound) && !seats(committee, most + 1, &sound), "{committee} seats");
        }
        assert!(!seats(4, 1, &of([0; 96])) && !seats(4, 1, &of([0xff; 96])));
        let mut typed = sound;
        typed.signed_by = SignedBy::TypedData { network: Digest::default(), signature: WalletSignature([1; 64]) };
        assert!(!seats(4, 1, &typed));
    }

    #[test]
    fn a_sub_block_of_ethereum_transactions_that_no_state_accepts_gets_no_vote() {
        let key = EthereumKey::from_seed([3; 32]).expect("a key");
        let signed = |chain, gas_limit| {
            key.sign(&EthereumRequest { chain, gas_limit, to: Some(Address([2; 20])), ..EthereumRequest::default() })
        };
        let transfer = signed(7, 50_000);
        let contents = checked(Vec::new(), vec![transfer.clone(); 2]).expect("as much gas as the quota");
        assert_eq!((contents.transactions, contents.time_ms), (2, Some(5)));
        for refused in [vec![transfer; 3], vec![signed(8, 50_000)], vec![signed(7, 20_999)], vec![vec![1, 2, 3]]] {
            assert!(checked(Vec::new(), refused.clone()).is_none(), "{refused:?}");
        }
        assert!(check_payload(SECTION, 11, 4)(b"no sub-block").is_none());
    }

    /// The attack: one validator with the new program proposes what the others cannot decode yet.
    #[test]
    fn a_sub_block_with_an_operation_of_rules_to_come_gets_no_vote() {
        let reference = Reference { kind: ReferenceKind::Text, bytes: b"invoice 7"[..].into() };
        let operation = Operation::PayReferenced { to: Address([2; 20]), asset: AssetId(0), amount: 1, reference };
        let body = Body { chain: 7, account: Address([1; 20]), sequence: 1, until: 50_000, operation };
        let key = SecretKey::from_seed([1; 32]);
        let sub_block = SubBlock { native: vec![body.sign(&Digest::default(), &key)], ..SubBlock::default() };
        let is_early = |rules| check_payload(SECTION, rules, 4)(&sub_block.to_payload()).expect("a sub-block").is_early;
        assert_eq!([11, 12, 13].map(is_early), [true, false, false]);
    }
}
