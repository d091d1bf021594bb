//! `walras pay watch`: acts on receipts for wallets that are offline. It holds no key of theirs.
//!
//! Wallets leave receipts in a folder (`walras pay leave`). The watcher settles them, posts the certificate of a
//! payment that somebody contests, and in the last epoch of an output returns it to the ledger account of its owner.
//! It looks among its receipts for validators that confirmed two payments of one output, and accuses them. It pays
//! the ledger's fees itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use api::{LaneCandidateBody, LaneCaseBody, LaneCasesBody};
use client::durable::write_durable;
use client::purse::{DepositSlip, LaneNetwork, Lanes, LedgerTrust, ProvedSlip, Purse, Slip, pin_network, read_network};
use lane::LaneClientError;
use payments::{
    BridgeOperation, CaseEvent, EvidenceFinder, FastReceipt, Holding, HomeEpoch, HomePhase, LaneWatcher, OutputId,
    OutputProof, Payment, PaymentBody, PaymentCertificate, Recipient, SignedPayment, SpentOutput, WatchAction,
    is_redeemable, spend_request,
};
use primitives::{Digest, Signature};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Disk, RealDisk};

use super::advice::advised;
use super::founded::{lane_of, of_genesis};
use crate::wallet::send::Sender;

const STATE: &str = "watch.json";
/// Maximum confirmations of one pass that are kept for comparison.
const CONFIRMATIONS_MAX: usize = 1 << 20;

/// Settles receipts and returns money to the ledger for wallets that are offline.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras pay leave watched                                    # a wallet leaves its receipts
  walras pay watch --receipts watched --key fees.json             # until it is stopped
  walras pay watch --receipts watched --key fees.json --once --json")]
pub struct Watch {
    /// Folder with receipts; what was done with them is recorded there.
    #[arg(long, value_name = "DIR")]
    receipts: PathBuf,
    /// Take network and keys from this genesis file; otherwise from the node at the first pass, and from the folder
    /// afterwards.
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// Seconds between two passes.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// Make one pass, then exit.
    #[arg(long)]
    once: bool,
    /// How long to wait for a quorum, in seconds.
    #[arg(long = "lane-patience", value_name = "SECONDS", default_value_t = 30)]
    lane_patience: u64,
    #[command(flatten)]
    sender: Sender,
}

/// What was done for one output or payment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    settled: bool,
    /// Its payment's certificate is in the ledger.
    posted: bool,
    /// Set when nothing is left to do, with the reason.
    over: Option<String>,
}

/// The results of one pass.
#[derive(Default)]
struct Looked {
    settled: usize,
    sent_home: usize,
    posted: usize,
    accused: usize,
    failed: Vec<String>,
}

/// A pass over all receipts.
struct Pass<'a> {
    watch: &'a Watch,
    network: &'a LaneNetwork,
    lanes: Lanes,
    json: bool,
    /// Payments of open cases.
    candidates: Vec<(OutputId, Vec<Arc<PaymentBody>>)>,
    /// The confirmations by validators seen in this pass.
    finder: EvidenceFinder,
    looked: Looked,
}

