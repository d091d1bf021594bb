//! The paper's Monte Carlo models: proxy hedging (appendix C) and packet spraying (appendix K).
//!
//! # Deviations from the paper
//!
//! - *Shared ancestors.* Appendix C draws the latencies of the H + 1 parents of a node independently. In a tree
//!   siblings share parents, so here whole trees are drawn as well. For D = 3 the means of a receiver are 1.50, 1.02,
//!   0.80, 0.67 (independent) and 1.49, 1.04, 0.82, 0.70 (tree) for H = 0 … 3.
//! - *Diminishing returns.* The uniform law does not show "H 0 → 1 large, 1 → 2 small" for the latency of the last
//!   receiver, which is 2.78, 2.16, 1.77, 1.54. That needs rare stragglers.

use kernel::Xoshiro;

/// A tree of appendix C: links are uniform on [0, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HedgeModel {
    /// Layers below the root.
    pub depth: u32,
    /// Children of a node.
    pub fan_out: u32,
    /// Hedging factor.
    pub hedging: u32,
    /// How much a hedging link's latency depends on a direct link of its sender; 0 of independent links.
    pub alpha: f64,
    /// Whether siblings share their parents, or everything is drawn anew for each receiver as in the paper.
    pub is_tree: bool,
}

/// Latencies of receivers in one round: all of a tree, or a single one.
pub fn hedged_delays(model: &HedgeModel, dice: &mut Xoshiro) -> Vec<f64> {
    if model.is_tree { tree_delays(model, dice) } else { vec![lone_delay(model, model.depth - 1, dice)] }
}

/// The recursion of appendix C, every term drawn independently.
fn lone_delay(model: &HedgeModel, layer: u32, dice: &mut Xoshiro) -> f64 {
    if layer == 0 {
        return dice.unit();
    }
    let path = |copy: u32, dice: &mut Xoshiro| {
        let before = lone_delay(model, layer - 1, dice);
        before + if copy == 0 { dice.unit() } else { model.alpha * dice.unit() + dice.unit() }
    };
    (0..=model.hedging).map(|copy| path(copy, dice)).fold(f64::INFINITY, f64::min)
}

/// Layer by layer: node i has the parents ⌊i/F⌋, ⌊i/F⌋ − 1, …, around the layer.
fn tree_delays(model: &HedgeModel, dice: &mut Xoshiro) -> Vec<f64> {
    let fan_out = model.fan_out as usize;
    let mut layer: Vec<f64> = (0..fan_out).map(|_| dice.unit()).collect();
    for _ in 1..model.depth {
        let direct: Vec<f64> = (0..layer.len() * fan_out).map(|_| dice.unit()).collect();
        let mut delay = |child: usize| {
            let (own, place) = (child / fan_out, child % fan_out);
            let mut best = layer[own] + direct[child];
            for copy in 1..=model.hedging as usize {
                let aunt = (own + layer.len() - copy % layer.len()) % layer.len();
                // An aunt's link to her niece depends on her link to her own child in the same place.
                let link = model.alpha * direct[aunt * fan_out + place] + dice.unit();
                best = best.min(layer[aunt] + link);
            }
            best
        };
        layer = (0..layer.len() * fan_out).map(&mut delay).collect();
    }
    layer
}

/// A tree of appendix K: a root, proxies, and receivers of which some links are spiky for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SprayModel {
    /// Proxies, each with as many receivers.
    pub fan_out: u32,
    /// Links from one proxy to receivers that are spiky.
    pub spiky: u32,
    /// Share of the rounds of spraying in which somebody sends through the spiky links; without spraying everybody
    /// does.
    pub alpha: f64,
    /// How much other links depend on spiky ones.
    pub beta: f64,
    /// Rounds for which a drawn latency of a spiky link stays.
    pub stick: u32,
}

/// Mean of a spiky link and of another (appendix K); the laws are exponential.
const SPIKY: f64 = 500.0;
const PLAIN: f64 = 50.0;

/// Latencies to the last receiver, in the paper's unit, for `rounds` messages: with spraying and without.
pub fn sprayed_delays(model: &SprayModel, rounds: u32, dice: &mut Xoshiro) -> (Vec<f64>, Vec<f64>) {
    let mut links = vec![0.0; model.spiky as usize];
    let round = |round: u32| {
        if round.is_multiple_of(model.stick.max(1)) {
            links.iter_mut().for_each(|link| *link = dice.exponential(SPIKY));
        }
        let is_spiky = dice.happens(model.alpha);
        (last_receiver(model, &links, is_spiky, dice), last_receiver(model, &links, true, dice))
    };
    (0..rounds).map(round).unzip()
}

fn last_receiver(model: &SprayModel, links: &[f64], is_spiky: bool, dice: &mut Xoshiro) -> f64 {
    let mut last = 0.0f64;
    for proxy in 0..model.fan_out {
        let to_proxy = dice.exponential(PLAIN);
        for receiver in 0..model.fan_out as usize {
            let base = links.get(receiver).copied().filter(|_| proxy == 0);
            let plain = dice.exponential(PLAIN);
            // The links that are used instead depend on the spiky ones by beta.
            let link = match base {
                Some(spiky) if is_spiky => spiky,
                Some(spiky) => model.beta * spiky + plain,
                None => plain,
            };
            last = last.max(to_proxy + link);
        }
    }
    last
}
