//! The first step of a purse that was copied or restored. It asks a quorum what spends each of its outputs, finishes
//! the payments that it learns of, and so finds their change.

use lane::SentPayment;
use payments::{
    ContestedOutput, HomePhase, KnownSpender, Output, OutputProof, PaymentView, Recipient, SignedPayment, SpentOutput,
    spend_request,
};
use primitives::PublicKey;

use super::error::PurseError;
use super::folder::Purse;
use super::held::HeldOutput;
use super::keys::Seed;
use super::lanes::Lanes;
use super::spend::confirm;

/// Asks until nothing new is learned; returns the number of payments that the purse did not know.
///
/// # Errors
/// [`PurseError::Untold`] if too few members answer.
pub fn ask(purse: &mut Purse, seed: &Seed, lanes: &mut Lanes) -> Result<usize, PurseError> {
    let mut found = 0;
    loop {
        let mut heard = Vec::new();
        for held in purse.contents()?.held {
            if HomePhase::of(held.home, lanes.now.epoch) > HomePhase::Exit {
                continue;
            }
            let (key, patience) = (purse.keys.secret(seed, &held.owner)?, lanes.patience);
            let Output { asset, amount, .. } = held.holding.output;
            let output = SpentOutput { id: held.holding.id, asset, amount };
            let of = ContestedOutput { output, home: held.home, owner: held.owner };
            heard.extend(lanes.client(held.home).spender(&key, &of, patience).map_err(PurseError::Untold)?);
        }
        if heard.is_empty() {
            purse.settle_in()?;
            return Ok(found);
        }
        for spender in heard {
            let payment = signed(purse, &spender)?;
            let known: Vec<SentPayment> = purse.outbox.all()?;
            if known.iter().any(|sent| sent.payment.digest == payment.digest) {
                continue;
            }
            let outputs = PaymentView::parse(&payment.payment)?.outputs();
            let keys: Vec<PublicKey> = outputs
                .filter_map(|output| match output.to {
                    Recipient::Key(key) => Some(key),
                    Recipient::Account(_) => None,
                })
                .collect();
            purse.keys.find_lost(seed, &keys)?;
            purse.outbox.insert(&payment)?;
            confirm(purse, lanes, payment)?;
            found += 1;
        }
    }
}

/// The request of a payment that validators know. Those that answer have reserved its inputs, so proofs of inputs
/// that the purse has lost do not matter to them.
fn signed(purse: &Purse, spender: &KnownSpender) -> Result<SignedPayment, PurseError> {
    let contents = purse.contents()?;
    let view = PaymentView::parse(&spender.payment)?;
    let all: Vec<&HeldOutput> = contents.held.iter().chain(contents.spent.values()).collect();
    let proof = |id| all.iter().find(|held| held.holding.id == id).map(|held| held.holding.proof.clone());
    let proofs: Vec<OutputProof> = view.inputs().map(|input| proof(input.id).unwrap_or(OutputProof::Ledger)).collect();
    Ok(SignedPayment {
        payment: spender.payment.clone(),
        digest: view.digest(),
        signature: spender.signature,
        request: spend_request(&spender.payment, &spender.signature, &proofs),
    })
}
