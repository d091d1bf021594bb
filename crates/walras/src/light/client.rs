//! Asks untrusted nodes and verifies their answers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use api::{AccountProofBody, CertificateBody, HandoversBody, ModifiedBody, TransactionBody};
use borsh::BorshDeserialize;
use client::NodeClient;
use consensus::{Certificate, Chain};
use ledger::{AccountProof, Genesis, ModifiedProof, ReceiptProof, outcome_root};
use node::{Handover, Lineage};
use primitives::{Address, Digest, Height, Superblock, TransactionId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Source;
use super::trust::{self, Beginning, Pin};

/// Maximum wait for a certificate.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(200);

/// A client that trusts a committee of the network.
pub struct Client {
    node: NodeClient,
    witnesses: Vec<NodeClient>,
    base: Beginning,
    unbonding_epochs: u64,
    /// The trusted committees, of consecutive epochs.
    chains: Vec<Chain>,
    /// The state of the walk over committees.
    lineage: Lineage,
    /// The last epoch for which a certificate was requested.
    shown: u64,
    /// The file that stores the last proved committee.
    remembered: Option<PathBuf>,
    /// Maximum age of the newest block.
    max_age: Duration,
}

/// A block's certified facts.
pub(super) struct Certified {
    height: Height,
    pub(super) state: Digest,
    receipts: Digest,
    certificate: Certificate,
    /// Number of validators of the committee.
    validators: usize,
    epoch: u64,
}

impl Client {
    /// A client that has the genesis, and the genesis.
    pub fn new(source: &Source) -> anyhow::Result<(Client, Genesis)> {
        let (genesis, founding) = ::founding::genesis_file::read_with_founding(&source.genesis)?;
        let founding = founding.with_context(|| {
            format!(
                "{}: the genesis names no validators, so nobody signs blocks of this chain",
                source.genesis.display()
            )
        })?;
        let mut lineage = founding.lineage(&genesis);
        let mut base = Beginning::Genesis;
        if let Some(path) = source.remember.as_ref().filter(|path| path.exists() && source.trust.is_none()) {
            base = trust::recall_fresh(path, &mut lineage, source.trust_period)?;
        }
        let mut client = Client {
            witnesses: source.witnesses.iter().map(NodeClient::at).collect(),
            remembered: source.remember.clone(),
            max_age: source.max_age,
            ..Client::trusting(&source.server, lineage, base, founding.succession.unbonding_epochs)
        };
        if let Some(pin) = source.trust {
            client.begin_at(&pin)?;
        }
        Ok((client, genesis))
    }

    /// A client that trusts the committee of a lineage, and asks this node.
    pub fn trusting(server: &str, lineage: Lineage, base: Beginning, unbonding_epochs: u64) -> Client {
        Client {
            node: NodeClient::at(server),
            witnesses: Vec::new(),
            base,
            unbonding_epochs,
            chains: vec![lineage.chain.clone()],
            shown: lineage.chain.epoch,
            lineage,
            remembered: None,
            max_age: Duration::MAX,
        }
    }

    /// Stores in this file how far it comes.
    pub fn remembering(self, file: Option<PathBuf>) -> Client {
        Client { remembered: file, ..self }
    }

    /// Starts from a pinned state. Where validators never change, the state only has to be the one that they signed.
    pub fn begin_at(&mut self, pin: &Pin) -> anyhow::Result<()> {
        let Pin { height, state } = *pin;
        if self.lineage.schedule.is_fixed() {
            let certified = self.wait_for(height)?;
            ensure!(
                certified.state == state,
                "the validators of this genesis signed another state of block {height} than --trust names: either the pin \
                 is of another network, or more than a third of these validators have signed two histories. Trust \
                 no answer of this network until its operators have said which"
            );
        } else {
            let epoch = self.lineage.epoch_shown_at(height).with_context(|| {
                format!(
                    "--trust {pin}: the state of block {height} shows no committee; `walras light pin` prints a pin"
                )
            })?;
            let handover = self.handover(epoch)?;
            self.lineage.begin_at(epoch, &state, &handover.validators).with_context(|| {
                format!(
                    "the node at {} shows another state of block {height} than --trust names: it is of another network, or \
                     its history is not that of this network. Give another --server",
                    self.node.url()
                )
            })?;
            (self.chains, self.shown) = (vec![self.lineage.chain.clone()], epoch);
        }
        self.base = Beginning::Pin;
        Ok(())
    }

    /// The proof of the committee of an epoch.
    fn handover(&self, epoch: u64) -> anyhow::Result<Handover> {
        let body: HandoversBody = self.node.get(&format!("/v1/handovers?from={epoch}"))?;
        let first = body.handovers.first().with_context(|| {
            format!(
                "the node at {} does not show the committee of epoch {epoch}: if it lags, try again later, or give \
                 another --server",
                self.node.url()
            )
        })?;
        decode(&first.handover)
    }

    /// Stores the progress: up to the epoch of the newest certificate. The walk may have gone further, but then the
    /// next certificate could be of an epoch before the trusted one.
    pub fn remember(&self) -> anyhow::Result<()> {
        self.remembered.as_ref().map_or(Ok(()), |path| trust::remember(path, self.newest()))
    }

    /// The committee of the newest certificate that was verified.
    pub fn newest(&self) -> &Chain {
        let shown = self.chains.iter().find(|chain| chain.epoch == self.shown);
        shown.expect("the walk has come there")
    }

    /// The committee of an epoch, proved by handovers from the last trusted one.
    fn committee(&mut self, epoch: u64) -> anyhow::Result<&Chain> {
        let first = self.chains[0].epoch;
        trust::check_epoch(self.base, first, epoch, self.unbonding_epochs)?;
        while self.lineage.chain.epoch < epoch {
            let from = self.lineage.chain.epoch + 1;
            let body = self.node.get(&format!("/v1/handovers?from={from}"));
            let body: HandoversBody = body.with_context(|| {
                format!("the node does not prove the committee of epoch {from}. {}", foreign(self.node.url()))
            })?;
            ensure!(
                !body.handovers.is_empty(),
                "the node shows no handover to epoch {from}, which is needed to prove the committee of epoch {epoch}: \
                 give another --server"
            );
            for entry in &body.handovers {
                let handover: Handover = decode(&entry.handover)?;
                self.lineage.follow(&handover).with_context(|| foreign(self.node.url()))?;
                self.chains.push(self.lineage.chain.clone());
            }
        }
        let known = epoch.checked_sub(first).and_then(|at| self.chains.get(usize::try_from(at).ok()?));
        self.shown = self.shown.max(known.map_or(0, |chain| chain.epoch));
        let begins = match self.base {
            Beginning::Pin => "--trust",
            Beginning::Memory { .. } | Beginning::Genesis => "--remember",
        };
        known.with_context(|| {
            format!(
                "the certificate is of epoch {epoch}, before epoch {first}, where {begins} starts: omit {begins}, \
                 or ask for a later height"
            )
        })
    }

    /// The account in a state that a quorum has signed: the node's answer brings proof and certificate together.
    pub fn account(&mut self, genesis: &Genesis, address: &Address) -> anyhow::Result<Value> {
        let body: AccountProofBody = self.certified_answer(&format!("/v1/accounts/{address}/proof?certified=true"))?;
        let proof: AccountProof = decode(&body.proof)?;
        let certified = self.certified_with(body.height, body.certificate.as_ref())?;
        let time_ms = self.check_fresh(&certified)?;
        self.ask_witnesses(&certified)?;
        let account = proof.verify(&certified.state, address).context("the proof is invalid: give another --server")?;
        let symbol = |asset: primitives::AssetId| genesis.assets[asset.0 as usize].symbol.clone();
        let balances = account.map(|account| {
            let amounts = account.balances.iter().map(|(asset, amount)| (symbol(*asset), json!(amount.to_string())));
            amounts.collect::<serde_json::Map<_, _>>()
        });
        let proved = json!({
            "account": address.to_string(),
            "exists": account.is_some(),
            "spendable": balances,
            "state_root": certified.state.to_string(),
        });
        Ok(self.signed(proved, &certified, time_ms))
    }

    /// An answer that comes once its block is certified. Before the first block there is none to certify.
    pub(super) fn certified_answer<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let begun = Instant::now();
        loop {
            match self.node.get(path) {
                Err(error) if error.code() == Some("not_certified") && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// The verified certificate that came with an answer about a block.
    pub(super) fn certified_with(
        &mut self,
        height: Height,
        certificate: Option<&CertificateBody>,
    ) -> anyhow::Result<Certified> {
        let certificate = certificate.with_context(|| {
            format!("the node at {} answers without a certificate: give another --server", self.node.url())
        })?;
        ensure!(certificate.height == height, "the certificate is of another block: give another --server");
        self.verified(certificate)
    }

    pub fn transaction(&mut self, id: &TransactionId) -> anyhow::Result<Value> {
        let head = self.head()?;
        self.check_fresh(&head)?;
        let path = format!("/v1/transactions/{id}?proof=true&certified=true");
        let body: TransactionBody = self.certified_answer(&path)?;
        let height = body.height.context("the transaction is in no block yet")?;
        let proof: ReceiptProof = decode(&body.proof.context("the node shows no proof: give another --server")?)?;
        let certified = self.certified_with(height, body.certificate.as_ref())?;
        // The signers may have been paid back since, although the newest committee has not.
        let at_risk = trust::last_epoch(certified.epoch, self.unbonding_epochs) >= head.epoch;
        ensure!(
            at_risk || !self.witnesses.is_empty(),
            "block {height} is of epoch {}, whose validators' stakes have been paid back: their signatures alone prove \
             nothing any more. Give one or more --witness that show the same block",
            certified.epoch
        );
        let time_ms = self.time_of(&certified)?;
        self.ask_witnesses(&certified)?;
        let outcome = proof.verify(&certified.receipts, id).context("the proof is invalid: give another --server")?;
        let proved = json!({
            "transaction": id.to_string(),
            "outcome": outcome.map(|outcome| match outcome.refusal() {
                None => "committed".to_string(),
                Some(refusal) => refusal.code().to_string(),
            }),
            "receipts_root": certified.receipts.to_string(),
        });
        Ok(self.signed(proved, &certified, time_ms))
    }

    /// A pin for another client: the state that shows the newest committee, or the newest state if validators never
    /// change.
    pub fn pin(&mut self, own_node: bool) -> anyhow::Result<Value> {
        if own_node && !self.lineage.schedule.is_fixed() {
            self.believe_newest()?;
        }
        let head = self.head()?;
        let time_ms = self.check_fresh(&head)?;
        self.ask_witnesses(&head)?;
        let pin = match head.epoch {
            0 => Pin { height: head.height, state: head.state },
            epoch => {
                // Proves the committee of its epoch from the state that shows it.
                let handover = self.handover(epoch)?;
                let pin = Pin { height: self.lineage.state_height(epoch), state: handover.validators.parts.root() };
                let mut from_pin = self.lineage.clone();
                from_pin.begin_at(epoch, &pin.state, &handover.validators).context("give another --server")?;
                let known = self.chains.iter().find(|chain| chain.epoch == epoch).expect("the walk has come there");
                ensure!(
                    from_pin.chain == *known,
                    "the node shows a committee of epoch {epoch} other than the proved one: give another --server"
                );
                pin
            }
        };
        Ok(self.signed(json!({ "pin": pin.to_string() }), &head, time_ms))
    }

    /// Starts from the newest committee that the node shows.
    pub fn believe_newest(&mut self) -> anyhow::Result<()> {
        let newest = self.node.height()?;
        // The next committee may be proved before its epoch begins.
        let last = self.lineage.schedule.epoch_of(newest.saturating_sub(self.lineage.lag + 2));
        if last > self.lineage.chain.epoch {
            let handover = self.handover(last)?;
            let state = handover.validators.parts.root();
            self.begin_at(&Pin { height: self.lineage.state_height(last), state })?;
        }
        Ok(())
    }

    /// A proved fact, with its signers.
    pub(super) fn signed(&self, mut proved: Value, certified: &Certified, time_ms: u64) -> Value {
        let more = json!({
            "height": certified.height,
            "time_ms": time_ms,
            "signed_by": certified.certificate.signatures.len(),
            "validators": certified.validators,
            "epoch": certified.epoch,
            "witnesses": self.witnesses.len(),
            "begun_with": self.base.name(),
        });
        let (Some(fields), Value::Object(more)) = (proved.as_object_mut(), more) else { unreachable!("objects") };
        fields.extend(more);
        proved
    }

    /// The newest certified block.
    pub(super) fn head(&mut self) -> anyhow::Result<Certified> {
        let begun = Instant::now();
        loop {
            let status = self.node.validator()?.with_context(|| {
                format!(
                    "the node at {} makes blocks alone, so nobody signs them: give another --server",
                    self.node.url()
                )
            })?;
            let height = status.certified.saturating_sub(self.lineage.lag);
            let is_known = height > 0 && !self.is_before(height);
            if is_known && let Some(certified) = self.certified(height)? {
                return Ok(certified);
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "no certificate of a block near {} appears: give another --server",
                status.decided
            );
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether a block is certified by a committee earlier than the first trusted one.
    fn is_before(&self, height: Height) -> bool {
        self.lineage.schedule.epoch_of(height.saturating_add(self.lineage.lag)) < self.chains[0].epoch
    }

    fn wait_for(&mut self, height: Height) -> anyhow::Result<Certified> {
        let begun = Instant::now();
        loop {
            if let Some(certified) = self.certified(height)? {
                return Ok(certified);
            }
            ensure!(begun.elapsed() < PATIENCE, "no certificate of block {height} appears: give another --server");
            std::thread::sleep(PAUSE);
        }
    }

    /// The verified certificate of a block's outcome; `None` if there is none yet.
    fn certified(&mut self, height: Height) -> anyhow::Result<Option<Certified>> {
        let found: Option<CertificateBody> = self.node.find(&format!("/v1/blocks/{height}/certificate"))?;
        found.map(|body| self.verified(&body)).transpose()
    }

    /// What a certificate certifies, once it is verified.
    fn verified(&mut self, body: &CertificateBody) -> anyhow::Result<Certified> {
        let height = body.height;
        let certificate: Certificate = decode(&body.certificate)?;
        let lag = self.lineage.lag;
        let epoch = self.lineage.schedule.epoch_of(height.saturating_add(lag));
        let server = self.node.url().to_string();
        let chain = self.committee(epoch)?;
        certificate.verify(chain).with_context(|| {
            format!(
                "the certificate of block {height} is invalid for the validators that this client trusts. {}",
                foreign(&server)
            )
        })?;
        let validators = chain.keys.len();
        let root = |text: &str| text.parse::<Digest>().context("a root is no digest: give another --server");
        let (state, receipts) = (root(&body.state_root)?, root(&body.receipts_root)?);
        let statement = certificate.statement;
        ensure!(
            Some(statement.height) == height.checked_add(lag),
            "the certificate is of another block: give another --server"
        );
        ensure!(
            statement.root == outcome_root(&state, &receipts),
            "the roots differ from the signed ones: give another --server"
        );
        Ok(Certified { height, state, receipts, certificate, validators, epoch })
    }

    /// Refuses a block that is too old; returns its time.
    pub(super) fn check_fresh(&self, certified: &Certified) -> anyhow::Result<u64> {
        let time_ms = self.time_of(certified)?;
        trust::check_freshness(certified.height, time_ms, trust::now_ms(), self.max_age)?;
        Ok(time_ms)
    }

    /// The time of a certified block: the receipts root contains the block's digest, and the block contains its time.
    fn time_of(&self, certified: &Certified) -> anyhow::Result<u64> {
        let (height, lie) = (certified.height, "the node's answer proves nothing: give another --server");
        let body: ModifiedBody = self.node.get(&format!("/v1/blocks/{height}/accounts/{}", Address([0; 20])))?;
        let proof: ModifiedProof = decode(&body.proof)?;
        ensure!(proof.parts.root() == certified.receipts, "block {height}: {lie}");
        let (_, bytes) = self.node.bytes(&format!("/v1/blocks/{height}/raw"))?;
        ensure!(Superblock::digest(&bytes) == proof.parts.block, "block {height}: {lie}");
        let block: Superblock = borsh::from_slice(&bytes).with_context(|| format!("block {height}: {lie}"))?;
        Ok(block.time_ms)
    }

    /// Every witness must show the same signed statement.
    pub(super) fn ask_witnesses(&self, certified: &Certified) -> anyhow::Result<()> {
        let height = certified.height;
        for witness in &self.witnesses {
            let (begun, url) = (Instant::now(), witness.url());
            let body: CertificateBody = loop {
                let found = witness.find(&format!("/v1/blocks/{height}/certificate"));
                if let Some(body) = found.with_context(|| format!("the witness {url}"))? {
                    break body;
                }
                ensure!(begun.elapsed() < PATIENCE, "the witness {url} shows no certificate of block {height}");
                std::thread::sleep(PAUSE);
            };
            let shown: Certificate = decode(&body.certificate)?;
            ensure!(
                shown.statement == certified.certificate.statement,
                "the witness {url} shows another block {height} than {}: one of the two has a history that is not \
                 this network's, or belongs to another network. Trust neither; compare \
                 `walras light pin` with the pin of somebody you trust, and give that pin as --trust HEIGHT:DIGEST",
                self.node.url()
            );
        }
        Ok(())
    }
}

/// The explanation if a node's answer is not signed by the validators that the client trusts.
fn foreign(server: &str) -> String {
    format!(
        "Either the genesis file is of another network than the node at {server}: get the file from an operator of a \
         validator; or the node is faulty: give another --server. Trust none of its answers until then"
    )
}

/// A value that a node encoded in hexadecimal.
pub fn decode<T: BorshDeserialize>(text: &str) -> anyhow::Result<T> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let nibble = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?)).collect();
    borsh::from_slice(&bytes.context("the proof is not hexadecimal")?).context("the proof cannot be decoded")
}
