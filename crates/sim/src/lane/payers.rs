//! Payers with their ledger accounts, outputs and payments. The first one signs two payments of each output.

use std::collections::BTreeMap;
use std::sync::Arc;

use payments::{
    AnswerScheme, AssetRule, BridgeOperation, CertifiedPayment, FastReceipt, Holding, HomeEpoch, HomePhase,
    LaneCarryOver, LaneCommittee, LaneRules, Output, OutputId, OutputProof, Payment, PaymentBody, PaymentCertificate,
    PaymentView, Recipient, RootCache, SignedPayment, SpentOutput, StatementKind, Verdict, build_payment,
    settle_request,
};
use primitives::{Address, Amount, Digest, Operation, PublicKey, SecretKey, Signature};

use super::schemes::{SimCollector, below, schemes_of};
use super::shards::Said;
use super::{LaneWorld, Message, secret};
use crate::world::Mistake;

/// The payer that spends twice.
pub(super) const CHEAT: usize = 0;
/// Maximum number of messages in flight: a client that asks again waits.
const MESSAGES: usize = 400;
/// Number of times that a client asks under one scheme before it changes to another.
const ASKS_UNDER_A_SCHEME: u64 = 6;

/// An output of a payer.
pub(super) struct Coin {
    pub holding: Holding,
    pub home: HomeEpoch,
    pub key: SecretKey,
    pub owner: usize,
    /// The payment that made it; `None` for a deposit.
    pub made_by: Option<usize>,
    pub is_spent: bool,
}

/// A payment and its progress.
pub(super) struct Paid {
    pub signed: SignedPayment,
    pub body: Arc<PaymentBody>,
    pub payer: usize,
    /// The owner and the key of each output in the lane.
    pub owners: Vec<Option<(usize, SecretKey)>>,
    pub inputs: Vec<usize>,
    pub scheme: AnswerScheme,
    /// How often it was requested under this scheme.
    pub asked: u64,
    pub confirmations: SimCollector,
    pub acknowledgements: SimCollector,
    pub certificate: Option<PaymentCertificate>,
    pub is_acknowledged: bool,
    pub is_dead: bool,
    pub is_contested: bool,
    pub is_redeemed: bool,
    pub begun: u64,
}

impl Paid {
    pub fn home(&self) -> HomeEpoch {
        self.body.payment.home
    }

    /// The request to a shard; `None` before there is a certificate to acknowledge.
    pub fn request(&self, kind: StatementKind) -> Option<Vec<u8>> {
        let request = match kind {
            StatementKind::Acknowledgement => settle_request(&self.body.payment.summary(), self.certificate.as_ref()?),
            _ => self.signed.request.clone(),
        };
        Some(self.scheme.ask(&request))
    }

    /// The client asks under another scheme from now on.
    fn ask_under(&mut self, scheme: AnswerScheme, mistake: Option<Mistake>) {
        let summary = self.body.payment.summary();
        let collector = |kind| SimCollector::new(scheme, kind, summary, mistake);
        self.confirmations = collector(StatementKind::Confirmation);
        self.acknowledgements = collector(StatementKind::Acknowledgement);
        (self.scheme, self.asked) = (scheme, 0);
    }

    /// Counts a request, and changes to a simpler scheme if requests were in vain for long.
    fn note_ask(&mut self, mistake: Option<Mistake>) {
        if self.asked == ASKS_UNDER_A_SCHEME && self.scheme != AnswerScheme::Tree {
            self.ask_under(below(self.scheme), mistake);
        }
        self.asked += 1;
    }

    /// The next request, if there is one.
    pub fn wants(&self) -> Option<StatementKind> {
        match (&self.certificate, self.is_acknowledged || self.is_dead) {
            (_, true) => None,
            (None, _) => Some(StatementKind::Confirmation),
            (Some(_), _) => Some(StatementKind::Acknowledgement),
        }
    }
}

/// All payers.
pub(super) struct Payers {
    accounts: Vec<SecretKey>,
    keys: u64,
    /// Keys of deposits, with their owners.
    deposits: BTreeMap<PublicKey, (usize, SecretKey)>,
    pub coins: Vec<Coin>,
    pub payments: Vec<Paid>,
    by_digest: BTreeMap<Digest, usize>,
    roots: RootCache,
    mistake: Option<Mistake>,
}

