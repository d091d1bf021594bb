//! Everything that is decoded from bytes: messages, signed statements, files.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use consensus::tendermint::{self, Kind, Message, Messages, Quorum, Value};
use consensus::{
    ALL_HEIGHTS, Certificate, Chain, Commit, Decided, Engine, Finality, Frame, LogEntry, Mask, Proposal, Record, Rules,
    Statement, Status, Vote, Votes,
};
use fuzz::{Room, Target};
use kernel::FaultDisk;
use ledger::contracts::{DeveloperBlock, DeveloperEdit};
use ledger::{
    AccountProof, BlockReceipts, Genesis, LaneAsset, LaneBls, LaneProof, LaneTerms, Ledger, Listing, Member,
    Membership, ModifiedProof, OfferProof, Pair, ReceiptProof, ReceiptsTrie, Restore, Roots, Schedule, Signatures,
    Snapshot, Terms, ValidatorsProof,
};
use payments::{
    AssetRule, BlsSecretKey, BridgeEntry, BridgeOperation, CertifiedPayment, DkgPurpose, DkgTerms, KeyGeneration,
    LaneAnswer, LaneCommittee, LaneEvidence, LaneInput, LanePeer, LaneRegistration, LaneRules, LaneSettings,
    LaneValidator, LogOwner, Output, OutputId, OutputProof, Payment, PaymentCertificate, PaymentView, Recipient,
    SpentOutput, dealing, new_log, owner_message, spend_request, spender_request,
};
use primitives::venue::{SignedReport, VenueReport};
use primitives::{
    Address, AssetId, Body, ChangedBy, ClientId, Committed, Contradiction, Digest, Evidence, Fraction, KeyPolicy,
    KeySigner, KeysChange, Life, OfferPlace, OfferReplacement, Operation, Price, RecoverKeys, Reference, ReferenceKind,
    ReferenceRule, Scope, SecretKey, SessionsFate, SetKeys, Signature, Stake, SubBlock, Superblock, Transaction,
    Upgrade, WalletKey, WalletSigner, verify_transactions,
};
use replica::Handover;
use replica::state_sync::message::StateMessage;
use store::{Options, Store, VoteLog, VoteOptions};

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number + 1; 32])
}

fn chain() -> Chain {
    Chain { genesis: Digest([4; 32]), epoch: 3, heights: ALL_HEIGHTS, keys: (0..4).map(|n| key(n).public()).collect() }
}

/// A reader of a format with one encoding.
fn canonical<T: BorshDeserialize + BorshSerialize>(bytes: &[u8]) -> Result<T, String> {
    let value: T = borsh::from_slice(bytes).map_err(|error| error.to_string())?;
    assert_eq!(borsh::to_vec(&value).expect("in memory"), bytes, "a second encoding");
    Ok(value)
}

fn encoded(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("in memory")
}

/// One of every operation.
fn operations() -> Vec<Operation> {
    let (one, two, units) = (AssetId(0), AssetId(1), 7_000);
    let (to, key) = (Address([9; 20]), key(7));
    let scope = Scope { network: Digest([4; 32]), epoch: 0 };
    let commits = [2, 3].map(|root| {
        let (superblock, root) = (Digest([1; 32]), Digest([root; 32]));
        Committed { superblock, root, signature: key.sign(&scope.commit(1, &superblock, &root).0) }
    });
    let evidence = Evidence { epoch: 0, member: 0, height: 1, contradiction: Contradiction::Commits(commits) };
    let limit = Price::from_f64(1.25).expect("in range");
    vec![
        Operation::Pay { to, asset: one, amount: units },
        Operation::offer(one, two, units, limit),
        Operation::cancel(one, two, limit, 3),
        Operation::Replace(Box::new(OfferReplacement {
            old: OfferPlace { sell: one, buy: two, limit, offer: 3 },
            remains: units,
            amount: units + 1,
            limit,
            life: Life::Until(9),
            client: ClientId([5; 16]),
        })),
        Operation::CreateAccount { account: to, key: key.public() },
        Operation::Stake(Box::new(Stake::new(5, "a.example:9100".into(), 1, &to, &key))),
        Operation::Issue { to, asset: two, amount: units },
        Operation::Burn { asset: two, amount: units },
        Operation::Unstake { units },
        Operation::Accuse(Box::new(evidence)),
        Operation::Approve { upgrade: Upgrade { rules: 12, manifest: Digest([4; 32]), notice: 9 }, at: 3 },
        Operation::Unapprove { rules: 12, at: 3 },
        Operation::PayReferenced {
            to,
            asset: one,
            amount: units,
            reference: Reference { kind: ReferenceKind::Text, bytes: b"order 7"[..].into() },
        },
        Operation::IssueReferenced {
            to,
            asset: one,
            amount: units,
            reference: Reference { kind: ReferenceKind::Uuid, bytes: [7; 16][..].into() },
        },
        Operation::SetReceiving { references: ReferenceRule::Required },
        Operation::CompleteKeys { account: to },
    ]
    .into_iter()
    .chain(changes_of_keys())
    .chain(at_venues())
    .collect()
}

