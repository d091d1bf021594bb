//! Payments and their outputs: types, layout, bounds, digest and ids.

use std::collections::BTreeMap;

use primitives::merkle::{self, Family, Tree};
use primitives::{Address, Amount, AssetId, Digest, PublicKey};

use crate::layout::{Reader, read_amount};
use crate::{HomeEpoch, LaneRefusal, OutputId};

const PAYMENT_CONTEXT: &str = "walras 2026 lane payment v1";
const INPUTS_CONTEXT: &str = "walras 2026 lane inputs v1";

/// The most inputs of a payment.
pub const INPUTS_MAX: usize = 16;
/// The most outputs of a payment.
pub const OUTPUTS_MAX: usize = 16;
/// The most assets of a payment.
pub const ASSETS_MAX: usize = 4;
/// The version that a payment begins with.
pub const PAYMENT_VERSION: u8 = 1;
/// Bytes of a payment before its inputs.
const HEAD_BYTES: usize = 1 + 1 + 1 + 8 + 8 + 32 + 32;
const INPUT_BYTES: usize = 32 + 4 + 8;
const OUTPUT_BYTES: usize = 1 + 32 + 4 + 8;
/// Bytes of the largest payment.
pub const PAYMENT_BYTES_MAX: usize = HEAD_BYTES + INPUTS_MAX * INPUT_BYTES + OUTPUTS_MAX * OUTPUT_BYTES;

/// The recipient of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recipient {
    /// The holder of this key spends it in the lane.
    Key(PublicKey),
    /// It is redeemed into this account of the ledger and is never a lane input.
    Account(Address),
}

/// Units of one asset for one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// The recipient.
    pub to: Recipient,
    /// The asset.
    pub asset: AssetId,
    /// The number of units: 1 to `MAX_ISSUED`.
    pub amount: Amount,
}

/// An output that a payment spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentOutput {
    /// Its id.
    pub id: OutputId,
    /// The asset.
    pub asset: AssetId,
    /// The number of units.
    pub amount: Amount,
}

impl Output {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self.to {
            Recipient::Key(key) => {
                to.push(0);
                to.extend(key.0);
            }
            Recipient::Account(account) => {
                to.push(1);
                to.extend(account.0);
                to.extend([0; 12]);
            }
        }
        to.extend(self.asset.0.to_le_bytes());
        to.extend(self.amount.to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Output, LaneRefusal> {
        let (kind, name) = (reader.u8()?, reader.array::<32>()?);
        let to = match kind {
            0 => Recipient::Key(PublicKey(name)),
            1 if name[20..] == [0; 12] => Recipient::Account(Address(name[..20].try_into().expect("20 bytes"))),
            1 => return Err(LaneRefusal::Malformed("an account has 20 bytes and 12 zeros")),
            _ => return Err(LaneRefusal::Malformed("an output goes to a key (0) or an account (1)")),
        };
        Ok(Output { to, asset: AssetId(reader.u32()?), amount: read_amount(reader)? })
    }

    /// The leaf of this output in the tree of its payment.
    pub(crate) fn leaf(&self) -> Digest {
        let mut bytes = Vec::with_capacity(OUTPUT_BYTES);
        self.write(&mut bytes);
        merkle::leaf(Family::LaneOutputs, &bytes)
    }
}

/// A payment: it spends outputs of one owner and one home and creates other outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The identity of the network.
    pub network: Digest,
    /// The home epoch of all inputs.
    pub home: HomeEpoch,
    /// The home epoch of all outputs: `home` or the one after it.
    pub into: HomeEpoch,
    /// The one owner of all inputs.
    pub owner: PublicKey,
    /// The outputs that it spends, by strictly ascending id.
    pub inputs: Vec<SpentOutput>,
    /// The outputs that it creates.
    pub outputs: Vec<Output>,
}

