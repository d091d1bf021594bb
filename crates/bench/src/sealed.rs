//! Envelopes: what sealing costs a client, and what opening a block's envelopes costs a validator, by seats of the
//! committee, beside the pairings alone; and what a chain with a sealing key pays for blocks without envelopes.

use std::time::Instant;

use blst::blst_fp12;
use blst::min_sig::{PublicKey, SecretKey as Scalar, Signature};
use primitives::{Address, AssetId, Body, Digest, Enclosure, Operation, Price, SecretKey, Transaction, verify_sealed};
use rayon::prelude::*;
use sealing::{
    Envelope, EnvelopeTerms, Label, OpeningKey, SealShare, SealedText, SealingKey, check_keys, combine, seal,
};
use serde_json::{Value, json};

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count};
use crate::scaling::{ByThreads, median, pools};
use crate::sealed_quiet::quiet;

/// Sealing and opening of envelopes, beside the limit of pairings alone.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench sealed
  walras-lab bench sealed --seats 4 --envelopes 64 --operations 32 --runs 11 --json")]
pub struct SealedOptions {
    /// Seats of committees, each of which holds a share: f + 1 of them open, a quorum of two or three.
    #[arg(long, value_delimiter = ',', default_values_t = [4usize, 32], value_parser = count(2..=32))]
    pub seats: Vec<usize>,
    /// Envelopes of a block.
    #[arg(long, default_value_t = 64, value_parser = count(1..=64))]
    pub envelopes: usize,
    /// Operations in each.
    #[arg(long, default_value_t = 32, value_parser = count(1..=32))]
    pub operations: usize,
    /// Threads of a validator.
    #[arg(long, default_value_t = 2, value_parser = count(1..=1_000))]
    pub threads: usize,
    /// Payments of a block without envelopes.
    #[arg(long, default_value_t = 10_000, value_parser = count(1..=1_000_000))]
    pub payments: usize,
    /// Runs of each, of which the median counts.
    #[arg(long, default_value_t = 7, value_parser = count(1..=1_000))]
    pub runs: usize,
}

impl Measurement for SealedOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        Ok(BenchShown::Figures(figures(&self, say)))
    }
}

const NETWORK: Digest = Digest([7; 32]);
const PAYER: Address = Address([3; 20]);

/// The secret of a committee, and the share of each seat: values of a polynomial whose degree is one less than how many
/// open. Its coefficients are small, which the work does not depend on: shares are points of the whole curve.
struct Committee {
    to: SealingKey,
    shares: Vec<SealShare>,
    /// How many open.
    needed: usize,
}

impl Committee {
    fn new(seats: usize) -> Committee {
        let faulty = (seats - 1) / 3;
        let needed = if faulty == 0 { seats / 2 + 1 } else { faulty + 1 };
        let value = |x: u128| (0..needed as u32).map(|power| (u128::from(power) + 5) * x.pow(power)).sum::<u128>();
        let bytes = |x: u128| -> [u8; 32] {
            let mut bytes = [0; 32];
            bytes[16..].copy_from_slice(&value(x).to_be_bytes());
            bytes
        };
        let secret = Scalar::from_bytes(&bytes(0)).expect("a small number");
        let to = SealingKey::parse(&secret.sk_to_pk().compress()).expect("a public key is a point");
        let shares = (1..=seats as u128).map(|x| SealShare::parse(&bytes(x)).expect("a small number")).collect();
        Committee { to, shares, needed }
    }
}

/// A block's envelopes, and what a validator has when it opens them: the frames of others.
struct SealedBlock {
    committee: Committee,
    text: SealedText,
    terms: Vec<EnvelopeTerms>,
    sealed: Vec<(Label, Envelope)>,
    /// Shares of each seat whose frame comes first, by its place.
    frames: Vec<(u8, Vec<OpeningKey>)>,
}

