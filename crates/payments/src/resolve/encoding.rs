//! The canonical encoding of what the ledger knows of cases: sets and maps ascend strictly, each body is written once
//! and referred to by its position.
//!
//! ```text
//! resolver  network 32 · count 4 · epoch[] · count 4 · case[]
//! epoch     number 8 · validators 2 · absent 2 · last 8 · count 4 · certified digest 32 each · count 4 · taken[]
//!           · count 4 · expired output 32 each
//! taken     output 32 · (0 · digest 32 | 1 freed | 2 lapsed | 3 void)
//! case      output 32 · asset 4 · amount 8 · home 8 · owner 32 · opened 8 · height 8 · count 2 · body[]
//!           · count 2 · vote[]
//!           · (0 | 1 · count 2 · place 2 each) · count 2 · view[] · count 2 · view[]
//! body      length 2 · payment
//! vote      validator 1 · place 2
//! view      validator 1                                          empty ones
//! ```

use super::*;

impl Resolver {
    /// Writes everything that is not in [`Resolver::entries`]: a few bytes for each epoch that counts.
    pub(crate) fn write_rest(&self, to: &mut Vec<u8>) {
        write_count(to, self.epochs.len());
        for (epoch, facts) in &self.epochs {
            to.extend(epoch.to_le_bytes());
            to.extend((facts.thresholds.validators as u16).to_le_bytes());
            to.extend((facts.absent as u16).to_le_bytes());
            to.extend(facts.last.to_le_bytes());
        }
    }

    /// Writes its encoding.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.network.0);
        write_count(to, self.epochs.len());
        for (epoch, facts) in &self.epochs {
            to.extend(epoch.to_le_bytes());
            to.extend((facts.thresholds.validators as u16).to_le_bytes());
            to.extend((facts.absent as u16).to_le_bytes());
            to.extend(facts.last.to_le_bytes());
            write_count(to, facts.certified.len());
            facts.certified.iter().for_each(|digest| to.extend(digest.0));
            write_count(to, facts.taken.len());
            for (output, taken) in &facts.taken {
                to.extend(output.0);
                taken.write(to);
            }
            write_count(to, facts.expired.len());
            facts.expired.iter().for_each(|output| to.extend(output.0));
        }
        write_count(to, self.cases.len());
        self.cases.values().for_each(|case| case.write(to));
    }

    pub(crate) fn read(reader: &mut Reader<'_>, heights_max: u64) -> Result<Resolver, LaneRefusal> {
        let mut resolver = Resolver::new(reader.digest()?, heights_max);
        let epochs = reader.u32()?;
        resolver.epochs = read_map(reader, epochs, |reader| Ok((reader.u64()?, EpochFacts::read(reader)?)))?;
        let cases = reader.u32()?;
        let network = resolver.network;
        resolver.cases = read_map(reader, cases, |reader| {
            let case = Case::read(reader, network)?;
            Ok((case.contested.output.id, case))
        })?;
        if resolver.cases.values().any(|case| !resolver.epochs.contains_key(&case.contested.home)) {
            return Err(LaneRefusal::Malformed("a case is of an epoch that is not registered"));
        }
        resolver.index = index::CaseIndex::of(&resolver.cases, heights_max);
        Ok(resolver)
    }
}

fn write_count(to: &mut Vec<u8>, count: usize) {
    to.extend(u32::try_from(count).expect("bounded by the blocks of a few epochs").to_le_bytes());
}

fn write_short(to: &mut Vec<u8>, count: usize) {
    to.extend(u16::try_from(count).expect("bounded by the members of a committee").to_le_bytes());
}

fn read_short(reader: &mut Reader<'_>) -> Result<u32, LaneRefusal> {
    reader.array().map(u16::from_le_bytes).map(u32::from)
}

/// Parses a map whose keys must ascend strictly.
pub(crate) fn read_map<'a, K: Ord, V>(
    reader: &mut Reader<'a>,
    count: u32,
    mut entry: impl FnMut(&mut Reader<'a>) -> Result<(K, V), LaneRefusal>,
) -> Result<BTreeMap<K, V>, LaneRefusal> {
    let mut map = BTreeMap::new();
    for _ in 0..count {
        let (key, value) = entry(reader)?;
        if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(LaneRefusal::Malformed("keys do not ascend strictly"));
        }
        map.insert(key, value);
    }
    Ok(map)
}

