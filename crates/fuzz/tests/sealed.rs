//! What is inside envelopes, envelopes, frames about opened ones, and posts about the key that they are sealed to. The
//! seeds are the vectors of `docs/sealed-vectors.json`, and a generation of four seats.

use fuzz::Target;
use ledger::{Genesis, Ledger, Listing, Member, Membership, SealPost, SealStep, SealTerms, Seals, Signatures, Terms};
use payments::{SealSeed, dealing, false_dealing};
use primitives::{
    AssetId, Body, Digest, EnvelopeBytes, Fraction, Operation, SecretKey, SubBlock, Superblock, Transaction,
};
use replica::UnsealFrame;
use sealing::{BoxSize, Envelope, Label, OpeningKey, SealedText};
use serde_json::Value;

fn unhex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().expect("text").trim_start_matches("0x");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn made() -> Vec<Value> {
    let vectors: Value = serde_json::from_str(include_str!("../../../docs/sealed-vectors.json")).expect("the vectors");
    vectors["made"].as_array().expect("a list").clone()
}

fn opened(of: &Value) -> Vec<u8> {
    let size = BoxSize::ALL[of["size"].as_u64().expect("a number") as usize];
    let point = unhex(&of["point"]).try_into().expect("96 bytes");
    let envelope = Envelope::new(size, point, unhex(&of["box"])).expect("an envelope");
    let label = Label(Digest(unhex(&of["label"]).try_into().expect("32 bytes")));
    let key = OpeningKey(unhex(&of["opening_key"]).try_into().expect("48 bytes"));
    envelope.open(&label, &key).and_then(|text| text.padded()).expect("it opens").1
}

#[test]
fn texts() {
    Target::new("sealed-text", made().iter().map(opened).collect()).run(|bytes| {
        let text = SealedText::unpadded(bytes).map_err(|fault| fault.to_string())?;
        let (_, padded) = text.padded().map_err(|fault| fault.to_string())?;
        let length = bytes.len().min(padded.len());
        assert_eq!(padded[..length], bytes[..length], "a second encoding");
        Ok(format!("{} operations", text.0.len()))
    });
}

#[test]
fn points_and_keys() {
    let points = made().iter().map(|of| unhex(&of["point"])).collect();
    Target::new("sealed-point", points).run(|bytes| {
        let point = bytes.try_into().map_err(|_| "another length".to_string())?;
        Envelope::new(BoxSize::Small, point, vec![0; 512]).map_err(|fault| fault.to_string())?;
        Ok("a point".into())
    });
}

/// What a block has of an envelope. The seeds are envelopes of each size.
#[test]
fn envelopes_of_a_block() {
    let seed = |of: &Value| {
        let point = unhex(&of["point"]).try_into().expect("96 bytes");
        let envelope = EnvelopeBytes::new(1, point, unhex(&of["box"]).into()).expect("a size");
        borsh::to_vec(&Operation::Sealed(Box::new(envelope))).expect("memory")
    };
    Target::new("sealed-envelope", made().iter().map(seed).collect()).run(|bytes| {
        let operation: Operation = borsh::from_slice(bytes).map_err(|fault| fault.to_string())?;
        assert_eq!(borsh::to_vec(&operation).expect("memory"), bytes, "a second encoding");
        let Operation::Sealed(envelope) = operation else { return Ok("another operation".into()) };
        assert_eq!(envelope.sealed().len(), envelope.size().bytes());
        Ok(format!("an envelope, {}", if Envelope::parse(&envelope).is_ok() { "with a point" } else { "without one" }))
    });
}

#[test]
fn frames_about_opened_envelopes() {
    let points: Vec<OpeningKey> = (0..64).map(|seed| OpeningKey([seed; 48])).collect();
    let shares = UnsealFrame::Shares { height: 7, key: 2, points: points[..2].into() };
    let frames = [UnsealFrame::Ask(u64::MAX), shares, UnsealFrame::Keys { height: 9, points: points.into() }];
    Target::new("unseal-frame", frames.iter().map(UnsealFrame::to_bytes).collect()).run(|bytes| {
        let frame = UnsealFrame::from_bytes(bytes).map_err(|error| error.to_string())?;
        assert_eq!(frame.to_bytes(), bytes, "a second encoding");
        Ok(format!("{:?}", std::mem::discriminant(&frame)))
    });
}