impl Payment {
    /// The only encoding. [`PaymentView::parse`] checks whether it is valid.
    pub fn encode(&self) -> Vec<u8> {
        let length = HEAD_BYTES + self.inputs.len() * INPUT_BYTES + self.outputs.len() * OUTPUT_BYTES;
        let mut bytes = Vec::with_capacity(length);
        let count = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        bytes.extend([PAYMENT_VERSION, count(self.inputs.len()), count(self.outputs.len())]);
        bytes.extend(self.home.to_le_bytes());
        bytes.extend(self.into.to_le_bytes());
        bytes.extend(self.network.0);
        bytes.extend(self.owner.0);
        for input in &self.inputs {
            bytes.extend(input.id.0);
            bytes.extend(input.asset.0.to_le_bytes());
            bytes.extend(input.amount.to_le_bytes());
        }
        for output in &self.outputs {
            output.write(&mut bytes);
        }
        bytes
    }

    /// The parts of the payment that its digest covers.
    ///
    /// # Panics
    /// If the payment is not well-formed.
    pub fn summary(&self) -> PaymentSummary {
        PaymentView::parse(&self.encode()).expect("the payment is well-formed").summary()
    }

    /// The exit of an output: it spends only that output, whole, to the ledger account of the owner's key. It pays no
    /// fee and has no least amount, so every output has an exit.
    pub fn exit(network: Digest, home: HomeEpoch, owner: PublicKey, output: SpentOutput) -> Payment {
        let SpentOutput { asset, amount, .. } = output;
        let outputs = vec![Output { to: Recipient::Account(owner.address()), asset, amount }];
        Payment { network, home, into: home, owner, inputs: vec![output], outputs }
    }

    /// Whether it is the exit of its only input.
    pub fn is_exit(&self) -> bool {
        let [input] = self.inputs[..] else { return false };
        let [output] = self.outputs[..] else { return false };
        self.into == self.home && goes_home(&self.owner, &input, &output)
    }
}

/// Whether an output takes all of an input to the ledger account of its owner, as in [`Payment::exit`].
fn goes_home(owner: &PublicKey, input: &SpentOutput, output: &Output) -> bool {
    let takes_all = (output.asset, output.amount) == (input.asset, input.amount);
    // The address is a hash: it is not computed for a payment to a key.
    takes_all && matches!(output.to, Recipient::Account(to) if to == owner.address())
}

/// A payment with its digest, as the ledger handles it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentBody {
    /// Its digest.
    pub digest: Digest,
    /// The payment.
    pub payment: Payment,
}

impl PaymentBody {
    /// Computes the digest of a well-formed payment.
    ///
    /// # Panics
    /// If the payment is not well-formed.
    pub fn new(payment: Payment) -> PaymentBody {
        PaymentBody::parse(&payment.encode()).expect("the payment is well-formed")
    }

    /// Parses a payment that fills `bytes`.
    ///
    /// # Errors
    /// As for [`PaymentView::parse`].
    pub fn parse(bytes: &[u8]) -> Result<PaymentBody, LaneRefusal> {
        let view = PaymentView::parse(bytes)?;
        Ok(PaymentBody { digest: view.digest(), payment: view.to_payment() })
    }

    /// The ids of its inputs.
    pub fn input_ids(&self) -> impl Iterator<Item = OutputId> + '_ {
        self.payment.inputs.iter().map(|input| input.id)
    }

    /// The ids of its outputs.
    pub fn output_ids(&self) -> impl Iterator<Item = OutputId> + '_ {
        let id = |index| OutputId::of_payment(self.payment.into, &self.digest, index as u8);
        (0..self.payment.outputs.len()).map(id)
    }
}

/// A well-formed payment as a view of its bytes: nothing is copied.
#[derive(Clone, Copy, Debug)]
pub struct PaymentView<'a> {
    bytes: &'a [u8],
    network: Digest,
    home: HomeEpoch,
    into: HomeEpoch,
    owner: PublicKey,
    inputs: &'a [u8],
    outputs: &'a [u8],
}

impl<'a> PaymentView<'a> {
    /// Parses a payment that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`Payment::encode`] does not write, and for counts, amounts and
    /// epochs out of bounds.
    pub fn parse(bytes: &'a [u8]) -> Result<PaymentView<'a>, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let payment = PaymentView::read(&mut reader)?;
        reader.end()?;
        Ok(payment)
    }