impl Taken {
    pub(super) fn write(self, to: &mut Vec<u8>) {
        match self {
            Taken::By(digest) => {
                to.push(0);
                to.extend(digest.0);
            }
            Taken::Freed => to.push(1),
            Taken::Lapsed => to.push(2),
            Taken::Void => to.push(3),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Taken, LaneRefusal> {
        match reader.u8()? {
            0 => reader.digest().map(Taken::By),
            1 => Ok(Taken::Freed),
            2 => Ok(Taken::Lapsed),
            3 => Ok(Taken::Void),
            _ => Err(LaneRefusal::Malformed("an output is taken in one of four ways")),
        }
    }
}

impl EpochFacts {
    fn read(reader: &mut Reader<'_>) -> Result<EpochFacts, LaneRefusal> {
        let validators = read_short(reader)? as usize;
        if !(1..=crate::VALIDATORS_MAX).contains(&validators) {
            return Err(LaneRefusal::Malformed("a committee has 1 to 256 validators"));
        }
        let absent = read_short(reader)? as usize;
        if absent >= validators {
            return Err(LaneRefusal::Malformed("some member of a committee has keys"));
        }
        let last = reader.u64()?;
        let count = reader.u32()?;
        let certified = read_map(reader, count, |reader| Ok((reader.digest()?, ())))?.into_keys().collect();
        let count = reader.u32()?;
        let taken = read_map(reader, count, |reader| Ok((OutputId(reader.array()?), Taken::read(reader)?)))?;
        let count = reader.u32()?;
        let expired = read_map(reader, count, |reader| Ok((OutputId(reader.array()?), ())))?.into_keys().collect();
        let thresholds = Thresholds::of(Quorums::new(validators));
        Ok(EpochFacts { thresholds, absent, last, certified, taken, expired })
    }
}

impl Case {
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        self.contested.write(to);
        to.extend(self.opened.epoch.to_le_bytes());
        to.extend(self.opened.height.to_le_bytes());
        write_short(to, self.bodies.len());
        for body in self.bodies.values() {
            let bytes = body.payment.encode();
            write_short(to, bytes.len());
            to.extend(bytes);
        }
        let place = |digest: &Digest| self.bodies.keys().position(|of| of == digest).expect("votes have bodies");
        let put_places = |to: &mut Vec<u8>, digests: &BTreeSet<Digest>| {
            write_short(to, digests.len());
            digests.iter().for_each(|digest| write_short(to, place(digest)));
        };
        write_short(to, self.votes.len());
        for (validator, digest) in &self.votes {
            to.push(*validator);
            write_short(to, place(digest));
        }
        to.push(u8::from(self.candidates.is_some()));
        self.candidates.iter().for_each(|candidates| put_places(to, candidates));
        for views in &self.views {
            write_short(to, views.len());
            to.extend(views);
        }
    }

    fn read(reader: &mut Reader<'_>, network: Digest) -> Result<Case, LaneRefusal> {
        let wrong = LaneRefusal::Malformed("a case names a body that it does not hold");
        let contested = ContestedOutput::read(reader)?;
        let exit = PaymentBody::parse(&contested.exit(network).encode())?.digest;
        let opened = LaneTime { epoch: reader.u64()?, height: reader.u64()? };
        let count = read_short(reader)?;
        let bodies = read_map(reader, count, |reader| {
            let length = read_short(reader)? as usize;
            let body = PaymentBody::parse(reader.bytes(length)?)?;
            Ok((body.digest, Arc::new(body)))
        })?;
        let place = |reader: &mut Reader<'_>| {
            let place = read_short(reader)? as usize;
            bodies.keys().nth(place).copied().ok_or(wrong.clone())
        };
        let places = |reader: &mut Reader<'_>| -> Result<BTreeSet<Digest>, LaneRefusal> {
            let count = read_short(reader)?;
            Ok(read_map(reader, count, |reader| Ok((place(reader)?, ())))?.into_keys().collect())
        };
        let count = read_short(reader)?;
        let votes = read_map(reader, count, |reader| Ok((reader.u8()?, place(reader)?)))?;
        let candidates = match reader.u8()? {
            0 => None,
            1 => Some(places(reader)?),
            _ => return Err(wrong),
        };
        let mut views: [BTreeSet<u8>; 2] = Default::default();
        for views in &mut views {
            let count = read_short(reader)?;
            *views = read_map(reader, count, |reader| Ok((reader.u8()?, ())))?.into_keys().collect();
        }
        if bodies.keys().any(|digest| !votes.values().any(|vote| vote == digest)) {
            return Err(wrong);
        }
        Ok(Case { contested, exit, opened, votes, bodies: bodies.clone(), candidates, views })
    }
}
