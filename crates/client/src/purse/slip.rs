//! Receipts in the form that people exchange: one line of text, in a file or a QR code.
//!
//! ```text
//! slip   "WALRAS:" · hexadecimal of: version 1 (1) · kind 1 · network 32 · body
//!        kind 1   receipt of an output in the lane                       see `payments`
//!        kind 2   length 2 · payment · certificate                       what it pays to accounts can be redeemed
//!        kind 3   home 8 · output 32 · owner 32 · asset 4 · amount 8     a deposit, for a watcher; it proves nothing
//! ```
//!
//! Hexadecimal digits are upper-case, so that a QR code stores them densely.

use std::path::Path;

use payments::{
    FastReceipt, Holding, HomeEpoch, LaneRefusal, OutputId, PaymentBody, PaymentCertificate, PaymentView, RootCache,
    StatementKind,
};
use primitives::{Amount, AssetId, Digest, MAX_ISSUED, PublicKey, to_hex};

use super::error::SlipError;
use super::network::LaneNetwork;
use crate::hexadecimal::hex_bytes;

const PREFIX: &str = "WALRAS:";
const VERSION: u8 = 1;
const RECEIPT: u8 = 1;
const TO_ACCOUNTS: u8 = 2;
const DEPOSIT: u8 = 3;
/// Maximum bytes of a slip that is read: a request of the largest payment is smaller.
const BYTES_MAX: usize = 1 << 20;

/// A receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slip {
    /// A receipt of an output in the lane.
    Receipt(FastReceipt),
    /// A certified payment; the ledger pays what it sends to accounts.
    ToAccounts(PaymentBody, PaymentCertificate),
    /// An output that the ledger created: validators know it.
    Deposit(DepositSlip),
}

/// An output that the ledger created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositSlip {
    /// Its home.
    pub home: HomeEpoch,
    /// Its id.
    pub id: OutputId,
    /// The key that it belongs to.
    pub owner: PublicKey,
    /// Its asset.
    pub asset: AssetId,
    /// Units of it.
    pub amount: Amount,
}

impl DepositSlip {
    fn encode(&self) -> Vec<u8> {
        let DepositSlip { home, id, owner, asset, amount } = self;
        [&home.to_le_bytes()[..], &id.0, &owner.0, &asset.0.to_le_bytes(), &amount.to_le_bytes()].concat()
    }

    fn parse(bytes: &[u8]) -> Option<DepositSlip> {
        let (home, rest) = bytes.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (owner, rest) = rest.split_first_chunk()?;
        let (asset, amount) = rest.split_first_chunk()?;
        let amount = Amount::from_le_bytes(amount.try_into().ok()?);
        (1..=MAX_ISSUED).contains(&amount).then_some(DepositSlip {
            home: HomeEpoch::from_le_bytes(*home),
            id: OutputId(*id),
            owner: PublicKey(*owner),
            asset: AssetId(u32::from_le_bytes(*asset)),
            amount,
        })
    }
}

impl Slip {
    /// The text of a slip.
    pub fn encode(&self, network: &Digest) -> String {
        let mut bytes = vec![VERSION];
        match self {
            Slip::Receipt(receipt) => {
                bytes.push(RECEIPT);
                bytes.extend(network.0);
                bytes.extend(receipt.encode());
            }
            Slip::ToAccounts(body, certificate) => {
                bytes.push(TO_ACCOUNTS);
                bytes.extend(network.0);
                let payment = body.payment.encode();
                bytes.extend((payment.len() as u16).to_le_bytes());
                bytes.extend(payment);
                certificate.write(&mut bytes);
            }
            Slip::Deposit(deposit) => {
                bytes.push(DEPOSIT);
                bytes.extend(network.0);
                bytes.extend(deposit.encode());
            }
        }
        format!("{PREFIX}{}", to_hex(&bytes).to_uppercase())
    }