    /// Parses a payment at the beginning of the rest.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<PaymentView<'a>, LaneRefusal> {
        let start = *reader;
        if reader.u8()? != PAYMENT_VERSION {
            return Err(LaneRefusal::Malformed("a payment of this version is not known"));
        }
        let (inputs, outputs) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
        if !(1..=INPUTS_MAX).contains(&inputs) || !(1..=OUTPUTS_MAX).contains(&outputs) {
            return Err(LaneRefusal::Malformed("a payment has 1 to 16 inputs and 1 to 16 outputs"));
        }
        let (home, into) = (reader.u64()?, reader.u64()?);
        if into != home && Some(into) != home.checked_add(1) {
            return Err(LaneRefusal::Malformed("outputs live in the epoch of the inputs or the one after it"));
        }
        let (network, owner) = (reader.digest()?, reader.key()?);
        let (inputs, outputs) = (reader.bytes(inputs * INPUT_BYTES)?, reader.bytes(outputs * OUTPUT_BYTES)?);
        let bytes = { start }.bytes(HEAD_BYTES + inputs.len() + outputs.len())?;
        let payment = PaymentView { bytes, network, home, into, owner, inputs, outputs };
        payment.check_parts()?;
        Ok(payment)
    }

    fn check_parts(&self) -> Result<(), LaneRefusal> {
        let mut last = None;
        for input in self.inputs.chunks_exact(INPUT_BYTES) {
            let input = read_input(input)?;
            if last.is_some_and(|last| last >= input.id) {
                return Err(LaneRefusal::Malformed("ids of inputs do not ascend strictly"));
            }
            last = Some(input.id);
        }
        self.outputs.chunks_exact(OUTPUT_BYTES).try_for_each(|output| Output::read(&mut Reader::new(output)).map(drop))
    }

    /// Whether it is of this network.
    pub fn is_of(&self, network: &Digest) -> bool {
        self.network == *network
    }

    /// The bytes of the payment.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The home epoch of all inputs.
    pub fn home(&self) -> HomeEpoch {
        self.home
    }

    /// The home epoch of all outputs.
    pub fn into_epoch(&self) -> HomeEpoch {
        self.into
    }

    /// The one owner of all inputs.
    pub fn owner(&self) -> PublicKey {
        self.owner
    }

    /// Its inputs.
    pub fn inputs(&self) -> impl Iterator<Item = SpentOutput> + use<'a> {
        self.inputs.chunks_exact(INPUT_BYTES).map(|bytes| read_input(bytes).expect("checked when it was parsed"))
    }

    /// Its outputs.
    pub fn outputs(&self) -> impl Iterator<Item = Output> + use<'a> {
        let read = |bytes| Output::read(&mut Reader::new(bytes)).expect("checked when it was parsed");
        self.outputs.chunks_exact(OUTPUT_BYTES).map(read)
    }

    /// An owned copy.
    pub fn to_payment(&self) -> Payment {
        Payment {
            network: self.network,
            home: self.home,
            into: self.into,
            owner: self.owner,
            inputs: self.inputs().collect(),
            outputs: self.outputs().collect(),
        }
    }

    /// Whether it is the exit of its only input ([`Payment::exit`]).
    pub fn is_exit(&self) -> bool {
        if (self.inputs.len(), self.outputs.len()) != (INPUT_BYTES, OUTPUT_BYTES) || self.into != self.home {
            return false;
        }
        self.inputs().zip(self.outputs()).all(|(input, output)| goes_home(&self.owner, &input, &output))
    }

    /// Checks it against the rules of a network: network, least amounts, number of assets, and for each asset that
    /// the inputs equal the outputs and the fee. An exit pays no fee and has no least amount.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self, rules: &LaneRules) -> Result<(), LaneRefusal> {
        if self.network != rules.network {
            return Err(LaneRefusal::ForeignNetwork(self.network));
        }
        if self.is_exit() {
            return Ok(());
        }
        // Sums of at most 16 amounts below 2^63 and a fee: far below 2^128.
        let mut sums: BTreeMap<AssetId, (u128, u128)> = BTreeMap::new();
        for input in self.inputs() {
            sums.entry(input.asset).or_default().0 += u128::from(input.amount);
        }
        for Output { asset, amount, .. } in self.outputs() {
            let least = rules.asset(asset).least_units;
            if amount < least {
                return Err(LaneRefusal::TooSmall { asset, amount, least });
            }
            sums.entry(asset).or_default().1 += u128::from(amount);
        }
        if sums.len() > ASSETS_MAX {
            return Err(LaneRefusal::TooManyAssets);
        }
        for (asset, (inputs, outputs)) in sums {
            let outputs = outputs + u128::from(rules.asset(asset).fee);
            if inputs != outputs {
                return Err(LaneRefusal::WrongSum { asset, inputs, outputs });
            }
        }
        Ok(())
    }

    fn output_tree(&self) -> Tree {
        Tree::new(Family::LaneOutputs, self.outputs().map(|output| output.leaf()).collect())
    }

    /// The tree path of an output; `None` if there is no such output.
    pub fn output_path(&self, index: u8) -> Option<Vec<Digest>> {
        (usize::from(index) < self.outputs.len() / OUTPUT_BYTES).then(|| self.output_tree().path(usize::from(index)))
    }

    /// The parts of the payment that its digest covers.
    pub fn summary(&self) -> PaymentSummary {
        PaymentSummary {
            home: self.home,
            into: self.into,
            owner: self.owner,
            inputs: Digest::of(INPUTS_CONTEXT, self.inputs),
            outputs: (self.outputs.len() / OUTPUT_BYTES) as u8,
            outputs_root: self.output_tree().root(),
        }
    }

    /// The digest that validators sign. It does not cover the owner's signature: an owner can make many.
    pub fn digest(&self) -> Digest {
        self.summary().digest(&self.network)
    }
}