fn policy() -> KeyPolicy {
    let mut keys: Vec<KeySigner> = [1, 2].map(|one| KeySigner { key: key(one).public(), weight: one }).to_vec();
    keys.sort_by_key(|one| one.key);
    KeyPolicy {
        keys: keys.into(),
        wallets: [WalletSigner { wallet: wallet().address(), weight: 1 }].into(),
        moves: 2,
        governs: 3,
        guardian_keys: [key(3).public()].into(),
        guardian_wallets: [].into(),
        guardians: 1,
        delay: 600,
    }
}

fn wallet() -> WalletKey {
    WalletKey::from_bytes([3; 32]).expect("in range")
}

/// Changes of keys that those have signed who may.
fn changes_of_keys() -> [Operation; 2] {
    let (network, account) = (Digest([7; 32]), key(1).public().address());
    let change = KeysChange { account, last: Digest::default(), policy: policy(), sessions: SessionsFate::Close };
    let signed = |by| change.sign(by, &network, &key(1)).with(&change.sign_typed(by, 1, &network, &wallet()));
    let set = SetKeys { change: change.clone(), first: key(1).public(), signatures: signed(ChangedBy::Signers) };
    let recover = RecoverKeys { change: change.clone(), signatures: signed(ChangedBy::Guardians) };
    [Operation::SetKeys(Box::new(set)), Operation::RecoverKeys(Box::new(recover))]
}

fn venue_vectors() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../docs/venue-vectors.json")).expect("vectors")
}

fn from_digits(text: &serde_json::Value) -> Vec<u8> {
    let hex = text.as_str().expect("bytes").trim_start_matches("0x").as_bytes();
    let digit = |digit: u8| char::from(digit).to_digit(16).expect("a digit") as u8;
    hex.chunks_exact(2).map(|two| digit(two[0]) << 4 | digit(two[1])).collect()
}

/// One of each operation at a venue, from the vectors.
fn at_venues() -> Vec<Operation> {
    let of = |operation: &serde_json::Value| {
        Operation::Venue(borsh::from_slice(&from_digits(&operation["bytes"])).expect("an operation"))
    };
    venue_vectors()["operations"].as_array().expect("a list").iter().map(of).collect()
}

/// Reports of fills in both forms: whatever the bytes are, a path is bounded, and one report has one encoding.
#[test]
fn reports_of_venues() {
    let vectors = venue_vectors();
    let of_step = vectors["step"]["reports"].as_array().expect("a list").iter().map(from_digits);
    let seeds = of_step.chain([from_digits(&vectors["report"]["bytes"])]).collect();
    Target::new("venue-report", seeds).run(|bytes| {
        let report = VenueReport::of_bytes(bytes).map_err(|error| error.to_string())?;
        assert_eq!(report.to_bytes(), bytes, "a second encoding");
        assert!(bytes.len() <= 833 && report.is_plain());
        assert_eq!(report.header().is_some(), matches!(report, VenueReport::Step(_)));
        Ok(format!("{} of {} bytes", report.is_signed(&Digest([0x4e; 32])), bytes.len()))
    });
}

fn transactions() -> Vec<Transaction> {
    let own = |(sequence, operation)| {
        Body { chain: 1, account: key(1).public().address(), sequence, until: 50_000, operation }
            .sign(&Digest([7; 32]), &key(1))
    };
    let wallet = wallet();
    let typed = |(sequence, operation)| {
        Body { chain: 1, account: wallet.address(), sequence, until: 50_000, operation }
            .sign_typed(Digest([7; 32]), &wallet)
    };
    let last = Digest([5; 32]);
    let together = |(sequence, operation)| {
        let body = Body { chain: 1, account: key(1).public().address(), sequence, until: 50_000, operation };
        let signatures = body.sign_for_policy(&last, &Digest([7; 32]), &key(2));
        let signatures = signatures.with(&body.sign_typed_for_policy(&last, &Digest([7; 32]), &wallet));
        Transaction::by_policy(body, last, signatures)
    };
    let numbered = || (1..).zip(operations());
    numbered().map(own).chain(numbered().map(typed)).chain(numbered().take(2).map(together)).collect()
}

fn sub_block() -> SubBlock {
    let ethereum = vec![vec![2, 0xc0], vec![0xc0]];
    let (native, forged, senders) = (transactions(), vec![1, 3], vec![Some(Address([9; 20])), None]);
    SubBlock { proposer: 2, time_ms: 1_800_000_000_000, native, ethereum, forged, senders }
}