impl Payers {
    pub fn new(count: u64, mistake: Option<Mistake>) -> Payers {
        Payers {
            accounts: (0..count).map(|number| secret(3, number)).collect(),
            keys: 0,
            deposits: BTreeMap::new(),
            coins: Vec::new(),
            payments: Vec::new(),
            by_digest: BTreeMap::new(),
            roots: RootCache::new(64),
            mistake,
        }
    }

    pub fn accounts(&self) -> impl Iterator<Item = Address> + '_ {
        self.accounts.iter().map(|key| key.public().address())
    }

    pub fn account(&self, payer: usize) -> SecretKey {
        self.accounts[payer].clone()
    }

    fn new_key(&mut self) -> SecretKey {
        self.keys += 1;
        secret(4, self.keys)
    }

    /// The ledger made an output of a withdrawal.
    pub fn deposited(&mut self, id: OutputId, output: Output, home: HomeEpoch) {
        let Recipient::Key(to) = output.to else { return };
        let Some((owner, key)) = self.deposits.get(&to).cloned() else { return };
        let holding = Holding { id, output, proof: OutputProof::Ledger };
        self.coins.push(Coin { holding, home, key, owner, made_by: None, is_spent: false });
    }

    /// The network has restarted: payers have what the list carries over for their keys, and nothing else.
    pub fn follow(&mut self, carried: &LaneCarryOver, network: &Digest) {
        let known = self.coins.iter().map(|coin| (coin.key.public(), (coin.owner, coin.key.clone())));
        let owners: BTreeMap<PublicKey, (usize, SecretKey)> = known.chain(self.deposits.clone()).collect();
        let coin = |(id, output): (&OutputId, &Output)| {
            let Recipient::Key(to) = output.to else { return None };
            let (owner, key) = owners.get(&to).cloned()?;
            let holding = Holding { id: id.carried_into(network), output: *output, proof: OutputProof::Ledger };
            Some(Coin { holding, home: 0, key, owner, made_by: None, is_spent: false })
        };
        self.coins = carried.outputs.iter().filter_map(coin).collect();
        self.payments.clear();
        self.by_digest.clear();
        self.roots = RootCache::new(64);
    }

    /// The place of a payment.
    pub fn find(&self, digest: &Digest) -> Option<usize> {
        self.by_digest.get(digest).copied()
    }

    /// A payment's certificate is in the ledger.
    pub fn redeemed(&mut self, digest: &Digest) {
        if let Some(at) = self.by_digest.get(digest) {
            self.payments[*at].is_redeemed = true;
        }
    }

    /// The ledger decided about an output.
    pub fn ruled(&mut self, id: &OutputId, verdict: &Verdict) {
        let stands = |digest: &Digest| matches!(verdict, Verdict::Confirmed(stands, _) if stands == digest);
        for paid in &mut self.payments {
            if paid.body.input_ids().any(|input| input == *id) && !stands(&paid.body.digest) {
                paid.is_dead = true;
            }
        }
    }

    /// The owner's signature of a payment, unless that is an exit.
    pub fn signature_of(&self, body: &PaymentBody) -> Option<Signature> {
        let paid = &self.payments[*self.by_digest.get(&body.digest)?];
        (!body.payment.is_exit()).then_some(paid.signed.signature)
    }

    /// The operation that posts the certificate of a payment, if an honest payer has it.
    pub fn certificate_of(&self, digest: &Digest) -> Option<BridgeOperation> {
        let paid = &self.payments[*self.by_digest.get(digest)?];
        let certificate = paid.certificate.clone()?;
        let is_honest = |owner: &Option<(usize, SecretKey)>| owner.as_ref().is_some_and(|(owner, _)| *owner != CHEAT);
        let known = paid.payer != CHEAT || paid.owners.iter().any(is_honest);
        known.then(|| BridgeOperation::Redeem { payment: paid.signed.payment.clone(), certificate })
    }

    /// A certified payment of an output.
    pub fn certified(&self, output: &OutputId) -> Option<CertifiedPayment> {
        let of_output = |paid: &&Paid| paid.body.input_ids().any(|input| input == *output);
        let certified = |paid: &Paid| {
            Some(CertifiedPayment { summary: paid.body.payment.summary(), certificate: paid.certificate.clone()? })
        };
        self.payments.iter().filter(of_output).find_map(certified)
    }

    /// The certificates of payments of an output that anybody has, the cheat's too.
    pub fn certificates(&self, output: &OutputId) -> Vec<(Digest, BridgeOperation)> {
        let of_output = self.payments.iter().filter(|paid| paid.body.input_ids().any(|input| input == *output));
        let redeem = |paid: &Paid| {
            let payment = paid.signed.payment.clone();
            Some((paid.body.digest, BridgeOperation::Redeem { payment, certificate: paid.certificate.clone()? }))
        };
        of_output.filter_map(redeem).collect()
    }

    /// Whether an output is final: a deposit, or of a payment that a quorum has acknowledged.
    pub fn is_settled(&self, coin: &Coin) -> bool {
        coin.made_by.is_none_or(|payment| self.payments[payment].is_acknowledged)
    }

    /// Builds a payment of some outputs of one key and home; `None` if it would be invalid.
    fn build(
        &mut self,
        rules: &LaneRules,
        inputs: &[usize],
        into: HomeEpoch,
        outputs: Vec<(Output, Option<(usize, SecretKey)>)>,
        (scheme, begun): (AnswerScheme, u64),
    ) -> Option<usize> {
        let first = &self.coins[*inputs.first()?];
        let (key, home, payer) = (first.key.clone(), first.home, first.owner);
        let holdings = inputs.iter().map(|at| self.coins[*at].holding.clone()).collect();
        let (outputs, owners): (Vec<Output>, Vec<_>) = outputs.into_iter().unzip();
        let signed = build_payment(rules, &key, home, into, holdings, outputs).ok()?;
        let body = Arc::new(PaymentBody::parse(&signed.payment).ok()?);
        if self.by_digest.contains_key(&body.digest) {
            return None;
        }
        let summary = body.payment.summary();
        inputs.iter().for_each(|at| self.coins[*at].is_spent = true);
        self.by_digest.insert(body.digest, self.payments.len());
        self.payments.push(Paid {
            signed,
            body,
            payer,
            owners,
            inputs: inputs.to_vec(),
            scheme,
            asked: 0,
            confirmations: SimCollector::new(scheme, StatementKind::Confirmation, summary, self.mistake),
            acknowledgements: SimCollector::new(scheme, StatementKind::Acknowledgement, summary, self.mistake),
            certificate: None,
            is_acknowledged: false,
            is_dead: false,
            is_contested: false,
            is_redeemed: false,
            begun,
        });
        Some(self.payments.len() - 1)
    }

    /// Adds an answer; returns the certificate that it completes.
    fn answered(&mut self, committee: &LaneCommittee, at: usize, said: Said) -> Option<PaymentCertificate> {
        let paid = &mut self.payments[at];
        let certificate = match said.kind {
            StatementKind::Confirmation if paid.certificate.is_none() => {
                let certificate = paid.confirmations.add(committee, &mut self.roots, said.answer)?;
                paid.certificate = Some(certificate.clone());
                certificate
            }
            StatementKind::Acknowledgement if !paid.is_acknowledged => {
                let certificate = paid.acknowledgements.add(committee, &mut self.roots, said.answer)?;
                paid.is_acknowledged = true;
                certificate
            }
            _ => return None,
        };
        paid.asked = 0;
        Some(certificate)
    }

    /// The recipients of a confirmed payment verify and accept their receipts.
    fn receive(&mut self, committee: &LaneCommittee, at: usize) -> Result<(), String> {
        let paid = &self.payments[at];
        let view = PaymentView::parse(&paid.signed.payment).map_err(|error| error.to_string())?;
        let certificate = paid.certificate.as_ref().ok_or("no certificate")?;
        let mut coins = Vec::new();
        for (index, owner) in (0..).zip(&paid.owners) {
            let Some((owner, key)) = owner.clone() else { continue };
            let receipt = FastReceipt::of(&view, index, certificate.clone()).ok_or("no such output")?;
            let holding = receipt.verify(committee, &mut self.roots).map_err(|error| error.to_string())?;
            let home = paid.body.payment.into;
            coins.push(Coin { holding, home, key, owner, made_by: Some(at), is_spent: false });
        }
        self.coins.extend(coins);
        Ok(())
    }
}

