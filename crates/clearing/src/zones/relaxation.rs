//! Prices and amounts of a zone in which all would be full if units and offers could be split.
//!
//! Let x units of A be sold for B. That prices p allow no fewer than L and no more than U of them says
//! `p_A · L ≤ p_A · x ≤ p_A · U`: in prices and in the worth that is sold, `p_A · x`, this is linear. So are the bounds of a
//! zone on ratios of prices, and that no asset is paid out beyond what is sold of it, in worth. So where no offer of a pair
//! may both have to fill and not be able to, prices and amounts together are a linear program, and what it finds is full
//! but for rounding.
//!
//! An offer of which the zone leaves open whether it fills may fill by any part here: between the ratio at which it may and
//! the end of the zone, as much as lies under the straight line from nothing to all of it, and above the ratio at which it
//! must, no less than over that line. Where units bought are worth a lot, a pair is paid by any part between the bounds in
//! whole units that are known, elsewhere just what the rate says.

use crate::linear::{Row, minimise};

use super::{Node, Search};

/// Ratios stay by this part of them within the zone, as nothing is to hang on their last digits.
const WITHIN: f64 = 1e-9;
/// The largest part of an asset's turnover that may be lacking.
const LACKING: f64 = 1e-7;
/// Of assets of which fewer units are paid, pay-outs are bounded in whole units.
pub(super) const COARSE: f64 = 1e5;
/// An offer whose turning point is this near to the end of the zone is not bounded by a line.
const NEAR: f64 = 1e-12;
/// Offers that may fill and need not, at most.
const MOST_OPTIONS: usize = 200;

/// What the relaxation of a zone came to.
pub(super) struct Relaxed {
    pub(super) prices: Vec<f64>,
    pub(super) links: Vec<Sold>,
}

/// What a link sells in it, in units, but not whole ones.
#[derive(Clone, Default)]
pub(super) struct Sold {
    pub(super) sold: f64,
    pub(super) paid: f64,
    /// Of each offer that may fill and need not.
    pub(super) options: Vec<f64>,
}

/// Factors by columns.
type Sum = Vec<(usize, f64)>;

/// The linear program, in worth at the prices of the center. Its first columns are prices over those of the center, and
/// then the part of its turnover that any asset may lack.
struct Program {
    rows: Vec<Row>,
    start: Vec<f64>,
    /// Of every asset, the worth that is sold less what is paid, and the most that is sold.
    balances: Vec<Sum>,
    turnover: Vec<f64>,
}

/// The linear program of a zone, and the columns of every link.
pub(super) struct Relaxation {
    program: Program,
    links: Vec<Columns>,
}

impl Relaxation {
    /// Columns of the program.
    pub(super) fn columns(&self) -> usize {
        self.program.start.len()
    }
}

/// The columns of one link.
#[derive(Default)]
struct Columns {
    sold: Sum,
    paid: Sum,
    /// The option that each stands for, and its worth.
    options: Vec<(usize, usize, f64)>,
}

