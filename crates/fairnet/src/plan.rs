//! The overlay tree: how deep, how wide, and who sends which packet to whom (Onyx §4, §4.1, §4.2, appendices A and D).
//!
//! The root sends each packet to the first layer of proxies, each layer to the next, the last to the receivers. With N
//! receivers the depth is D = log10 N, rounded to the nearest integer and at least 1, and the fan-out F is the least
//! with F^D ≥ N. *Parallel trees* share root and receivers; a symbol's packets always go through the same tree.
//!
//! *Spraying*: upon packet k, parent p of a layer with W nodes serves group (p + s(k)) mod W of the next layer, where
//! s(k) is the layer's shift. *Proxy hedging*: with factor H it also serves the H groups that follow, so each node gets
//! H + 1 copies, from different parents.
//!
//! # Properties
//!
//! - Of every packet each node gets exactly H + 1 copies, from H + 1 different parents; of the root's, one.
//! - `children` and `parents` are inverses of each other.
//! - Over as many successive packets as there are paths through the proxies, an unhedged receiver is reached by each
//!   path once.
//!
//! # Deviations from the paper
//!
//! - *Depth.* §4 and appendix A write ⌈log10 N⌉, the example of appendix A (N = 200, D = 2) rounds to the nearest
//!   integer, and so do we. Its F = 14 reaches only 196 receivers: ours is 15.
//! - *Shift.* §4.1 shifts children by one, its example by F. We rotate whole groups: with a shift by one, hedged copies
//!   of neighbours overlap and some nodes get more than H + 1.
//! - *Paths.* §4.1 counts ∏ F^d paths to a leaf; there are ∏ W_d, one for each choice of a proxy in every layer. If
//!   every layer shifts by the packet number, shifts of different layers go together and most paths are never used. A
//!   layer shifts by k mod P + k div P, where P is the product of the widths of the proxy layers below it.
//! - *Hedging of the first layer.* There is one root, so the first layer gets one copy (the paper does not say).

use crate::Nanos;

/// Widths of a tree beyond this are refused: positions are 32-bit numbers.
const RECEIVERS_MAX: u32 = 1 << 20;
const DEPTH_MAX: u32 = 8;

/// A position in a tree: layer 0 is the root, the last layer the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// Hops from the root.
    pub layer: u32,
    /// Place in the layer.
    pub index: u32,
}

impl Spot {
    /// The root.
    pub const ROOT: Spot = Spot { layer: 0, index: 0 };
}

/// What a tree shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRequest {
    /// Number of the configuration that the plan belongs to.
    pub epoch: u32,
    /// Receivers N.
    pub receivers: u32,
    /// Depth D; by the rule if absent.
    pub depth: Option<u32>,
    /// Hedging factor H: additional copies for each node below the first layer.
    pub hedging: u32,
    /// Parallel trees.
    pub trees: u16,
}

/// Why there is no such tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Number of receivers out of range.
    #[error("{0} receivers: write 1 to {RECEIVERS_MAX}")]
    Receivers(u32),
    /// Depth out of range.
    #[error("a depth of {0}: write 1 to {DEPTH_MAX}")]
    Depth(u32),
    /// No trees.
    #[error("no tree: write at least 1")]
    Trees,
    /// A layer is wider than the next, or empty.
    #[error("layer {0} is empty or wider than the next")]
    Widths(u32),
    /// A layer has too few nodes to hedge with.
    #[error("hedging by {hedging} needs {} proxies in layer {layer}, which has {width}", hedging + 1)]
    Hedging {
        /// Hedging factor asked for.
        hedging: u32,
        /// The narrow layer.
        layer: u32,
        /// Its nodes.
        width: u32,
    },
}

/// A tree, for one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    epoch: u32,
    /// Nodes of layers 0 … D.
    widths: Vec<u32>,
    /// For each layer the product of the widths of the proxy layers below it.
    below: Vec<u64>,
    hedging: u32,
    trees: u16,
}

