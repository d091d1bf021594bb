//! The canonical encoding of the state:
//!
//! ```text
//! clock · resolver · outputs, backed ones · outputs, proven ones
//! · count 4 · (asset 4 · backing 16 · deposits 16 · redemptions 16 · verdicts 16)[]
//! · count 4 · (output 32 · opener 20 · deposit 8)[] · queue · count 4 · registration[] · count 2 · member 1 each
//! · boards, where members make group keys: see `boards.rs`
//! outputs: count 4 · (home 8 · count 4 · (id 32 · output 45)[])[]
//! ```

use super::*;

const REST_CONTEXT: &str = "walras 2026 lane bridge rest v4";

fn write_outputs(to: &mut Vec<u8>, homes: &HomeOutputs) {
    to.extend((homes.len() as u32).to_le_bytes());
    for (home, outputs) in homes {
        to.extend(home.to_le_bytes());
        to.extend((outputs.len() as u32).to_le_bytes());
        for (id, output) in outputs {
            to.extend(id.0);
            output.write(to);
        }
    }
}

fn read_outputs(read: &mut Reader<'_>) -> Result<HomeOutputs, LaneRefusal> {
    let count = read.u32()?;
    read_map(read, count, |read| {
        let (home, count) = (read.u64()?, read.u32()?);
        let output = |read: &mut Reader<'_>| Ok((OutputId(read.array()?), Output::read(read)?));
        Ok((home, read_map(read, count, output)?))
    })
}

impl Bridge {
    /// The encoding of the state. The rules are not part of it: they belong to the genesis.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        self.clock.write(&mut to);
        self.resolver.write(&mut to);
        write_outputs(&mut to, &self.backed);
        write_outputs(&mut to, &self.proven);
        self.write_sums(&mut to);
        to.extend((self.registrations.len() as u32).to_le_bytes());
        self.registrations.values().for_each(|registration| registration.write(&mut to));
        self.write_convicted(&mut to);
        self.write_boards(&mut to);
        to
    }

    /// A digest of everything that is not in [`Bridge::entries`]. It costs a few bytes for each asset of the lane and
    /// for each epoch that counts, however much is open.
    pub fn rest_digest(&self) -> Digest {
        Digest::of(REST_CONTEXT, &self.rest())
    }

    pub(super) fn rest(&self) -> Vec<u8> {
        let mut to = Vec::new();
        self.clock.write(&mut to);
        self.resolver.write_rest(&mut to);
        self.write_totals(&mut to);
        self.queue.write_limits(&mut to);
        self.write_convicted(&mut to);
        to
    }

    fn write_convicted(&self, to: &mut Vec<u8>) {
        to.extend((self.convicted.len() as u16).to_le_bytes());
        to.extend(&self.convicted);
    }

    fn write_totals(&self, to: &mut Vec<u8>) {
        to.extend((self.totals.len() as u32).to_le_bytes());
        for (asset, totals) in &self.totals {
            to.extend(asset.0.to_le_bytes());
            let EscrowTotals { backing, deposits, redemptions, verdicts } = totals;
            [backing, deposits, redemptions, verdicts].iter().for_each(|sum| to.extend(sum.to_le_bytes()));
        }
    }

    fn write_sums(&self, to: &mut Vec<u8>) {
        self.write_totals(to);
        to.extend((self.deposits.len() as u32).to_le_bytes());
        for (output, (opener, deposit)) in &self.deposits {
            to.extend(output.0);
            to.extend(opener.0);
            to.extend(deposit.to_le_bytes());
        }
        self.queue.write(to);
    }

    /// The lane epoch of an encoded state, by which its limits are known.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] if the state does not begin with a clock.
    pub fn epoch_of(bytes: &[u8]) -> Result<HomeEpoch, LaneRefusal> {
        Ok(LaneClock::read(&mut Reader::new(bytes))?.epoch())
    }

    /// Parses a state that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`Bridge::encode`] does not write.
    pub fn parse(rules: BridgeRules, bytes: &[u8]) -> Result<Bridge, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let read = &mut reader;
        let (clock, resolver) = (LaneClock::read(read)?, Resolver::read(read, rules.schedule.case_heights())?);
        let (backed, proven) = (read_outputs(read)?, read_outputs(read)?);
        let count = read.u32()?;
        let totals = read_map(read, count, |read| {
            let asset = AssetId(read.u32()?);
            let mut sums = [0; 4];
            for sum in &mut sums {
                *sum = u128::from_le_bytes(read.array()?);
            }
            let [backing, deposits, redemptions, verdicts] = sums;
            Ok((asset, EscrowTotals { backing, deposits, redemptions, verdicts }))
        })?;
        let count = read.u32()?;
        let deposit = |read: &mut Reader<'_>| Ok((OutputId(read.array()?), (Address(read.array()?), read.u64()?)));
        let deposits = read_map(read, count, deposit)?;
        if totals.values().any(|totals: &EscrowTotals| totals.held().is_none()) {
            return Err(LaneRefusal::Malformed("more left escrow than entered it"));
        }
        let queue = OutflowQueue::read(read)?;
        let count = read.u32()?;
        let registration = |read: &mut Reader<'_>| {
            let registration = LaneRegistration::read(read)?;
            Ok(((registration.epoch, registration.member), registration))
        };
        let registrations = read_map(read, count, registration)?;
        let count = u16::from_le_bytes(read.array()?);
        let convicted = read_map(read, count.into(), |read| Ok((read.u8()?, ())))?.into_keys().collect();
        if registrations.keys().any(|(_, member)| usize::from(*member) >= rules.registrars.len()) {
            return Err(LaneRefusal::Malformed("a non-member has registered keys"));
        }
        if clock.schedule() != rules.schedule
            || resolver.network() != rules.network
            || !queue.has_limits(&rules.outflow)
        {
            return Err(LaneRefusal::Malformed("the state is of a lane with other rules"));
        }
        let deposited = deposits.values().map(|(_, amount)| u128::from(*amount)).sum();
        let boards = BTreeMap::new();
        let mut bridge = Bridge {
            rules,
            clock,
            resolver,
            backed,
            proven,
            totals,
            deposits,
            deposited,
            queue,
            registrations,
            convicted,
            boards,
        };
        bridge.read_boards(read)?;
        reader.end()?;
        Ok(bridge)
    }
}