impl LaneWorld {
    /// Performs an action of a payer.
    pub(super) fn act(&mut self) {
        let payer = self.dice.index(self.payers.accounts.len());
        match self.dice.below(8) {
            0 | 1 => self.deposit(payer),
            2 => self.contest(payer),
            _ => self.pay(payer),
        }
    }

    fn deposit(&mut self, payer: usize) {
        let own: Vec<SecretKey> =
            self.payers.deposits.values().filter(|(owner, _)| *owner == payer).map(|(_, key)| key.clone()).collect();
        // Two outputs of one key make a payment with two inputs.
        let key = match own.is_empty() || !self.dice.once_in(3) {
            true => self.payers.new_key(),
            false => own[self.dice.index(own.len())].clone(),
        };
        self.payers.deposits.insert(key.public(), (payer, key.clone()));
        let (account, (asset, amount)) = (self.payers.account(payer), self.draw_deposit());
        self.submit(&account, Operation::Withdraw { to: key.public(), asset, amount });
    }

    /// Pays a part of some outputs to another payer, and the rest to a new key. The cheat does it twice.
    fn pay(&mut self, payer: usize) {
        let now = self.now();
        let spendable = |coin: &Coin| {
            let phase = HomePhase::of(coin.home, now);
            coin.owner == payer && !coin.is_spent && phase <= HomePhase::Exit
        };
        let coins = &self.payers.coins;
        let own: Vec<usize> = (0..coins.len()).filter(|at| spendable(&coins[*at])).collect();
        if own.is_empty() {
            return;
        }
        let first = own[self.dice.index(own.len())];
        let (home, key, asset) = (coins[first].home, coins[first].key.public(), coins[first].holding.output.asset);
        if HomePhase::of(home, now) == HomePhase::Exit {
            self.exit(first);
            return;
        }
        let is_like = |coin: &Coin| coin.home == home && coin.holding.output.asset == asset;
        let together = |at: &usize| is_like(&coins[*at]) && coins[*at].key.public() == key;
        let inputs: Vec<usize> = own.into_iter().filter(together).take(3).collect();
        let times = if payer == CHEAT { 2 } else { 1 };
        for _ in 0..times {
            self.pay_once(payer, &inputs, now);
        }
    }

