//! Which member has which place in the tree of an epoch, and where it is reached.
//!
//! The proxies that are present are divided among the layers, the widest at the bottom, by the fan-out that the number
//! of gateways asks for. The way in uses the same tree: a member's parent is the node that sends it packet 0.
//!
//! # Properties
//!
//! - The seating is a function of epoch, shape and members: the root computes it and everybody else is sent it.
//! - Every gateway has a place, however few proxies there are; with none the root sends to the gateways itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::bytes::{ByteReader, put_address};
use crate::plan::{Plan, Spot, depth_by_rule};

/// The number of a member; the root is 0.
pub type MemberId = u64;

/// The root's number.
pub const ROOT_MEMBER: MemberId = 0;

/// Where a member is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgePlace {
    /// Where it receives datagrams, and sends them from.
    pub datagrams: SocketAddr,
    /// Where it takes connections.
    pub streams: SocketAddr,
}

/// A member and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its number.
    pub member: MemberId,
    /// Its addresses.
    pub place: EdgePlace,
}

/// What trees shall look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatingShape {
    /// Layers of proxies; fewer if there are too few proxies. By the rule of appendix A if absent.
    pub layers: Option<u32>,
    /// Hedging factor H; less where a layer is too narrow.
    pub hedging: u32,
}

/// A tree and who is where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seating {
    plan: Plan,
    /// By layer, the root's first.
    layers: Vec<Vec<Seat>>,
    spots: BTreeMap<MemberId, Spot>,
    senders: BTreeMap<SocketAddr, MemberId>,
}

/// Layers of proxies at most.
const LAYERS_MAX: u32 = 6;
/// Members of one seating at most.
const MEMBERS_MAX: usize = 1 << 16;

/// Widths of the layers of proxies, from the top: each has about `fan_out` times as many as the one above.
fn widths(proxies: usize, layers: usize, gateways: usize, fan_out: usize) -> Vec<usize> {
    let (mut left, mut below, mut widths) = (proxies, gateways, Vec::new());
    for above in (0..layers).rev() {
        let share = (left * fan_out / (fan_out + 1)).max(left.div_ceil(2));
        let own = if above == 0 { left } else { share.min(left - above) };
        widths.push(own.min(below));
        (left, below) = (left - own, own.min(below));
    }
    widths.reverse();
    widths
}

/// The least F with F^depth ≥ gateways.
fn fan_out(gateways: usize, depth: u32) -> usize {
    (1..=gateways).find(|fan_out| fan_out.saturating_pow(depth) >= gateways).unwrap_or(1)
}

impl Seating {
    /// The tree of an epoch; `None` without gateways, or with too many.
    pub fn new(epoch: u32, shape: SeatingShape, root: Seat, proxies: &[Seat], gateways: &[Seat]) -> Option<Seating> {
        if gateways.is_empty() || gateways.len() + proxies.len() > MEMBERS_MAX {
            return None;
        }
        let by_rule = depth_by_rule(gateways.len() as u32).saturating_sub(1).max(1);
        let layers = shape.layers.unwrap_or(by_rule).min(proxies.len() as u32).min(LAYERS_MAX);
        let fan_out = fan_out(gateways.len(), layers + 1).max(2);
        let widths = widths(proxies.len(), layers as usize, gateways.len(), fan_out);
        let hedging = widths.iter().min().map_or(0, |least| shape.hedging.min(*least as u32 - 1));
        let mut rest = proxies;
        let mut seats = vec![vec![root]];
        for width in &widths {
            let (layer, others) = rest.split_at(*width);
            seats.push(layer.to_vec());
            rest = others;
        }
        seats.push(gateways.to_vec());
        Seating::with(epoch, hedging, seats)
    }

    fn with(epoch: u32, hedging: u32, layers: Vec<Vec<Seat>>) -> Option<Seating> {
        let widths: Vec<u32> = layers[1..].iter().map(|layer| layer.len() as u32).collect();
        let plan = Plan::with_widths(epoch, &widths, hedging, 1).ok()?;
        let places = layers.iter().enumerate().flat_map(|(layer, seats)| {
            let spot = move |index: usize| Spot { layer: layer as u32, index: index as u32 };
            seats.iter().enumerate().map(move |(index, seat)| (seat, spot(index)))
        });
        let spots: BTreeMap<MemberId, Spot> = places.clone().map(|(seat, spot)| (seat.member, spot)).collect();
        let senders = places.clone().map(|(seat, _)| (seat.place.datagrams, seat.member)).collect();
        let is_unique = spots.len() == layers.iter().map(Vec::len).sum::<usize>();
        is_unique.then_some(Seating { plan, layers, spots, senders })
    }

    /// The tree.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Number of the configuration.
    pub fn epoch(&self) -> u32 {
        self.plan.epoch()
    }

    /// Who has a place.
    pub fn seat(&self, spot: Spot) -> Option<&Seat> {
        self.layers.get(spot.layer as usize)?.get(spot.index as usize)
    }

    /// Which place a member has.
    pub fn spot_of(&self, member: MemberId) -> Option<Spot> {
        self.spots.get(&member).copied()
    }

    /// Who sends datagrams from an address.
    pub fn member_at(&self, from: &SocketAddr) -> Option<MemberId> {
        self.senders.get(from).copied()
    }

    /// To whom a member sends orders: see the module.
    pub fn parent(&self, member: MemberId) -> Option<&Seat> {
        let spot = self.plan.parents(self.spot_of(member)?, 0).next()?;
        self.seat(spot)
    }

    /// All members, the root first.
    pub fn members(&self) -> impl Iterator<Item = &Seat> + '_ {
        self.layers.iter().flatten()
    }

    /// The members of the last layer.
    pub fn gateways(&self) -> &[Seat] {
        self.layers.last().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.epoch().to_be_bytes());
        out.extend_from_slice(&self.plan.hedging().to_be_bytes());
        out.push(self.layers.len() as u8);
        for layer in &self.layers {
            out.extend_from_slice(&(layer.len() as u32).to_be_bytes());
            for seat in layer {
                out.extend_from_slice(&seat.member.to_be_bytes());
                seat.place.encode(out);
            }
        }
    }

    pub(crate) fn decode(bytes: &mut ByteReader<'_>) -> Option<Seating> {
        let (epoch, hedging, count) = (bytes.u32()?, bytes.u32()?, bytes.u8()?);
        let mut layers = Vec::new();
        for _ in 0..count {
            let width = bytes.u32()? as usize;
            let seat = |_| Some(Seat { member: bytes.u64()?, place: EdgePlace::decode(bytes)? });
            layers.push((0..width.min(MEMBERS_MAX)).map(seat).collect::<Option<Vec<Seat>>>()?);
        }
        let is_tree = layers.len() >= 2 && layers[0].len() == 1;
        is_tree.then(|| Seating::with(epoch, hedging, layers))?
    }
}

impl EdgePlace {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_address(&self.datagrams, out);
        put_address(&self.streams, out);
    }

    pub(crate) fn decode(bytes: &mut ByteReader<'_>) -> Option<EdgePlace> {
        Some(EdgePlace { datagrams: bytes.address()?, streams: bytes.address()? })
    }
}