impl SealedBlock {
    fn new(options: &SealedOptions, seats: usize) -> SealedBlock {
        let committee = Committee::new(seats);
        let signer = SecretKey::from_seed([2; 32]);
        let terms = |sequence: u64| EnvelopeTerms {
            network: NETWORK,
            signer: signer.public(),
            key: 1,
            payer: PAYER,
            sequence,
            until: 100,
        };
        let terms: Vec<EnvelopeTerms> = (0..options.envelopes as u64).map(terms).collect();
        let text_of = |within: &EnvelopeTerms| {
            SealedText((0..options.operations as u64).map(|sequence| signed(sequence, within, &signer)).collect())
        };
        let seal_one = |terms: &EnvelopeTerms| sealed_under(&committee.to, terms, &text_of(terms));
        let sealed: Vec<(Label, Envelope)> = terms.iter().map(seal_one).collect();
        let mut block = SealedBlock { text: text_of(&terms[0]), committee, terms, sealed, frames: Vec::new() };
        // The last seats are the fastest: their places have the largest weights.
        let places = (seats - block.committee.needed..seats).map(|place| place as u8);
        block.frames = places.map(|place| (place, block.shares_of(place))).collect();
        block
    }

    fn shares_of(&self, place: u8) -> Vec<OpeningKey> {
        let share = &self.committee.shares[usize::from(place)];
        self.sealed.iter().map(|(label, _)| share.of(label)).collect()
    }

    /// The keys of all envelopes, with their labels: they are checked.
    fn keys(&self) -> Vec<(Label, OpeningKey)> {
        let keys = combine(&self.frames).expect("enough shares");
        let keys: Vec<_> = self.sealed.iter().map(|(label, _)| *label).zip(keys).collect();
        assert!(check_keys(&self.committee.to, &keys), "the keys are right");
        keys
    }

    /// What is inside, as a ledger opens it, on all threads.
    fn open(&self, keys: &[(Label, OpeningKey)]) -> Vec<SealedText> {
        let open = |((label, envelope), (_, key)): (&(Label, Envelope), &(Label, OpeningKey))| {
            envelope.open(label, key).expect("it was sealed")
        };
        self.sealed.par_iter().zip(keys).map(open).collect()
    }

    /// Checks the signatures of what is inside.
    fn verify(&self, texts: &[SealedText]) {
        let within = self.terms.iter().map(|terms| Enclosure { payer: terms.payer, sequence: terms.sequence });
        let each = within.zip(texts).flat_map(|(within, text)| text.0.iter().map(move |one| (within, one)));
        let each: Vec<(Enclosure, &Transaction)> = each.collect();
        assert!(verify_sealed(&NETWORK, &each).into_iter().all(|is_valid| is_valid), "signed for their envelopes");
    }

    /// One pairing an envelope, of points that are read already: nothing that opens can take less.
    fn pair(&self, points: &[(Signature, PublicKey)]) {
        points.par_iter().for_each(|(left, right)| {
            std::hint::black_box(blst_fp12::miller_loop(&(*right).into(), &(*left).into()).final_exp());
        });
    }

    fn points(&self, keys: &[(Label, OpeningKey)]) -> Vec<(Signature, PublicKey)> {
        let point = |((_, envelope), (_, key)): (&(Label, Envelope), &(Label, OpeningKey))| {
            let left = Signature::uncompress(&key.0).expect("a key");
            (left, PublicKey::uncompress(envelope.point()).expect("a point"))
        };
        self.sealed.iter().zip(keys).map(point).collect()
    }
}

/// An order for an envelope.
fn signed(sequence: u64, within: &EnvelopeTerms, signer: &SecretKey) -> Transaction {
    let limit = Price::from_f64(1.25).expect("in range");
    let operation = Operation::offer(AssetId(0), AssetId(1), 7_000, limit);
    let enclosure = Enclosure { payer: within.payer, sequence: within.sequence };
    Body { chain: 1, account: Address([4; 20]), sequence, until: 100, operation }
        .sign_sealed(&NETWORK, &enclosure, signer)
}

fn sealed_under(to: &SealingKey, terms: &EnvelopeTerms, text: &SealedText) -> (Label, Envelope) {
    let Digest(drawn) = Digest::of("walras 2026 bench of envelopes v1", &terms.sequence.to_le_bytes());
    let envelope = seal(to, terms, text, &drawn).expect("it fits");
    (envelope.label(terms), envelope)
}