fn superblock() -> Superblock {
    let sub_blocks = vec![sub_block(), SubBlock::default()];
    Superblock {
        height: 5,
        parent: Digest([1; 32]),
        time_ms: 9,
        parent_root: Digest([2; 32]),
        sub_blocks,
        ..Superblock::default()
    }
}

#[test]
fn transactions_and_blocks() {
    let seeds = transactions().iter().map(encoded).collect();
    Target::new("transaction", seeds).run(|bytes| {
        let transaction: Transaction = canonical(bytes)?;
        let signed = verify_transactions(&Digest([7; 32]), &[&transaction])[0];
        Ok(format!("{signed} {:?}", std::mem::discriminant(&transaction.body.operation)))
    });
    let payloads = vec![sub_block().to_payload(), SubBlock::default().to_payload()];
    Target::new("sub-block", payloads).run(|bytes| {
        let read = SubBlock::from_payload(3, bytes).map_err(|error| error.to_string())?;
        assert_eq!(read.to_payload(), bytes, "a second encoding");
        Ok(format!("{} transactions", read.native.len()))
    });
    Target::new("superblock", vec![superblock().to_bytes(), Superblock::default().to_bytes()]).run(|bytes| {
        let block: Superblock = canonical(bytes)?;
        assert_eq!(block.to_bytes(), bytes);
        Ok(format!("{} sub-blocks", block.sub_blocks.len()))
    });
}

fn certificate() -> Certificate {
    let statement = Statement { height: 6, superblock: Digest([8; 32]), root: Digest([9; 32]) };
    let sign = |signer: u8| (signer, Commit::sign(&chain(), statement, signer, &key(signer)).signature);
    Certificate { epoch: 3, statement, signatures: (0..3).map(sign).collect() }
}

fn rounds() -> Messages {
    let value = Value { slot: 1, digest: Digest([5; 32]) };
    let signature = Signature([6; 64]);
    let vote = tendermint::Vote { height: 6, round: 2, kind: Kind::Prevote, value: Some(value), signer: 1, signature };
    let quorum = Quorum { round: 2, value, signatures: vec![(0, signature), (1, signature)] };
    let proposal = tendermint::Proposal { height: 6, round: 2, value, valid_round: Some(1), signer: 0, signature };
    let entry = tendermint::EntryProof { round: 2, skips: true, votes: vec![vote] };
    let messages = vec![
        Message::Proposal(proposal),
        Message::Vote(vote),
        Message::Polka(quorum.clone()),
        Message::Entry(entry),
        Message::Decision(quorum),
    ];
    Messages { epoch: 3, height: 6, messages }
}

fn frames() -> Vec<Frame> {
    let (digest, slot, round) = (Digest([5; 32]), 1, 2);
    let votes = [
        Vote::Echo { slot, digest },
        Vote::Ready { slot: 2, digest },
        Vote::Estimate { slot, round, value: true },
        Vote::Estimate { slot: 3, round: 1, value: false },
        Vote::Coordinate { slot, round, value: false },
        Vote::Auxiliary { slot, round, values: Mask::Both },
    ];
    let payload: consensus::Payload = sub_block().to_payload().into();
    let proposal = Proposal::sign(&chain(), 6, 1, &payload, &key(1));
    let commit = Commit::sign(&chain(), certificate().statement, 2, &key(2));
    let decided = Decided { certificate: certificate(), sub_blocks: vec![(1, payload.clone())] };
    vec![
        Frame::Votes(Votes::pack(3, 6, votes)),
        Frame::Proposal(proposal, payload.clone()),
        Frame::Fetch { height: 6, slot, digest },
        Frame::Commit(commit),
        Frame::Certificate(certificate()),
        Frame::Status(Status { epoch: 3, decided: 9, certified: 8, live: 12, waits: true, asks: false }),
        Frame::SyncRequest { from: 1, to: 40 },
        Frame::Sync(vec![decided]),
        Frame::Rounds(rounds()),
        Frame::Transactions(payload),
    ]
}

/// Edits of a developers' chain, as bytes of the section of Ethereum transactions.
#[test]
fn edits() {
    let account = Address([7; 20]);
    let edits = [
        DeveloperEdit::Balance { account, wei: 1 << 70 },
        DeveloperEdit::Nonce { account, nonce: 9 },
        DeveloperEdit::Code { account, code: vec![0x60; 90] },
        DeveloperEdit::Slot { account, slot: [1; 32], value: [2; 32] },
        DeveloperEdit::Block(DeveloperBlock { coinbase: Some(account), random: Some([3; 32]), gas_limit: Some(9) }),
    ];
    let seeds = edits.iter().map(DeveloperEdit::encode).collect();
    let target = Target { room: Some(Room::default()), ..Target::new("edit", seeds) };
    target.run(|bytes| {
        let edit = DeveloperEdit::decode(bytes).ok_or("not an edit")?;
        assert_eq!(edit.encode(), bytes, "one encoding");
        Ok(format!("{:?}", std::mem::discriminant(&edit)))
    });
}