impl Watch {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let disk = RealDisk::new(&self.receipts).with_context(|| self.receipts.display().to_string())?;
        let in_use = || format!("{}: another watcher uses this folder", self.receipts.display());
        let _lock = disk.lock().with_context(|| self.receipts.display().to_string())?.with_context(in_use)?;
        let network = self.network().map_err(advised)?;
        loop {
            let looked = self.look(json, &network).map_err(advised);
            let failed = match looked {
                Ok(looked) => {
                    self.print(json, &looked);
                    !looked.failed.is_empty()
                }
                // The node may answer later, or another node does.
                Err(error) if !self.once => {
                    eprintln!("nothing was done: {error:#}");
                    true
                }
                Err(error) => return Err(error),
            };
            if self.once {
                return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
            }
            // Also when nobody reads what it prints: the money needs it.
            std::thread::sleep(Duration::from_secs(self.interval));
        }
    }

    /// The lane that is watched: pinned in the folder.
    fn network(&self) -> anyhow::Result<LaneNetwork> {
        if Purse::exists(&self.receipts) {
            let given = self.genesis.as_deref().map(of_genesis).transpose()?;
            let network = read_network(&self.receipts)?;
            let same = given.as_ref().map(|given| *given == network);
            ensure!(same.is_none_or(|same| same), "{} is of another lane than --genesis", self.receipts.display());
            let upgraded = given.filter(|_| network.ledger == LedgerTrust::Unknown);
            let Some(upgraded) = upgraded else { return Ok(network) };
            pin_network(&self.receipts, &upgraded)?;
            return Ok(upgraded.kept_in(&self.receipts)?);
        }
        let network = lane_of(self.genesis.as_deref(), self.sender.server())?;
        pin_network(&self.receipts, &network)?;
        Ok(network)
    }

    fn print(&self, json: bool, looked: &Looked) {
        let Looked { settled, sent_home, posted, accused, failed } = looked;
        if json {
            let body = json!({
                "settled": settled, "sent_home": sent_home, "posted": posted, "accused": accused, "failed": failed
            });
            println!("{body}");
        } else if self.once || settled + sent_home + posted + accused + failed.len() > 0 {
            println!("settled {settled}, returned to the ledger {sent_home}, posted {posted}");
            if *accused > 0 {
                println!("accused {accused} validators that confirmed two payments of one output");
            }
            failed.iter().for_each(|reason| eprintln!("not done: {reason}"));
        }
    }

    fn state(&self) -> anyhow::Result<BTreeMap<String, Done>> {
        let path = self.receipts.join(STATE);
        if !path.exists() {
            return Ok(BTreeMap::new());
        }
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let damaged =
            || format!("{} is damaged: remove it; the work is then repeated, which is harmless", path.display());
        serde_json::from_slice(&bytes).with_context(damaged)
    }

    /// One pass over everything.
    fn look(&self, json: bool, network: &LaneNetwork) -> anyhow::Result<Looked> {
        let server = self.sender.server();
        let lanes = Lanes::new(&server.node(), network, Duration::from_secs(self.lane_patience))?;
        let LaneCasesBody { cases } = server.node().get("/v1/lane/cases")?;
        let candidates = cases.iter().map(candidates_of).collect::<anyhow::Result<Vec<_>>>()?;
        let mut pass = Pass {
            watch: self,
            network,
            lanes,
            json,
            candidates: candidates.into_iter().flatten().collect(),
            finder: EvidenceFinder::new(CONFIRMATIONS_MAX),
            looked: Looked::default(),
        };
        let mut state = self.state()?;
        let before = state.clone();
        for (path, slips) in self.slips(network, &mut pass.looked.failed)? {
            for slip in slips {
                if let Err(error) = pass.attend(&slip, &mut state) {
                    pass.looked.failed.push(format!("{}: {error:#}", path.display()));
                }
            }
        }
        if state != before {
            write_durable(&self.receipts.join(STATE), serde_json::to_string_pretty(&state)?.as_bytes())?;
        }
        Ok(pass.looked)
    }

    /// The slips of all files in the folder. Invalid files are reported and not changed.
    fn slips(&self, network: &LaneNetwork, failed: &mut Vec<String>) -> anyhow::Result<Vec<(PathBuf, Vec<Slip>)>> {
        let entries = std::fs::read_dir(&self.receipts).with_context(|| self.receipts.display().to_string())?;
        let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|end| end == "txt"));
        paths.sort_unstable();
        let mut all = Vec::new();
        for path in paths {
            match Slip::read_file(&path, &network.id) {
                Ok(slips) => all.push((path, slips)),
                Err(error) => failed.push(format!("{}: {error}", path.display())),
            }
        }
        Ok(all)
    }
}

/// The payments of a case, once they are fixed.
fn candidates_of(case: &LaneCaseBody) -> anyhow::Result<Option<(OutputId, Vec<Arc<PaymentBody>>)>> {
    let id: Digest = case.output.parse()?;
    let Some(candidates) = &case.candidates else { return Ok(None) };
    let body = |candidate: &LaneCandidateBody| {
        let bytes = client::hexadecimal::hex_bytes(&candidate.payment).context("a payment is not hexadecimal")?;
        Ok(Arc::new(PaymentBody::parse(&bytes)?))
    };
    let bodies = candidates.iter().map(body).collect::<anyhow::Result<_>>()?;
    Ok(Some((OutputId(id.0), bodies)))
}