impl Search<'_> {
    /// The relaxation of the zone of `node`, `None` if there is nothing in it, or too much is open. The ratios of prices must
    /// be bounded.
    pub(super) fn relaxation(&self, node: &Node) -> Option<Relaxation> {
        if node.lanes.iter().map(|lane| lane.options().len()).sum::<usize>() > MOST_OPTIONS {
            return None;
        }
        let mut program = Program::new(self.center.len());
        self.bound_ratios(node, &mut program)?;
        let links = (0..self.links.len()).map(|at| self.columns(node, at, &mut program)).collect();
        Some(Relaxation { program, links })
    }

    /// What `relaxation` of the zone of `node` comes to, `None` if something must be lacking.
    pub(super) fn solved(&self, node: &Node, relaxation: Relaxation) -> Option<Relaxed> {
        let x = relaxation.program.solve()?;
        let (ratios, lacking) = x.split_at(self.center.len());
        if lacking[0] > LACKING || ratios.iter().any(|ratio| *ratio <= 0.0) {
            return None;
        }
        let worth = |sum: &Sum| sum.iter().map(|(column, factor)| factor * x[*column]).sum::<f64>();
        let prices: Vec<f64> = self.center.iter().zip(&x).map(|(center, x)| center * x).collect();
        let sold = |(at, columns): (usize, &Columns)| {
            let (own, other) = (prices[self.links[at].sell], prices[self.links[at].buy]);
            let mut options = vec![0.0; node.lanes[at].options().len()];
            columns.options.iter().for_each(|(column, option, unit)| options[*option] = x[*column] * unit / own);
            Sold { sold: worth(&columns.sold) / own, paid: worth(&columns.paid) / other, options }
        };
        let links = relaxation.links.iter().enumerate().map(sold).collect();
        Some(Relaxed { prices, links })
    }

    /// `None` if some ratio is known so well that nothing would be left.
    fn bound_ratios(&self, node: &Node, program: &mut Program) -> Option<()> {
        for (i, j) in self.duos.iter().flat_map(|duo| [duo.assets, (duo.assets.1, duo.assets.0)]) {
            if node.zone.width(i, j) < 1.0 + 2.0 * WITHIN {
                return None;
            }
            let most = node.zone.most(i, j) * (1.0 - WITHIN) * self.center[j] / self.center[i];
            program.at_most_zero(vec![(i, 1.0), (j, -most)]);
        }
        Some(())
    }

    /// Adds what the link at `at` sells and is paid.
    fn columns(&self, node: &Node, at: usize, program: &mut Program) -> Columns {
        let (link, flow) = (&self.links[at], &node.flows[at]);
        let (sell, own) = (link.sell, self.center[link.sell]);
        let mut columns = Columns::default();
        if flow.sold.1 < 0.5 {
            return columns;
        }
        let must = node.lanes[at].must_sell().min(flow.sold.1);
        columns.sold.push((sell, must * own));
        if flow.sold.1 > must {
            self.add_options(node, at, flow.sold.1 - must, &mut columns, program);
        }
        if !columns.options.is_empty() {
            program.at_most_zero(plus(&columns.sold, 1.0, &[(sell, -flow.sold.1 * own)]));
            program.at_most_zero(plus(&columns.sold, -1.0, &[(sell, flow.sold.0 * own)]));
        }
        columns.paid = self.paid(node, at, &columns.sold, program);
        program.balance(link.sell, &columns.sold, 1.0);
        program.balance(link.buy, &columns.paid, -1.0);
        program.turnover[link.sell] += flow.sold.1 * own;
        columns
    }

    /// Adds the offers of a link that may fill and need not, by so many units each at most.
    fn add_options(&self, node: &Node, at: usize, units: f64, columns: &mut Columns, program: &mut Program) {
        let (link, (least, most)) = (&self.links[at], node.ratio(&self.links[at]));
        let (sell, buy) = (link.sell, link.buy);
        let (own, other) = (self.center[sell], self.center[buy]);
        for (option, offer) in node.lanes[at].options().iter().enumerate() {
            let (amount, column) = (offer.amount.min(units), program.column());
            columns.sold.push((column, amount * own));
            columns.options.push((column, option, amount * own));
            program.at_most_zero(vec![(column, 1.0), (sell, -1.0)]);
            let (may, must) = self.band.turns(offer);
            if may > least * (1.0 + NEAR) && may < most {
                let slope = may / (may - least);
                program.at_most_zero(vec![(column, 1.0), (sell, -slope), (buy, slope * least * other / own)]);
            }
            if must < most * (1.0 - NEAR) && amount >= offer.amount {
                let slope = most / (most - must);
                program.at_most_zero(vec![(column, -1.0), (sell, slope), (buy, -slope * must * other / own)]);
            }
        }
    }

    /// What a link is paid that sells `sold`: just what the rate says, or the least in whole units.
    fn paid(&self, node: &Node, at: usize, sold: &Sum, program: &mut Program) -> Sum {
        let (lane, flow) = (&node.lanes[at], &node.flows[at]);
        let (buy, other) = (self.links[at].buy, self.center[self.links[at].buy]);
        let paid = plus(sold, self.band.net, &[]);
        if flow.paid.1 >= COARSE {
            return paid;
        }
        let (column, unit) = (program.column(), flow.paid.1.max(1.0) * other);
        program.at_most_zero(vec![(column, -unit), (buy, flow.paid.0 * other)]);
        program.at_most_zero(plus(&paid, 1.0, &[(column, -unit), (buy, -lane.most_rounded() * other)]));
        vec![(column, unit)]
    }
}

impl Program {
    fn new(assets: usize) -> Program {
        // Only ratios matter, so that the first price is about as it was.
        let first = |sign: f64| Row { terms: vec![(0, sign)], bound: sign + 1e-3 };
        let none_lacks = Row { terms: vec![(assets, -1.0)], bound: 0.0 };
        Program {
            rows: vec![first(1.0), first(-1.0), none_lacks],
            start: vec![1.0; assets + 1],
            balances: vec![Sum::new(); assets],
            turnover: vec![0.0; assets],
        }
    }

    /// A new column, no less than zero.
    fn column(&mut self) -> usize {
        self.start.push(0.5);
        self.rows.push(Row { terms: vec![(self.start.len() - 1, -1.0)], bound: 0.0 });
        self.start.len() - 1
    }

    /// Adds `by` times `sum` to what `asset` has left.
    fn balance(&mut self, asset: usize, sum: &Sum, by: f64) {
        self.balances[asset] = plus(&self.balances[asset], 1.0, &plus(sum, by, &[]));
    }

    /// Adds `Σ terms ≤ 0`, scaled.
    fn at_most_zero(&mut self, terms: Sum) {
        let largest = terms.iter().map(|(_, factor)| factor.abs()).fold(0.0, f64::max);
        let scaled = terms.iter().filter(|(_, factor)| *factor != 0.0);
        let terms: Sum = scaled.map(|(column, factor)| (*column, factor / largest)).collect();
        if !terms.is_empty() {
            self.rows.push(Row { terms, bound: 0.0 });
        }
    }

    /// What lacks least.
    fn solve(mut self) -> Option<Vec<f64>> {
        let lacking = self.balances.len();
        for (asset, balance) in std::mem::take(&mut self.balances).iter().enumerate() {
            let turnover = self.turnover[asset];
            if turnover > 0.0 {
                self.at_most_zero(plus(balance, -1.0 / turnover, &[(lacking, -1.0)]));
            }
        }
        let mut cost = vec![0.0; self.start.len()];
        cost[lacking] = 1.0;
        minimise(&cost, &self.rows, &self.start)
    }
}

/// `by · sum + more`, each column once.
fn plus(sum: &[(usize, f64)], by: f64, more: &[(usize, f64)]) -> Sum {
    let mut result: Sum = sum.iter().map(|(column, factor)| (*column, by * factor)).collect();
    for (column, factor) in more {
        match result.iter_mut().find(|term| term.0 == *column) {
            Some(term) => term.1 += factor,
            None => result.push((*column, *factor)),
        }
    }
    result
}