/// An engine survives any input from any peer, and keeps no more of it than heights and slots allow.
#[test]
fn frames_of_consensus_and_what_an_engine_does_with_them() {
    let section = replica::EthereumSection { chain: 1, sub_block_gas: 1 << 20 };
    let rules = [Rules::default(), Rules::tendermint()];
    let seeds: Vec<Vec<u8>> = frames().iter().map(Frame::to_bytes).collect();
    let mut engines: Vec<Engine> = rules
        .into_iter()
        .map(|rules| {
            let benches = Engine::first_benches(&chain().committee(), &rules);
            let setup = consensus::Setup {
                chain: chain(),
                rules,
                followers: 1,
                me: 0,
                signer: std::sync::Arc::new(key(0)),
                check: replica::check_payload(section, ledger::RULES_NEWEST, 4),
            };
            let roots = vec![(0, Digest([1; 32]))];
            let start = consensus::Start { height: 0, superblock: Digest::default(), benches, applied: 0, roots };
            let mut engine = Engine::new(setup, start);
            engine.set_clock(1_800_000_000_000);
            engine
        })
        .collect();
    let mut from = 0;
    let target = Target { room: Some(Room { base: 8 << 20, factor: 256 }), ..Target::new("frame", seeds) };
    target.run(|bytes| {
        let frame = Frame::from_bytes(bytes).map_err(|error| error.to_string())?;
        assert_eq!(frame.to_bytes(), bytes, "a second encoding");
        from = from % 4 + 1;
        let mut kind = format!("{:?}", std::mem::discriminant(&frame));
        for engine in &mut engines {
            engine.on_frame(from, frame.clone());
            let turn = engine.finish_turn();
            assert!(turn.diverged.is_none() && engine.live().count() <= 16);
            kind += &format!("{:?} {}", turn.refused, turn.sends.len());
        }
        Ok(kind)
    });
}

#[test]
fn entries_of_vote_logs_and_certificates() {
    let payload: consensus::Payload = sub_block().to_payload().into();
    let held = LogEntry::Held(Proposal::sign(&chain(), 6, 1, &payload, &key(1)), payload);
    let mut seeds = vec![
        encoded(&held),
        encoded(&LogEntry::Voted(Record::Sent(Vote::Echo { slot: 1, digest: Digest([5; 32]) }))),
        encoded(&LogEntry::Committed(Commit::sign(&chain(), certificate().statement, 2, &key(2)))),
    ];
    for message in rounds().messages {
        seeds.push(encoded(&LogEntry::Round(tendermint::RoundRecord::Taken(message))));
    }
    Target::new("vote-entry", seeds).run(|bytes| canonical::<LogEntry>(bytes).map(|_| "an entry".into()));
    let benches = Engine::first_benches(&chain().committee(), &Rules::default());
    let finality = Finality { certificate: certificate(), parent: Digest([1; 32]), benches };
    Target::new("certificate", vec![encoded(&finality)]).run(|bytes| {
        let finality: Finality = canonical(bytes)?;
        Ok(format!("{:?}", finality.certificate.verify(&chain()).map_err(|error| std::mem::discriminant(&error))))
    });
}

/// A ledger with validators, offers and some blocks behind it, and the receipts of the last.
fn ledger() -> (Ledger, BlockReceipts) {
    let founder = |number: u8| {
        let key = key(number).public();
        Member { account: key.address(), key, address: "v.example:1".into(), stake: 1_000 }
    };
    let terms = Terms {
        network: Digest([4; 32]),
        schedule: Schedule { epoch_heights: 4, delay: 2 },
        committee: 3,
        minimum_stake: 100,
        reward: 1,
        slash: Fraction::power_of_two(2),
        ..Terms::default()
    };
    let owner = key(1).public().address();
    let genesis = Genesis {
        chain: 1,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: ["USD", "EUR"].into_iter().map(|symbol| Listing::new(symbol, 2, owner)).collect(),
        balances: vec![(owner, AssetId(0), 5_000_000), (Address([9; 20]), AssetId(1), 70_000)],
        membership: Some(Membership { terms, reward_pool: 1_000, founders: (0..4).map(founder).collect() }),
        ..Genesis::default()
    };
    let mut ledger = Ledger::new(&genesis).expect("sound");
    let mut receipts = None;
    for height in 1..=6 {
        let sub_blocks = vec![SubBlock { native: transactions(), ..SubBlock::default() }];
        let block =
            Superblock { height, parent: ledger.last_block(), time_ms: height, sub_blocks, ..Superblock::default() };
        let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("sound");
        receipts = Some(replica::receipts(&block, &applied));
    }
    (ledger, receipts.expect("blocks"))
}