impl Pass<'_> {
    fn attend(&mut self, slip: &Slip, state: &mut BTreeMap<String, Done>) -> anyhow::Result<()> {
        match slip {
            Slip::Receipt(receipt) => {
                let ProvedSlip::Output(holding) = slip.verify(self.network)? else {
                    bail!("the receipt proves no output")
                };
                let done = state.entry(holding.id.to_string()).or_default();
                self.attend_receipt(receipt, &holding, done)
            }
            Slip::ToAccounts(body, certificate) => {
                slip.verify(self.network)?;
                self.note(body, certificate);
                let done = state.entry(body.digest.to_string()).or_default();
                if !done.posted {
                    self.post(&BridgeOperation::Redeem {
                        payment: body.payment.encode(),
                        certificate: certificate.clone(),
                    })?;
                    done.posted = true;
                }
                Ok(())
            }
            Slip::Deposit(deposit) => {
                let done = state.entry(deposit.id.to_string()).or_default();
                let phase = HomePhase::of(deposit.home, self.lanes.now.epoch);
                if done.over.is_some() || phase < HomePhase::Exit {
                    return Ok(());
                }
                if phase == HomePhase::Ended {
                    done.over = Some("its epoch is over".into());
                    return Ok(());
                }
                let DepositSlip { home, id, owner, asset, amount } = *deposit;
                let spent = SpentOutput { id, asset, amount };
                let exit = Payment::exit(self.network.id, home, owner, spent);
                self.send_home(home, exit, OutputProof::Ledger, done)
            }
        }
    }

    fn attend_receipt(&mut self, receipt: &FastReceipt, holding: &Holding, done: &mut Done) -> anyhow::Result<()> {
        if done.over.is_some() {
            return Ok(());
        }
        let digest = receipt.proof.summary.digest(&self.network.id);
        let mut bodies = self.candidates.iter().flat_map(|(_, bodies)| bodies);
        if let Some(body) = bodies.find(|body| body.digest == digest).cloned() {
            self.note(&body, &receipt.proof.certificate);
        }
        let mut watcher = LaneWatcher::new(self.network.id, 1);
        let id = watcher.watch(receipt.clone(), holding.clone())?;
        if done.settled {
            watcher.settled(&id);
        }
        if !done.posted {
            for (case, bodies) in self.candidates.clone() {
                for action in watcher.contested(&CaseEvent::Fixed(case, bodies.clone())) {
                    let WatchAction::Post(digest) = action else { continue };
                    let body = bodies.iter().find(|body| body.digest == digest).context("a candidate")?;
                    let certificate = receipt.proof.certificate.clone();
                    self.post(&BridgeOperation::Redeem { payment: body.payment.encode(), certificate })?;
                    done.posted = true;
                }
            }
        }
        for action in watcher.actions(self.lanes.now.epoch) {
            match action {
                WatchAction::Settle(home, _) => {
                    let patience = self.lanes.patience;
                    self.lanes.client(home).settle(receipt, patience)?;
                    (done.settled, self.looked.settled) = (true, self.looked.settled + 1);
                }
                WatchAction::SendHome(home, _) => {
                    let Recipient::Key(owner) = holding.output.to else { continue };
                    let spent = SpentOutput { id, asset: holding.output.asset, amount: holding.output.amount };
                    let exit = Payment::exit(self.network.id, home, owner, spent);
                    self.send_home(home, exit, holding.proof.clone(), done)?;
                }
                WatchAction::Post(_) => {}
            }
        }
        if watcher.is_empty() {
            done.over = Some("its epoch is over".into());
        }
        Ok(())
    }

    /// Looks for validators that confirmed this payment and another one with a common input, and accuses them. The
    /// certificate has been verified.
    fn note(&mut self, body: &PaymentBody, certificate: &PaymentCertificate) {
        if !is_redeemable(body.payment.home, self.lanes.now.epoch) {
            // The ledger no longer has the keys.
            return;
        }
        for evidence in self.finder.note_certificate(body, certificate) {
            let validator = evidence.accused().validator;
            if !self.lanes.now.convicted.insert(validator) {
                continue;
            }
            match self.submit(&BridgeOperation::Accuse { evidence }) {
                Ok(()) => self.looked.accused += 1,
                Err(error) => self.looked.failed.push(format!("accusing validator {validator}: {error:#}")),
            }
        }
    }

    /// Has an exit certified, which needs no signature of the owner, and posts it.
    fn send_home(&mut self, home: HomeEpoch, exit: Payment, proof: OutputProof, done: &mut Done) -> anyhow::Result<()> {
        let (payment, signature) = (exit.encode(), Signature([0; 64]));
        let (digest, request) = (PaymentBody::new(exit).digest, spend_request(&payment, &signature, &[proof]));
        let signed = SignedPayment { payment: payment.clone(), digest, signature, request };
        let patience = self.lanes.patience;
        let certificate: PaymentCertificate = match self.lanes.client(home).confirm(&signed, patience) {
            Ok(certificate) => certificate,
            Err(error @ LaneClientError::Refused { .. }) => {
                // The usual reason is that the owner has moved it.
                done.over = Some(error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.post(&BridgeOperation::Redeem { payment, certificate })?;
        done.over = Some("returned to the ledger".into());
        self.looked.sent_home += 1;
        Ok(())
    }

    fn post(&mut self, operation: &BridgeOperation) -> anyhow::Result<()> {
        self.submit(operation)?;
        self.looked.posted += 1;
        Ok(())
    }

    fn submit(&self, operation: &BridgeOperation) -> anyhow::Result<()> {
        let posted = super::ledger_post::post(self.json, &self.watch.sender, operation)?;
        ensure!(posted.is_some(), "the ledger has not accepted it yet");
        Ok(())
    }
}

/// Writes a slip for each output of a purse into a watcher's folder.
pub fn leave(slips: &[Slip], network: &LaneNetwork, folder: &Path) -> anyhow::Result<usize> {
    RealDisk::new(folder).with_context(|| folder.display().to_string())?;
    let mut named = BTreeSet::new();
    for slip in slips {
        let encoded = slip.encode(&network.id);
        let name = Digest::of("walras 2026 receipt file v1", encoded.as_bytes()).to_string();
        named.insert(name.clone());
        write_durable(&folder.join(format!("{}.txt", &name[2..18])), encoded.as_bytes())?;
    }
    Ok(named.len())
}