fn read_input(bytes: &[u8]) -> Result<SpentOutput, LaneRefusal> {
    let mut reader = Reader::new(bytes);
    Ok(SpentOutput { id: OutputId(reader.array()?), asset: AssetId(reader.u32()?), amount: read_amount(&mut reader)? })
}

/// A payment without its lists: enough to compute its digest, so that a recipient need not see inputs and change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentSummary {
    /// The home epoch of its inputs, whose committee signs it.
    pub home: HomeEpoch,
    /// The home epoch of its outputs.
    pub into: HomeEpoch,
    /// The owner that paid.
    pub owner: PublicKey,
    /// The hash of all inputs.
    pub inputs: Digest,
    /// The number of its outputs.
    pub outputs: u8,
    /// The root of the tree over its outputs.
    pub outputs_root: Digest,
}

impl PaymentSummary {
    /// Bytes of its layout.
    pub const BYTES: usize = 8 + 8 + 32 + 32 + 1 + 32;

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.home.to_le_bytes());
        to.extend(self.into.to_le_bytes());
        to.extend(self.owner.0);
        to.extend(self.inputs.0);
        to.push(self.outputs);
        to.extend(self.outputs_root.0);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<PaymentSummary, LaneRefusal> {
        Ok(PaymentSummary {
            home: reader.u64()?,
            into: reader.u64()?,
            owner: reader.key()?,
            inputs: reader.digest()?,
            outputs: reader.u8()?,
            outputs_root: reader.digest()?,
        })
    }

    /// The digest of the payment in `network`.
    pub fn digest(&self, network: &Digest) -> Digest {
        let mut bytes = Vec::with_capacity(1 + 32 + PaymentSummary::BYTES);
        bytes.push(PAYMENT_VERSION);
        bytes.extend(network.0);
        self.write(&mut bytes);
        Digest::of(PAYMENT_CONTEXT, &bytes)
    }
}

/// The rules of one asset in a home of the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssetRule {
    /// The smallest output, in units.
    pub least_units: Amount,
    /// The fee that each payment leaves in escrow for each asset that it moves, in units.
    pub fee: Amount,
}

/// The rules of the payments of a home, which never change once it has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRules {
    /// The identity of the network.
    pub network: Digest,
    /// Rules of assets.
    pub assets: BTreeMap<AssetId, AssetRule>,
    /// The rule of every other asset.
    pub other: AssetRule,
}

impl LaneRules {
    /// The rule of an asset.
    pub fn asset(&self, asset: AssetId) -> AssetRule {
        self.assets.get(&asset).copied().unwrap_or(self.other)
    }
}