#[test]
fn receipts_and_snapshots() {
    let (ledger, receipts) = ledger();
    let target =
        Target { room: Some(Room { base: 4 << 20, factor: 128 }), ..Target::new("receipts", vec![encoded(&receipts)]) };
    target.run(|bytes| {
        let receipts: BlockReceipts = canonical(bytes)?;
        ReceiptsTrie::new(&receipts).root();
        Ok(format!("{} outcomes", receipts.outcomes.len()))
    });
    // All chunks of a state, each after its length.
    let chunks: Vec<Vec<u8>> = Snapshot::of(&ledger).collect();
    let whole = |chunks: &[Vec<u8>]| -> Vec<u8> {
        chunks.iter().flat_map(|chunk| [&(chunk.len() as u32).to_le_bytes()[..], chunk].concat()).collect()
    };
    let target =
        Target { room: Some(Room { base: 8 << 20, factor: 512 }), ..Target::new("snapshot", vec![whole(&chunks)]) };
    target.run(|bytes| {
        let (mut restore, mut rest, mut given) = (Restore::default(), bytes, Vec::new());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (chunk, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or("cut off")?;
            restore.push(chunk).map_err(|error| error.to_string())?;
            given.push(chunk.to_vec());
            rest = after;
        }
        let restored = restore.finish().map_err(|error| error.to_string())?;
        assert_eq!(Snapshot::of(&restored).collect::<Vec<_>>(), given, "a second encoding");
        Ok("a state".into())
    });
}

#[test]
fn proofs_for_light_clients() {
    let (ledger, receipts) = ledger();
    let mut roots = Roots::of(&ledger);
    let (state, owner) = (roots.parts().root(), key(1).public().address());
    let accounts = [owner, Address([7; 20])].map(|account| encoded(&roots.prove_account(&ledger, &account)));
    let room = Some(Room::default());
    let target = Target { room, ..Target::new("account-proof", accounts.to_vec()) };
    target.run(|bytes| {
        let proof: AccountProof = canonical(bytes)?;
        proof
            .verify(&state, &owner)
            .map(|account| format!("{}", account.is_some()))
            .or_else(|fault| Ok(fault.to_string()))
    });
    let pair = Pair { sell: AssetId(0), buy: AssetId(1) };
    let place = ledger.book().iter().next().and_then(|(_, offers)| Some(offers.iter().next()?.place));
    let place =
        place.unwrap_or(ledger::Place { limit: Price::from_f64(1.0).expect("in range"), account: owner, id: 2 });
    let target =
        Target { room, ..Target::new("offer-proof", vec![encoded(&roots.prove_offer(&ledger, pair, &place))]) };
    target.run(|bytes| {
        let proof: OfferProof = canonical(bytes)?;
        proof.verify(&state, pair, &place).map(|amount| format!("{amount:?}")).or_else(|fault| Ok(fault.to_string()))
    });
    let validators = roots.prove_validators(&ledger);
    let target = Target { room, ..Target::new("validators-proof", vec![encoded(&validators)]) };
    target.run(|bytes| {
        let proof: ValidatorsProof = canonical(bytes)?;
        proof.verify(&state).map(|_| "holds".into()).or_else(|fault| Ok(fault.to_string()))
    });
    let lane = LaneTerms {
        epoch_heights: 6,
        halt_heights: 3,
        case_deposit: 7,
        lapse_penalty: 0,
        members: vec![vec![key(0).public()]],
        registrars: Vec::new(),
        bls: LaneBls::None,
        accounts: Vec::new(),
        assets: vec![LaneAsset { asset: AssetId(0), least_units: 1, fee: 0, outflow: None }],
        outputs: Vec::new(),
    };
    let assets = vec![Listing::new("USD", 2, owner)];
    let genesis = Genesis { chain: 7, mu: Fraction::power_of_two(10), assets, lane: Some(lane), ..Genesis::default() };
    let mut lane_roots = Roots::of(&Ledger::new(&genesis).expect("sound"));
    let lane_state = lane_roots.parts().root();
    let registration = LaneRegistration::make(&Digest([4; 32]), 1, 0, &[key(30)], &key(31)).0;
    let absent = [BridgeEntry { value: None, ..BridgeEntry::registration(&registration) }];
    let proof = lane_roots.prove_lane(&[absent[0].key]).expect("the chain has a lane");
    let target = Target { room, ..Target::new("lane-proof", vec![encoded(&proof)]) };
    target.run(|bytes| {
        let proof: LaneProof = canonical(bytes)?;
        let is_forged = proof.verify(&lane_state, &[BridgeEntry::registration(&registration).pair()]).is_ok();
        assert!(!is_forged, "a key that nobody registered is proved");
        proof.verify(&lane_state, &[absent[0].pair()]).map(|()| "holds".into()).or_else(|fault| Ok(fault.to_string()))
    });
    let mut tries = ReceiptsTrie::new(&receipts);
    let (root, id) = (tries.root(), receipts.outcomes[0].0);
    let target = Target { room, ..Target::new("receipt-proof", vec![encoded(&tries.prove(&id, &receipts))]) };
    target.run(|bytes| {
        let proof: ReceiptProof = canonical(bytes)?;
        proof.verify(&root, &id).map(|outcome| format!("{}", outcome.is_some())).or_else(|fault| Ok(fault.to_string()))
    });
    let target = Target { room, ..Target::new("modified-proof", vec![encoded(&tries.prove_modified(&owner))]) };
    target.run(|bytes| {
        let proof: ModifiedProof = canonical(bytes)?;
        proof.verify(&root, &owner).map(|changed| format!("{changed}")).or_else(|fault| Ok(fault.to_string()))
    });
    let handover = Handover { certificate: certificate(), receipts: Digest([3; 32]), validators };
    let schedule = Schedule { epoch_heights: 4, delay: 2 };
    let lineage = replica::Lineage { schedule, lag: 2, begins: 0, chain: chain() };
    let target = Target { room, ..Target::new("handover", vec![encoded(&handover)]) };
    target.run(|bytes| {
        let handover: Handover = canonical(bytes)?;
        Ok(lineage.clone().follow(&handover).map_or_else(|error| error.to_string(), |()| "followed".into()))
    });
}