    fn pay_once(&mut self, payer: usize, inputs: &[usize], now: HomeEpoch) {
        let asset = self.payers.coins[inputs[0]].holding.output.asset;
        let AssetRule { least_units, fee } = self.rules_for(self.payers.coins[inputs[0]].home).asset(asset);
        let sum: Amount = inputs.iter().map(|at| self.payers.coins[*at].holding.output.amount).sum();
        let Some(usable) = sum.checked_sub(fee).filter(|usable| *usable > least_units) else { return };
        let paid = least_units + self.dice.below(usable + 1 - least_units);
        // A rest that is too small goes along.
        let paid = if usable - paid < least_units { usable } else { paid };
        let other = self.dice.index(self.payers.accounts.len());
        let mut outputs = Vec::new();
        if self.dice.once_in(4) {
            let to = Recipient::Account(self.payers.account(other).public().address());
            outputs.push((Output { to, asset, amount: paid }, None));
        } else {
            let key = self.payers.new_key();
            let output = Output { to: Recipient::Key(key.public()), asset, amount: paid };
            outputs.push((output, Some((other, key))));
        }
        if usable > paid {
            let key = self.payers.new_key();
            let output = Output { to: Recipient::Key(key.public()), asset, amount: usable - paid };
            outputs.push((output, Some((payer, key))));
        }
        self.begin(inputs, now, outputs);
    }

    /// Sends one output to the ledger account of its key.
    pub(super) fn exit(&mut self, coin: usize) -> Option<usize> {
        let Coin { holding, home, key, .. } = &self.payers.coins[coin];
        let Output { asset, amount, .. } = holding.output;
        let spent = SpentOutput { id: holding.id, asset, amount };
        let (home, network) = (*home, self.lane().network());
        let exit = Payment::exit(network, home, key.public(), spent);
        let outputs = exit.outputs.into_iter().map(|output| (output, None)).collect();
        self.begin(&[coin], home, outputs)
    }