/// Milliseconds of an action, and what it gives.
fn took<T>(act: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let given = act();
    (1_000.0 * begun.elapsed().as_secs_f64(), given)
}

/// Each step of a validator, in the order in which it does them.
const STEPS: [&str; 6] =
    ["seal_one_ms", "make_shares_ms", "combine_and_check_ms", "open_ms", "signatures_ms", "pairings_ms"];

/// Measures one committee, each step after the other, so that what disturbs one disturbs all.
fn committee(options: &SealedOptions, seats: usize) -> Value {
    let block = SealedBlock::new(options, seats);
    let points = block.points(&block.keys());
    let (mut rows, mut shares) = ([const { Vec::new() }; STEPS.len()], [const { Vec::new() }; 2]);
    let mut whole = Vec::new();
    for _ in 0..options.runs {
        let (seal_one, _) = took(|| sealed_under(&block.committee.to, &block.terms[0], &block.text));
        let (make, _) = took(|| block.shares_of(0));
        let (combine, keys) = took(|| block.keys());
        let (open, texts) = took(|| block.open(&keys));
        let (verify, ()) = took(|| block.verify(&texts));
        let (pairings, ()) = took(|| block.pair(&points));
        assert!(texts.iter().all(|text| text.0.len() == options.operations), "all of it is there");
        let all = make + combine + open + verify;
        whole.push(all);
        shares[0].push(pairings / open);
        shares[1].push(pairings / all);
        let times = [seal_one, make, combine, open, verify, pairings];
        rows.iter_mut().zip(times).for_each(|(row, time)| row.push(time));
    }
    let mut figures = json!({ "seats": seats, "needed": block.committee.needed, "validator_ms": median(whole) });
    STEPS.into_iter().zip(rows).for_each(|(name, row)| figures[name] = median(row).into());
    let [of_opening, of_all] = shares.map(median);
    figures["pairings_over_open"] = of_opening.into();
    figures["pairings_over_validator"] = of_all.into();
    figures
}

fn figures(options: &SealedOptions, say: &mut BenchSteps) -> Value {
    let pools: ByThreads<rayon::ThreadPool> = pools(&[options.threads]);
    let pool = &pools[&options.threads];
    let of_seats = |seats: &usize| {
        say(&format!("opens a block's envelopes, of {seats} seats"));
        pool.install(|| committee(options, *seats))
    };
    let committees: Vec<Value> = options.seats.iter().map(of_seats).collect();
    say("blocks without envelopes");
    let quiet = pool.install(|| quiet(options.payments, options.runs));
    json!({
        "envelopes": options.envelopes,
        "operations": options.operations,
        "threads": options.threads,
        "committees": committees,
        "without_envelopes": quiet,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_measures_what_it_says() {
        let options =
            SealedOptions { seats: vec![2, 4, 32], envelopes: 2, operations: 3, threads: 2, payments: 20, runs: 1 };
        let figures = figures(&options, &mut |_| {});
        let needed = [2, 2, 11];
        for (of, needed) in figures["committees"].as_array().expect("a list").iter().zip(needed) {
            assert_eq!(of["needed"], needed);
            for name in STEPS.into_iter().chain(["validator_ms", "pairings_over_open", "pairings_over_validator"]) {
                assert!(of[name].as_f64().is_some_and(|value| value > 0.0), "{name}: {of}");
            }
        }
        let quiet = &figures["without_envelopes"];
        assert_eq!(quiet["bytes_more"], 0, "no byte more");
        assert!(quiet["rate_with_over_without"].as_f64().is_some_and(|ratio| ratio > 0.0), "{quiet}");
    }

    #[test]
    fn any_t_frames_make_one_key() {
        let options = SealedOptions { seats: vec![7], envelopes: 3, operations: 1, threads: 1, payments: 1, runs: 1 };
        let block = SealedBlock::new(&options, 7);
        let first: Vec<_> = (0..3).map(|place| (place, block.shares_of(place))).collect();
        let keys: Vec<OpeningKey> = block.keys().into_iter().map(|(_, key)| key).collect();
        assert_eq!(combine(&first), Some(keys));
        assert_ne!(combine(&first[..2]), combine(&first), "two are too few");
    }
}