#[test]
fn messages_about_states() {
    let (ledger, _) = ledger();
    let validators = Roots::of(&ledger).prove_validators(&ledger);
    let handover = Handover { certificate: certificate(), receipts: Digest([3; 32]), validators };
    let messages = [
        StateMessage::AskOffer { height: 7, bare: true },
        StateMessage::StateOffer(None),
        StateMessage::AskHandovers { from: 2 },
        StateMessage::Handovers { from: 2, page: vec![handover] },
        StateMessage::AskChunk { height: 7, number: 3 },
        StateMessage::Chunk { height: 7, number: 3, bytes: Some(vec![1, 2, 3]) },
    ];
    let seeds = messages.iter().map(|message| message.to_bytes().to_vec()).collect();
    Target::new("state-message", seeds).run(|bytes| {
        let message = StateMessage::from_bytes(bytes).ok_or("not a message")?;
        assert_eq!(message.to_bytes()[..], *bytes, "a second encoding");
        Ok(format!("{:?}", std::mem::discriminant(&message)))
    });
}

/// A disk with these files.
fn disk_of(files: &[(String, Vec<u8>)]) -> FaultDisk {
    let disk = FaultDisk::new(1);
    for (name, content) in files {
        disk.create(name).and_then(|file| file.write_at(0, content)).expect("written");
    }
    disk
}

fn files_of(disk: &FaultDisk) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> = disk.list().expect("listed").into_iter().map(|(name, _)| name).collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), disk.content(&name))).collect()
}

/// Gives one file after another of a disk to a reader of the whole disk.
fn each_file(name: &str, disk: &FaultDisk, open: impl Fn(FaultDisk) -> Result<String, String>) {
    let files = files_of(disk);
    for (at, (file, content)) in files.iter().enumerate() {
        let name = format!("{name}-{at}");
        let room = Some(Room { base: 8 << 20, factor: 64 });
        Target { room, ..Target::new(&name, vec![content.clone()]) }.run(|bytes| {
            let others = files.iter().filter(|(other, _)| other != file).cloned();
            let files: Vec<_> = others.chain([(file.clone(), bytes.to_vec())]).collect();
            open(disk_of(&files))
        });
    }
}