/// The least F with F^depth ≥ receivers.
fn fan_out(receivers: u32, depth: u32) -> u32 {
    let reaches = |fan_out: u32| u64::from(fan_out).saturating_pow(depth) >= u64::from(receivers);
    let (mut low, mut high) = (1, receivers.max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if reaches(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The integer nearest to log10 N, at least 1: the boundary between d and d + 1 is 10^(d + 1/2).
pub(crate) fn depth_by_rule(receivers: u32) -> u32 {
    let square = u128::from(receivers).pow(2);
    (1..DEPTH_MAX).find(|depth| square < 10u128.pow(2 * depth + 1)).unwrap_or(DEPTH_MAX)
}

impl Plan {
    /// A tree by the rule of appendix A.
    pub fn new(request: &PlanRequest) -> Result<Plan, PlanError> {
        let PlanRequest { epoch, receivers, hedging, trees, .. } = *request;
        if !(1..=RECEIVERS_MAX).contains(&receivers) {
            return Err(PlanError::Receivers(receivers));
        }
        let depth = request.depth.unwrap_or_else(|| depth_by_rule(receivers));
        if !(1..=DEPTH_MAX).contains(&depth) {
            return Err(PlanError::Depth(depth));
        }
        let fan_out = fan_out(receivers, depth);
        let mut widths: Vec<u32> = std::iter::successors(Some(receivers), |width| Some(width.div_ceil(fan_out)))
            .take(depth as usize)
            .collect();
        widths.reverse();
        Plan::with_widths(epoch, &widths, hedging, trees)
    }

    /// A tree with these widths of layers 1 … D; the last are the receivers.
    pub fn with_widths(epoch: u32, layers: &[u32], hedging: u32, trees: u16) -> Result<Plan, PlanError> {
        let depth = layers.len() as u32;
        if !(1..=DEPTH_MAX).contains(&depth) {
            return Err(PlanError::Depth(depth));
        }
        if trees == 0 {
            return Err(PlanError::Trees);
        }
        let widths: Vec<u32> = std::iter::once(1).chain(layers.iter().copied()).collect();
        if let Some(at) = widths.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(PlanError::Widths(at as u32 + 1));
        }
        if widths[depth as usize] > RECEIVERS_MAX {
            return Err(PlanError::Receivers(widths[depth as usize]));
        }
        let proxies = 1..depth as usize;
        if let Some(at) = proxies.clone().find(|at| widths[*at] <= hedging) {
            return Err(PlanError::Hedging { hedging, layer: at as u32, width: widths[at] });
        }
        let product = |layer: usize| {
            let below = proxies.clone().filter(|below| *below > layer);
            below.fold(1u64, |product, below| product.saturating_mul(u64::from(widths[below])))
        };
        let below = (0..=depth as usize).map(product).collect();
        Ok(Plan { epoch, widths, below, hedging, trees })
    }

    /// Number of the configuration.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Hops from root to receivers, D.
    pub fn depth(&self) -> u32 {
        self.widths.len() as u32 - 1
    }

    /// Nodes of layers 0 … D.
    pub fn widths(&self) -> &[u32] {
        &self.widths
    }

    /// Hedging factor H.
    pub fn hedging(&self) -> u32 {
        self.hedging
    }

    /// Parallel trees.
    pub fn trees(&self) -> u16 {
        self.trees
    }

    /// Proxies of all trees.
    pub fn proxies(&self) -> u64 {
        let one: u64 = self.widths[1..self.widths.len() - 1].iter().map(|width| u64::from(*width)).sum();
        one * u64::from(self.trees)
    }

    /// Most children in a group of the layer below `layer`, without hedging: the fan-out F there.
    pub fn fan_out(&self, layer: u32) -> u32 {
        self.widths[layer as usize + 1].div_ceil(self.widths[layer as usize])
    }

    /// The tree that carries a symbol.
    pub fn tree_of(&self, symbol: u64) -> u16 {
        (symbol % u64::from(self.trees)) as u16
    }

    /// Whether there is such a position.
    pub fn has(&self, spot: Spot) -> bool {
        self.widths.get(spot.layer as usize).is_some_and(|width| spot.index < *width)
    }

    /// How far a layer rotates for a packet: see the module.
    fn shift(&self, layer: u32, packet: u64) -> u64 {
        let below = self.below[layer as usize];
        (packet % below).wrapping_add(packet / below) % u64::from(self.widths[layer as usize])
    }

    /// Copies that a node of this layer sends to each group of children: see the module.
    fn copies(&self, layer: u32) -> u32 {
        if layer == 0 { 1 } else { self.hedging + 1 }
    }

    /// The nodes of the layer below `layer` that form a group.
    fn group(&self, layer: u32, group: u32) -> std::ops::Range<u32> {
        let (width, next) = (u64::from(self.widths[layer as usize]), u64::from(self.widths[layer as usize + 1]));
        let first = |group: u64| (group * next).div_ceil(width) as u32;
        first(u64::from(group))..first(u64::from(group) + 1)
    }

    /// Group of a node of layer `layer + 1`: the inverse of [`Plan::group`].
    fn group_of(&self, layer: u32, child: u32) -> u32 {
        let (width, next) = (u64::from(self.widths[layer as usize]), u64::from(self.widths[layer as usize + 1]));
        (u64::from(child) * width / next) as u32
    }

    /// To whom `parent` sends a packet, in this order: its own group first, then those that it hedges.
    pub fn children(&self, parent: Spot, packet: u64) -> impl Iterator<Item = Spot> + '_ {
        let is_parent = parent.layer < self.depth() && self.has(parent);
        let copies = if is_parent { self.copies(parent.layer) } else { 0 };
        let (layer, width) = (parent.layer, self.widths.get(parent.layer as usize).copied().unwrap_or(1));
        let mut at = if is_parent { (u64::from(parent.index) + self.shift(layer, packet)) as u32 % width } else { 0 };
        let next = move |_| {
            let group = at;
            at = if at + 1 == width { 0 } else { at + 1 };
            group
        };
        let groups = (0..copies).map(next);
        groups.flat_map(move |group| self.group(layer, group)).map(move |index| Spot { layer: layer + 1, index })
    }

    /// Who sends a packet to `child`: its own parent first, then those that hedge.
    pub fn parents(&self, child: Spot, packet: u64) -> impl Iterator<Item = Spot> + '_ {
        let has = child.layer > 0 && self.has(child);
        let layer = child.layer.saturating_sub(1);
        let copies = if has { self.copies(layer) } else { 0 };
        let width = u64::from(self.widths[if has { layer as usize } else { 0 }]);
        let own =
            if has { u64::from(self.group_of(layer, child.index)) + width - self.shift(layer, packet) } else { 0 };
        (0..copies).map(move |copy| Spot { layer, index: ((own + width - u64::from(copy)) % width) as u32 })
    }

    /// Whom a node asks for a packet that it misses: its parents, which keep rings, then the root.
    pub fn rewinders(&self, child: Spot, packet: u64) -> impl Iterator<Item = Spot> + '_ {
        let root = (child.layer > 1).then_some(Spot::ROOT);
        self.parents(child, packet).chain(root)
    }

    /// Copies that all nodes together send of one packet.
    pub fn copies_of_packet(&self) -> u64 {
        (0..self.depth()).map(|layer| u64::from(self.widths[layer as usize + 1]) * u64::from(self.copies(layer))).sum()
    }
}