    /// Reads a slip of this network.
    ///
    /// # Errors
    /// [`SlipError`] names what is wrong.
    pub fn parse(line: &str, network: &Digest) -> Result<Slip, SlipError> {
        let digits = line.trim().strip_prefix(PREFIX).ok_or(SlipError::Prefix)?;
        if digits.len() > 2 * BYTES_MAX {
            return Err(SlipError::Long);
        }
        let bytes = hex_bytes(digits).ok_or(SlipError::Digits)?;
        let [version, kind, rest @ ..] = &bytes[..] else { return Err(SlipError::Short) };
        if *version != VERSION {
            return Err(SlipError::Strange { name: "version", number: *version });
        }
        let (of, body) = rest.split_first_chunk::<32>().ok_or(SlipError::Short)?;
        if of != &network.0 {
            return Err(SlipError::OtherNetwork(Digest(*of)));
        }
        match *kind {
            RECEIPT => Ok(Slip::Receipt(FastReceipt::parse(body)?)),
            TO_ACCOUNTS => {
                let (length, rest) = body.split_first_chunk::<2>().ok_or(SlipError::Short)?;
                let length = u16::from_le_bytes(*length).into();
                let (payment, certificate) = rest.split_at_checked(length).ok_or(SlipError::Short)?;
                Ok(Slip::ToAccounts(PaymentBody::parse(payment)?, PaymentCertificate::parse(certificate)?))
            }
            DEPOSIT => Ok(Slip::Deposit(DepositSlip::parse(body).ok_or(SlipError::Deposit)?)),
            number => Err(SlipError::Strange { name: "kind", number }),
        }
    }

    /// The slips of a text, one on each line; lines without any character are skipped.
    ///
    /// # Errors
    /// [`SlipError`] of the first line that is none, or [`SlipError::Empty`].
    pub fn read(text: &str, network: &Digest) -> Result<Vec<Slip>, SlipError> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let slips: Vec<Slip> = lines.map(|line| Slip::parse(line, network)).collect::<Result<_, _>>()?;
        if slips.is_empty() { Err(SlipError::Empty) } else { Ok(slips) }
    }

    /// The slips of a file.
    ///
    /// # Errors
    /// [`SlipError`]; [`SlipError::Unread`] with the error of the disk.
    pub fn read_file(path: &Path, network: &Digest) -> Result<Vec<Slip>, SlipError> {
        Slip::read(&std::fs::read_to_string(path)?, network)
    }

    /// Verifies it with only the keys of the lane.
    ///
    /// # Errors
    /// [`LaneRefusal`] names what does not hold.
    pub fn verify(&self, network: &LaneNetwork) -> Result<ProvedSlip, LaneRefusal> {
        let roots = &mut RootCache::new(0);
        let home = match self {
            Slip::Receipt(receipt) => Some(receipt.proof.summary.home),
            Slip::ToAccounts(body, _) => Some(body.payment.home),
            Slip::Deposit(_) => None,
        };
        if let Some(home) = home.filter(|home| !network.knows(*home)) {
            return Err(LaneRefusal::UnknownCommittee(home));
        }
        match self {
            Slip::Receipt(receipt) => {
                let committee = network.committee(receipt.proof.summary.home);
                receipt.verify(&committee, roots).map(|holding| ProvedSlip::Output(Box::new(holding)))
            }
            Slip::ToAccounts(body, certificate) => {
                let payment = body.payment.encode();
                let view = PaymentView::parse(&payment)?;
                if !view.is_of(&network.id) {
                    return Err(LaneRefusal::ForeignNetwork(body.payment.network));
                }
                let claim = payments::Claim {
                    kind: StatementKind::Confirmation,
                    owner: &body.payment.owner,
                    digest: &body.digest,
                };
                let committee = network.committee(body.payment.home);
                let budget = &mut payments::CheckBudget(u32::MAX);
                roots.verify_certificate(&committee, &claim, certificate, budget)?;
                Ok(ProvedSlip::Payment(body.clone()))
            }
            Slip::Deposit(deposit) => Err(LaneRefusal::UnknownOutput(deposit.id)),
        }
    }
}

/// The facts that a slip proves.
pub enum ProvedSlip {
    /// An output of the lane.
    Output(Box<Holding>),
    /// A certified payment to accounts.
    Payment(PaymentBody),
}

#[cfg(test)]
mod tests {
    use payments::{
        AnswerCollector, AssetRule, Holding, LaneAnswer, Output, OutputProof, Recipient, RootHeader, build_payment,
    };
    use primitives::{Address, SecretKey};

    use super::super::terms::LaneMoney;
    use super::*;