fn seat(number: u8) -> SecretKey {
    SecretKey::from_seed([number + 1; 32])
}

fn founded() -> Ledger {
    let founder = |number: u8| {
        let key = seat(number).public();
        Member { account: key.address(), key, address: String::new(), stake: 100 }
    };
    let terms = Terms { network: Digest([7; 32]), committee: 4, minimum_stake: 1, ..Terms::default() };
    let membership = Some(Membership { terms, reward_pool: 0, founders: (0..4).map(founder).collect() });
    let assets = vec![Listing::new("USD", 2, seat(0).public().address())];
    let balances = vec![(seat(0).public().address(), AssetId(0), 1_000)];
    let (mu, seals) = (Fraction::power_of_two(10), SealTerms::named("fewest"));
    Ledger::new(&Genesis { chain: 1, mu, assets, balances, membership, seals, ..Genesis::default() }).expect("sound")
}

fn apply(ledger: &mut Ledger, native: Vec<Transaction>) {
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
    ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("a block of posts applies");
    ledger.audit().expect("sound");
}

fn duty(ledger: &Ledger, of: u8, post: &[u8]) -> Transaction {
    let operation = Operation::SealDuty { key: 1, post: post.to_vec() };
    let (account, until) = (seat(of).public().address(), ledger.height() + 9);
    Body { chain: 1, account, sequence: 0, until, operation }.sign(&ledger.network(), &seat(of))
}

/// What a seat posts at the present step. The last one deals wrongly, and who gets that complains.
fn post(ledger: &Ledger, of: u8) -> SealPost {
    let board = ledger.seals().and_then(Seals::board).expect("a key is being made");
    let (account, seed) = (seat(of).public().address(), SealSeed([of + 1; 32]));
    if board.at().0 == SealStep::Register {
        let possession = seed.possession(&ledger.network(), board.number(), &account);
        return SealPost::Register { key: seed.key().public().to_bytes(), possession };
    }
    let (generation, member) = (board.generation().expect("it began"), board.member(&account).expect("a member"));
    match board.at().0 {
        SealStep::Deal if of == 3 => {
            let victim = board.member(&seat(0).public().address()).expect("it registered");
            SealPost::Deal(false_dealing(generation.terms(), member, &seed.of_dealing(), victim).encode())
        }
        SealStep::Deal => SealPost::Deal(dealing(generation.terms(), member, &seed.of_dealing()).encode()),
        SealStep::Complain => {
            let open = generation.standing().filter(|dealer| !board.has_complained(member, *dealer));
            let wrong = open.filter_map(|dealer| generation.complaint(member, &seed.key(), dealer)).next();
            wrong.map_or(SealPost::Fine, |wrong| SealPost::Complain(Box::new(wrong)))
        }
        _ => SealPost::Hold(generation.share(member, &seed.key()).expect("it fits").hold(generation.terms())),
    }
}

/// A seat posts whatever bytes it likes, at each step: one encoding, and a sound state.
#[test]
fn posts_about_a_key() {
    let mut ledger = founded();
    apply(&mut ledger, Vec::new());
    let (mut steps, mut seeds) = (Vec::new(), vec![SealPost::Lost.encode()]);
    while let Some(board) = ledger.seals().and_then(Seals::board) {
        let awaited: Vec<u8> =
            (0..4).filter(|of| board.awaited().any(|one| *one == seat(*of).public().address())).collect();
        steps.push(ledger.clone());
        let posts: Vec<(u8, Vec<u8>)> = awaited.into_iter().map(|of| (of, post(&ledger, of).encode())).collect();
        seeds.extend(posts.iter().map(|(_, post)| post.clone()));
        let duties = posts.iter().map(|(of, post)| duty(&ledger, *of, post)).collect();
        apply(&mut ledger, duties);
    }
    steps.push(ledger);
    assert!(steps.len() >= 5, "each step, and the key");
    Target::new("seal-post", seeds).run(|bytes| {
        let post = SealPost::parse(bytes).ok_or("no post")?;
        assert_eq!(post.encode(), bytes, "a second encoding");
        for step in &steps {
            let mut ledger = step.clone();
            let duty = duty(&ledger, 3, bytes);
            apply(&mut ledger, vec![duty]);
        }
        Ok(format!("{:?}", std::mem::discriminant(&post)))
    });
}