/// Latency of a tree as a sum over its hops (appendix A).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeCost {
    /// Microseconds of a hop whatever its fan-out.
    pub hop_us: f64,
    /// Microseconds for each child of a sender.
    pub copy_us: f64,
}

impl TreeCost {
    /// As the paper states it. It is 7 to 21 % below every cell of its own table 3.
    pub const PAPER: TreeCost = TreeCost { hop_us: 30.0, copy_us: 2.7 };
    /// Fitted on the cells of table 3 with at most 100 receivers.
    pub const FITTED: TreeCost = TreeCost { hop_us: 32.6, copy_us: 3.2 };

    /// Latency to the last receiver, in microseconds, without hedging.
    pub fn latency_us(&self, depth: u32, fan_out: u32) -> f64 {
        f64::from(depth) * (self.hop_us + self.copy_us * f64::from(fan_out))
    }

    /// The depth that costs least.
    pub fn best_depth(&self, receivers: u32) -> u32 {
        let cost = |depth: &u32| self.latency_us(*depth, fan_out(receivers, *depth));
        (1..=DEPTH_MAX).min_by(|one, two| cost(one).total_cmp(&cost(two))).unwrap_or(1)
    }
}

/// The current plan and the one before, while packets of both are on their way.
#[derive(Clone, Debug)]
pub struct Plans {
    current: Plan,
    previous: Option<(Plan, Nanos)>,
    overlap: Nanos,
}

impl Plans {
    /// Begins with one plan. An old plan counts for `overlap` ns after the next is installed.
    pub fn new(plan: Plan, overlap: Nanos) -> Plans {
        Plans { current: plan, previous: None, overlap }
    }

    /// Installs a plan; false if its epoch is not above the current one.
    pub fn install(&mut self, now: Nanos, plan: Plan) -> bool {
        if plan.epoch <= self.current.epoch {
            return false;
        }
        let old = std::mem::replace(&mut self.current, plan);
        self.previous = Some((old, now.saturating_add(self.overlap)));
        true
    }

    /// The current plan.
    pub fn current(&self) -> &Plan {
        &self.current
    }

    /// The plan of an epoch that still counts.
    pub fn of(&self, now: Nanos, epoch: u32) -> Option<&Plan> {
        if epoch == self.current.epoch {
            return Some(&self.current);
        }
        self.previous.as_ref().filter(|(plan, until)| plan.epoch == epoch && now < *until).map(|(plan, _)| plan)
    }
}