    fn network() -> (LaneNetwork, Vec<SecretKey>) {
        let keys: Vec<SecretKey> = (1..=4).map(|seed| SecretKey::from_seed([seed; 32])).collect();
        let rule = AssetRule { least_units: 1, fee: 0 };
        let money = LaneMoney { asset: AssetId(0), symbol: "USD".into(), decimals: 2, rule };
        let members = keys.iter().map(|key| vec![key.public()]).collect();
        (LaneNetwork::new(Digest([7; 32]), members, Vec::new(), vec![money]), keys)
    }

    /// Slips of a payment of 60 units to a key and 40 to an account.
    fn slips() -> (LaneNetwork, Slip, Slip) {
        let (network, keys) = network();
        let owner = SecretKey::from_seed([9; 32]);
        let output = |to, amount| Output { to, asset: AssetId(0), amount };
        let id = OutputId::of_genesis(&network.id, 0, 0);
        let coin = Holding { id, output: output(Recipient::Key(owner.public()), 100), proof: OutputProof::Ledger };
        let outputs =
            vec![output(Recipient::Key(keys[0].public()), 60), output(Recipient::Account(Address([3; 20])), 40)];
        let signed = build_payment(&network.rules(0), &owner, 0, 0, vec![coin], outputs).expect("correct");
        let view = PaymentView::parse(&signed.payment).expect("a payment");
        let committee = network.committee(0);
        let mut collector = AnswerCollector::new(StatementKind::Confirmation, view.summary());
        let mut certificate = None;
        for (index, key) in keys.iter().enumerate().take(3) {
            let blank =
                payments::Claim { kind: StatementKind::Confirmation, owner: &owner.public(), digest: &signed.digest };
            let mut answer = LaneAnswer {
                validator: index as u8,
                size: 1,
                index: 0,
                position: 5,
                signature: primitives::Signature([0; 64]),
                path: vec![],
            };
            let header: RootHeader = answer.header(&committee, &blank).expect("a header");
            answer.signature = key.sign(&header.bytes());
            certificate = collector.add(&committee, &mut RootCache::new(0), answer).expect("valid");
        }
        let certificate = certificate.expect("three of four");
        let receipt = FastReceipt::of(&view, 0, certificate.clone()).expect("an output");
        let body = PaymentBody::parse(&signed.payment).expect("a payment");
        (network, Slip::Receipt(receipt), Slip::ToAccounts(body, certificate))
    }

    #[test]
    fn a_slip_is_read_as_it_was_written_and_proves_what_it_says() {
        let (network, receipt, to_account) = slips();
        let deposit = Slip::Deposit(DepositSlip {
            home: 3,
            id: OutputId([4; 32]),
            owner: PublicKey([5; 32]),
            asset: AssetId(6),
            amount: 7,
        });
        let lines = [&receipt, &to_account, &deposit].map(|slip| slip.encode(&network.id));
        let read = Slip::read(&lines.join("\n\n"), &network.id).expect("readable");
        assert_eq!(read, [receipt.clone(), to_account, deposit]);
        assert!(read[2].verify(&network).is_err(), "it proves nothing");
        let Ok(ProvedSlip::Output(holding)) = read[0].verify(&network) else { panic!("it proves an output") };
        assert_eq!(holding.output.amount, 60);
        assert!(matches!(read[1].verify(&network), Ok(ProvedSlip::Payment(_))));
    }

    #[test]
    fn every_changed_digit_is_noticed() {
        let (network, receipt, to_account) = slips();
        for slip in [receipt, to_account] {
            let text = slip.encode(&network.id);
            for at in (PREFIX.len()..text.len()).step_by(7) {
                let mut changed = text.clone().into_bytes();
                changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
                let changed = String::from_utf8(changed).expect("digits");
                let read = Slip::parse(&changed, &network.id);
                assert!(read.is_err() || read.is_ok_and(|slip| slip.verify(&network).is_err()), "digit {at}");
            }
        }
        for (text, name) in [("WALRAS:7701", "version"), ("WALRAS:0177", "kind")] {
            let told = Slip::parse(&format!("{text}{}", to_hex(&network.id.0)), &network.id).expect_err("unknown");
            assert!(told.to_string().starts_with(&format!("its {name} is 119")), "{told}");
            assert!(told.to_string().contains("damaged"), "{told}");
        }
        for text in ["", "WALRAS", "WALRAS:0", "WALRAS:01", "WALRAS:zz", "WALRAS:0101"] {
            assert!(Slip::read(text, &network.id).is_err(), "{text}");
        }
    }
}