#[test]
fn logs_checkpoints_and_vote_logs() {
    let options = Options { segment_bytes: 900 };
    let disk = FaultDisk::new(1);
    let (mut store, _) = Store::open(disk.clone(), options).expect("a new store");
    for height in 1..=4 {
        store.append(height, &vec![height as u8; 300]).expect("appended");
        store.sync().expect("synced");
        store.append_receipts(height, &[7; 40]).expect("receipts put");
        if height == 2 {
            let mut writer = store.begin_checkpoint(height).expect("begun");
            std::io::Write::write_all(&mut writer, &[5; 500]).expect("written");
            writer.finish().expect("finished");
        }
    }
    drop(store);
    each_file("store", &disk, |disk| {
        drop(store::inspect(disk.clone()).map_err(|error| error.to_string())?);
        let (store, recovery) = Store::open(disk, options).map_err(|error| error.to_string())?;
        let blocks = recovery.blocks.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let last = store.block(store.last_height()).map_err(|error| error.to_string())?;
        Ok(format!("{} {} {:?}", blocks.len(), last.is_some(), recovery.repairs.len()))
    });
    let disk = FaultDisk::new(2);
    let mut votes = VoteLog::create(disk.clone(), VoteOptions::default()).expect("a new log");
    for height in 1..=3 {
        votes.append(height, &[height as u8; 100]).expect("appended");
        votes.sync().expect("synced");
    }
    drop(votes);
    each_file("votes", &disk, |disk| {
        let (_, found) = VoteLog::open(disk, VoteOptions::default()).map_err(|error| error.to_string())?;
        Ok(format!("{} {} {}", found.floor, found.records.len(), found.repairs.len()))
    });
}

#[test]
fn the_payment_lane() {
    let network = Digest([4; 32]);
    let committee = LaneCommittee::new(network, 0, (0..4).map(|number| vec![key(number).public()]).collect());
    let owner = key(20);
    let held = Output { to: Recipient::Key(owner.public()), asset: AssetId(0), amount: 1_000 };
    let id = OutputId::of_genesis(&network, 0, 1);
    let payment = Payment {
        network,
        home: 0,
        into: 0,
        owner: owner.public(),
        inputs: vec![SpentOutput { id, asset: held.asset, amount: held.amount }],
        outputs: vec![Output { to: Recipient::Account(Address([3; 20])), asset: AssetId(0), amount: 1_000 }],
    };
    let encoded = payment.encode();
    Target::new("payment", vec![encoded.clone()]).run(|bytes| {
        let view = PaymentView::parse(bytes).map_err(|refusal| refusal.to_string())?;
        assert_eq!(view.to_payment().encode(), bytes, "a second encoding");
        Ok(format!("{} inputs", view.inputs().count()))
    });
    let rules = LaneRules { network, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } };
    let settings = LaneSettings {
        rules,
        committee,
        previous: None,
        validator: 0,
        shard: 0,
        now: 0,
        leaves: 1,
        entries_max: 1 << 20,
        trees_waiting_max: 64,
        checks_per_peer: 100_000,
        checks_per_tick: 1_000_000,
        roots_per_validator: 64,
    };
    let log = new_log(&LogOwner { network, home: 0, validator: 0, shard: 0 }, [3; 32]);
    let open = |log: &[u8]| LaneValidator::open(settings.clone(), key(0), [0; 32], Some(&log.to_vec()));
    let digest = PaymentView::parse(&encoded).expect("sound").digest();
    let request = spend_request(&encoded, &owner.sign(&owner_message(&network, 0, &digest)), &[OutputProof::Ledger]);
    let question = spender_request(&network, 0, &owner, &id);
    let answer = |validator| LaneAnswer {
        validator,
        size: 3,
        index: 1,
        position: 70,
        signature: owner.sign(b"an answer"),
        path: vec![Digest([6; 32]); 2],
    };
    let mut certificate = Vec::new();
    PaymentCertificate::Answers((0..3).map(answer).collect()).write(&mut certificate);
    Target::new("lane-certificate", vec![certificate]).run(|bytes| {
        let certificate = PaymentCertificate::parse(bytes).map_err(|refusal| refusal.to_string())?;
        let mut again = Vec::new();
        certificate.write(&mut again);
        assert_eq!(again, bytes, "a second encoding");
        Ok(format!("of {}", certificate.cost()))
    });
    let mut other = payment.clone();
    other.outputs[0].to = Recipient::Account(Address([4; 20]));
    let mut pair =
        [payment.encode(), other.encode()].map(|bytes| (bytes, PaymentCertificate::Answers(vec![answer(2)])));
    pair.sort_by_key(|(bytes, _)| PaymentView::parse(bytes).expect("sound").digest());
    let signed_twice = LaneEvidence::Payments { home: 0, validator: 2, pair: Box::new(pair) };
    let views = Box::new([None, Some(digest)].map(|paid| (paid, answer(1))));
    let said_twice = LaneEvidence::Views { committee: 0, case: id, owner: owner.public(), pair: views };
    let (registration, proofs) = LaneRegistration::make(&network, 1, 0, &[key(30)], &key(31));
    let bls = BlsSecretKey::of_shard(&key(30));
    let (with_bls, both) =
        LaneRegistration::make_with_bls(&network, 1, 0, &[key(30)], std::slice::from_ref(&bls), &key(31));
    let mut board =
        KeyGeneration::new(DkgTerms { network, epoch: 1, purpose: DkgPurpose::Lane, keys: vec![bls.public()] });
    let dealt = dealing(board.terms(), 0, &[5; 32]);
    let signature = dealt.sign(&network, 1, &key(30));
    board.deal(dealt.clone()).expect("correct");
    let complaint = board.reveal(0, &bls, 0).expect("it is dealt");
    let summary = PaymentView::parse(&encoded).expect("sound").summary();
    let view = |paid| BridgeOperation::View { case: id, committee: 0, owner: owner.public(), paid, answer: answer(1) };
    let posts = [
        BridgeOperation::Register { registration: with_bls, proofs: both },
        BridgeOperation::Deal { epoch: 1, dealing: Box::new(dealt), signature },
        BridgeOperation::Complain { epoch: 1, complaint: Box::new(complaint) },
        BridgeOperation::Redeem { payment: encoded.clone(), certificate: PaymentCertificate::Answers(vec![answer(1)]) },
        BridgeOperation::Vote { case: id, payment: encoded.clone(), signature: None, answer: answer(1) },
        BridgeOperation::Vote { case: id, payment: encoded.clone(), signature: Some(signature), answer: answer(1) },
        view(None),
        view(Some(Box::new(CertifiedPayment { summary, certificate: PaymentCertificate::Answers(vec![answer(1)]) }))),
        BridgeOperation::Register { registration, proofs },
        BridgeOperation::Accuse { evidence: signed_twice },
        BridgeOperation::Accuse { evidence: said_twice },
    ];
    Target::new("lane-post", posts.iter().map(BridgeOperation::encode).collect()).run(|bytes| {
        let post = BridgeOperation::parse(bytes).map_err(|refusal| refusal.to_string())?;
        assert_eq!(post.encode(), bytes, "a second encoding");
        if let BridgeOperation::Accuse { evidence } = &post {
            assert!(evidence.verify(&settings.committee).is_err(), "forged evidence convicts");
        }
        Ok(format!("{} for {}", post.name(), post.cost()))
    });
    let mut written = log.clone();
    let room = Some(Room { base: 4 << 20, factor: 128 });
    let target = Target { room, takes_seeds: false, ..Target::new("lane-request", vec![request.clone(), question]) };
    target.run(|bytes| {
        let (mut validator, _) = open(&log);
        validator.step(&log, LaneInput::Backed(id, held));
        let peer = LanePeer::default();
        let effects = validator.step(&log, LaneInput::Request { peer, bytes });
        for effect in &effects {
            if let (payments::LaneEffect::Append(record), true) = (effect, bytes == request) {
                written = [&log[..], record].concat();
            }
        }
        Ok(format!("{:?}", effects.iter().map(std::mem::discriminant).collect::<Vec<_>>()))
    });
    let target = Target { room, ..Target::new("lane-log", vec![log.clone(), written]) };
    target.run(|bytes| {
        let (validator, intact) = open(bytes);
        validator.muted().map_or_else(|| Ok(format!("{intact:?}")), |reason| Err(format!("{reason:?}")))
    });
}