    fn begin(
        &mut self,
        inputs: &[usize],
        into: HomeEpoch,
        outputs: Vec<(Output, Option<(usize, SecretKey)>)>,
    ) -> Option<usize> {
        let home = self.payers.coins[*inputs.first()?].home;
        let (rules, height) = (self.rules_for(home), self.ledger.height());
        let scheme = self.draw_scheme(home);
        let at = self.payers.build(&rules, inputs, into, outputs, (scheme, height))?;
        let body = self.payers.payments[at].body.clone();
        self.note("pay", at as u64);
        self.observed.bodies.insert(body.digest, body);
        self.report.payments += 1;
        self.ask(at);
        Some(at)
    }

    /// A scheme that the committee of a home supports.
    fn draw_scheme(&mut self, home: HomeEpoch) -> AnswerScheme {
        let known = self.lane().committee(home).map(schemes_of).unwrap_or_default();
        if known.len() < 2 { AnswerScheme::Tree } else { known[self.dice.index(known.len())] }
    }

    /// Sends a payment, or its certificate, to all validators.
    fn ask(&mut self, payment: usize) {
        let (paid, mistake) = (&mut self.payers.payments[payment], self.options.mistake);
        let Some(kind) = paid.wants() else { return };
        if self.messages.len() < MESSAGES {
            paid.note_ask(mistake);
            for validator in 0..super::MEMBERS {
                self.messages.send(Message::Ask { validator, kind, payment });
            }
        }
    }

    /// A client without an answer sends the same bytes again.
    pub(super) fn ask_again(&mut self) {
        let wanting: Vec<usize> =
            (0..self.payers.payments.len()).filter(|at| self.payers.payments[*at].wants().is_some()).collect();
        if !wanting.is_empty() {
            let at = wanting[self.dice.index(wanting.len())];
            self.ask(at);
        }
    }

    /// All clients send again.
    pub(super) fn ask_all(&mut self) {
        for at in 0..self.payers.payments.len() {
            let is_alive = HomePhase::of(self.payers.payments[at].home(), self.now()) <= HomePhase::Exit;
            if is_alive {
                self.ask(at);
                while !self.messages.is_empty() {
                    self.deliver();
                }
            }
        }
    }

    pub(super) fn on_answer(&mut self, said: Said) {
        let Some(at) = self.payers.by_digest.get(&said.digest).copied() else { return };
        let Some(committee) = self.lane().committee(self.payers.payments[at].home()).cloned() else { return };
        let kind = said.kind;
        let Some(certificate) = self.payers.answered(&committee, at, said) else { return };
        let lane = self.ledger.lane().expect("the chain has a lane");
        let checked = self.stranger.check(lane, &self.observed, kind, &self.payers.payments[at].body, &certificate);
        checked.unwrap_or_else(|what| panic!("{what}"));
        self.report.aggregates += u64::from(matches!(certificate, PaymentCertificate::Aggregate(_)));
        self.report.thresholds += u64::from(matches!(certificate, PaymentCertificate::Threshold(_)));
        match kind {
            StatementKind::Confirmation => {
                self.report.certified += 1;
                self.note("certified", at as u64);
                self.payers.receive(&committee, at).expect("a certificate that was collected verifies");
                let body = self.payers.payments[at].body.clone();
                self.check_paid(&body).unwrap_or_else(|what| panic!("{what}"));
                let pays_account = body.payment.outputs.iter().any(|out| matches!(out.to, Recipient::Account(_)));
                let resolver = self.lane().bridge().resolver();
                let is_contested = body.input_ids().any(|input| resolver.is_open(&input));
                if pays_account {
                    self.redeem(at);
                } else if is_contested {
                    self.defend(&body.digest);
                }
                self.ask(at);
            }
            _ => {
                self.report.settled += 1;
                self.note("settled", at as u64);
            }
        }
    }

    /// Posts the certificate of a payment that pays accounts.
    pub(super) fn redeem(&mut self, at: usize) {
        let paid = &self.payers.payments[at];
        let (digest, payment) = (paid.body.digest, paid.signed.payment.clone());
        let Some(certificate) = paid.certificate.clone() else { return };
        let key = self.payers.account(1);
        let id = self.post(&key, &BridgeOperation::Redeem { payment, certificate });
        self.redemptions.insert(id, digest);
    }
}
