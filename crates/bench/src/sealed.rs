//! Envelopes: what sealing costs a client, and what checking and opening a block's envelopes costs a validator, beside
//! the pairings alone.

use std::time::Instant;

use blst::blst_fp12;
use blst::min_sig::{PublicKey, SecretKey as Scalar, Signature};
use primitives::{Address, AssetId, Body, Digest, Operation, SecretKey, Transaction};
use sealing::{Envelope, EnvelopeTerms, Label, OpeningKey, SEALING_TAG, SealedText, SealingKey, check_keys, seal};
use serde_json::{Value, json};

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count};
use crate::scaling::median;

/// Sealing and opening of envelopes, beside the limit of pairings alone.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench sealed
  walras-lab bench sealed --envelopes 64 --operations 32 --runs 11 --json")]
pub struct SealedOptions {
    /// Envelopes of a block.
    #[arg(long, default_value_t = 64, value_parser = count(1..=256))]
    pub envelopes: usize,
    /// Operations in each.
    #[arg(long, default_value_t = 32, value_parser = count(1..=32))]
    pub operations: usize,
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

/// A block's envelopes with all that opens them.
struct SealedBlock {
    to: SealingKey,
    text: SealedText,
    terms: Vec<EnvelopeTerms>,
    sealed: Vec<(Label, Envelope)>,
    keys: Vec<(Label, OpeningKey)>,
}

impl SealedBlock {
    fn new(options: &SealedOptions) -> SealedBlock {
        let secret = Scalar::key_gen(&[1; 32], &[]).expect("32 bytes are enough");
        let to = SealingKey::parse(&secret.sk_to_pk().compress()).expect("a public key is a point");
        let signer = SecretKey::from_seed([2; 32]);
        let text = SealedText((0..options.operations as u64).map(|sequence| signed(sequence, &signer)).collect());
        let terms: Vec<EnvelopeTerms> = (0..options.envelopes as u64)
            .map(|sequence| EnvelopeTerms {
                network: NETWORK,
                signer: signer.public(),
                key: 1,
                payer: Address([3; 20]),
                sequence,
                until: 100,
            })
            .collect();
        let sealed: Vec<(Label, Envelope)> = terms.iter().map(|terms| sealed_under(&to, terms, &text)).collect();
        let opening = |label: &Label| OpeningKey(secret.sign(&label.0.0, SEALING_TAG, &[]).compress());
        let keys = sealed.iter().map(|(label, _)| (*label, opening(label))).collect();
        SealedBlock { to, text, terms, sealed, keys }
    }

    fn open(&self) {
        for ((label, envelope), (_, key)) in self.sealed.iter().zip(&self.keys) {
            let text = envelope.open(label, key).expect("it was sealed");
            assert_eq!(text.0.len(), self.text.0.len());
        }
    }

    /// One pairing an envelope, of points that are read already: nothing that opens can take less.
    fn pair(&self, points: &[(Signature, PublicKey)]) {
        for (left, right) in points {
            std::hint::black_box(blst_fp12::miller_loop(&(*right).into(), &(*left).into()).final_exp());
        }
    }

    fn points(&self) -> Vec<(Signature, PublicKey)> {
        let point = |((_, envelope), (_, key)): (&(Label, Envelope), &(Label, OpeningKey))| {
            let left = Signature::uncompress(&key.0).expect("a key");
            (left, PublicKey::uncompress(envelope.point()).expect("a point"))
        };
        self.sealed.iter().zip(&self.keys).map(point).collect()
    }
}

fn signed(sequence: u64, signer: &SecretKey) -> Transaction {
    let operation = Operation::Pay { to: Address([5; 20]), asset: AssetId(1), amount: 7 };
    Body { chain: 1, account: Address([4; 20]), sequence, until: 100, operation }.sign(&NETWORK, signer)
}

fn sealed_under(to: &SealingKey, terms: &EnvelopeTerms, text: &SealedText) -> (Label, Envelope) {
    let Digest(drawn) = Digest::of("walras 2026 bench of envelopes v1", &terms.sequence.to_le_bytes());
    let envelope = seal(to, terms, text, &drawn).expect("it fits");
    (envelope.label(terms), envelope)
}

/// Milliseconds of an action.
fn took(act: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    act();
    1_000.0 * begun.elapsed().as_secs_f64()
}

/// Measures on one thread, each run one after the other so that what disturbs one disturbs all.
fn figures(options: &SealedOptions, say: &mut BenchSteps) -> Value {
    say("seals a block's envelopes");
    let block = SealedBlock::new(options);
    let points = block.points();
    say("opens them, beside the pairings alone");
    let mut rows = [const { Vec::new() }; 4];
    let mut share = Vec::new();
    for _ in 0..options.runs {
        let times = [
            took(|| drop(sealed_under(&block.to, &block.terms[0], &block.text))),
            took(|| assert!(check_keys(&block.to, &block.keys))),
            took(|| block.open()),
            took(|| block.pair(&points)),
        ];
        share.push(times[3] / times[2]);
        rows.iter_mut().zip(times).for_each(|(row, time)| row.push(time));
    }
    let [sealing, checking, opening, pairings] = rows.map(median);
    json!({
        "envelopes": options.envelopes,
        "operations": options.operations,
        "seal_one_ms": sealing,
        "check_keys_ms": checking,
        "open_ms": opening,
        "pairings_ms": pairings,
        "pairings_over_open": median(share),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_measures_what_it_says() {
        let options = SealedOptions { envelopes: 2, operations: 3, runs: 1 };
        let figures = figures(&options, &mut |_| {});
        for name in ["seal_one_ms", "check_keys_ms", "open_ms", "pairings_ms", "pairings_over_open"] {
            assert!(figures[name].as_f64().is_some_and(|value| value > 0.0), "{name}");
        }
    }
}