#[test]
fn addresses() {
    let seeds = [Address([0xa7; 20]).checked(), Address([0x5b; 20]).to_string()].map(String::into_bytes).to_vec();
    Target::new("address", seeds).run(|bytes| {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let address: Address = text.parse().map_err(|error: primitives::AddressError| match error {
            primitives::AddressError::Hex(_) => "no address",
            primitives::AddressError::Checksum(_) => "a wrong checksum",
        })?;
        assert_eq!(address.checked().parse(), Ok(address));
        Ok("an address".into())
    });
}

#[test]
fn genesis_files() {
    let owner = Address([17; 20]);
    let genesis = Genesis {
        chain: 7,
        fee: 100,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 6, owner), Listing::new("EUR", 2, owner)],
        balances: vec![(owner, AssetId(0), 1_000), (owner, AssetId(1), 70)],
        ..Genesis::default()
    };
    let path = std::env::temp_dir().join(format!("walras-fuzz-{}.json", std::process::id()));
    founding::genesis_file::write(&path, &genesis).expect("written");
    let written = std::fs::read(&path).expect("readable");
    std::fs::remove_file(&path).expect("removed");
    let words = [
        "\"",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "null",
        "1e400",
        "-1",
        "\\u0000",
        "18446744073709551616",
        "\"consensus\":",
    ];
    let room = Some(Room { base: 8 << 20, factor: 256 });
    let target = Target { words: &words, room, ..Target::new("genesis", vec![written]) };
    target.run(|bytes| {
        let (genesis, founding) =
            founding::genesis_file::parse("genesis.json", bytes).map_err(|error| error.to_string())?;
        // An accepted file makes a ledger, or an error says why not.
        Ok(format!("{} {}", Ledger::new(&genesis).is_ok(), founding.is_some()))
    });
}
