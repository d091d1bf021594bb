//! Which of several roots leads (Onyx leaves it to a "configuration manager, e.g. Zookeeper", §5.1).
//!
//! A store that several machines agree on (etcd) has a *lease* for one root at a time. A candidate asks for it; the
//! one that gets it leads, and renews it. Whoever has not renewed it in time stops by its own clock, before the store
//! gives the lease to another one.
//!
//! - Upon *a grant*: it leads, from the epoch that the store names.
//! - Upon *a renewal*: it goes on.
//! - Upon *a refusal*, *a loss*, or a tick after which the last renewal is too old: it stops.
//!
//! # Properties
//!
//! - *One leads*: a lease counts from the moment in which it was asked for, and is given up
//!   [`SuccessionRules::margin`] before it ends. If clocks run at rates that differ by less than margin / ttl, no two
//!   roots lead at once.
//! - *Epochs ascend over roots*: the next root begins [`EPOCHS`] above the last epoch that the store was told, and a
//!   root tells it with each renewal. Packets and orders of an earlier root are stale to whoever has heard of a later
//!   one.
//!
//! # Deviations from the paper
//!
//! - The paper's manager watches gateways. Here the root's roster does that; the store watches roots.

use crate::Nanos;

/// How far above the last known epoch the next root begins: more trees than a root makes between two renewals.
pub const EPOCHS: u32 = 1 << 16;

/// How long a lease lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuccessionRules {
    /// From a request or renewal on, ns.
    pub ttl: Nanos,
    /// How long before its end it is given up, ns.
    pub margin: Nanos,
}

impl Default for SuccessionRules {
    fn default() -> SuccessionRules {
        SuccessionRules { ttl: 2_000_000_000, margin: 500_000_000 }
    }
}

/// What the store said, or that time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessionInput {
    /// The lease is this candidate's: when it had asked, and the last epoch that the store was told.
    Granted(Nanos, u32),
    /// The lease was renewed; when that had been asked for.
    Renewed(Nanos),
    /// The lease is somebody else's, or gone.
    Lost,
    /// Time passed.
    Tick,
}

/// What follows for a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessionEffect {
    /// It leads, and its epochs begin above this one.
    Lead(u32),
    /// It leads no more.
    Stop,
}

/// A root, or a candidate.
#[derive(Clone, Copy, Debug)]
pub struct RootSuccession {
    rules: SuccessionRules,
    /// Until when it leads.
    until: Option<Nanos>,
}

impl RootSuccession {
    /// A candidate.
    pub fn new(rules: SuccessionRules) -> RootSuccession {
        RootSuccession { rules, until: None }
    }

    /// Whether it leads.
    pub fn leads(&self) -> bool {
        self.until.is_some()
    }

    /// When a tick changes something at the latest.
    pub fn due(&self) -> Option<Nanos> {
        self.until
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: SuccessionInput) -> Option<SuccessionEffect> {
        let end = |since: Nanos| since.saturating_add(self.rules.ttl.saturating_sub(self.rules.margin));
        let is_over = self.until.is_some_and(|until| now >= until);
        match input {
            // An answer that took too long is none.
            SuccessionInput::Granted(since, last) if self.until.is_none() && now < end(since) => {
                self.until = Some(end(since));
                Some(SuccessionEffect::Lead(last.saturating_add(EPOCHS)))
            }
            SuccessionInput::Renewed(since) if self.leads() && !is_over => {
                self.until = self.until.max(Some(end(since)));
                None
            }
            SuccessionInput::Granted(..) | SuccessionInput::Renewed(_) | SuccessionInput::Tick if !is_over => None,
            _ => self.until.take().map(|_| SuccessionEffect::Stop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: SuccessionRules = SuccessionRules { ttl: 1_000, margin: 200 };

    #[test]
    fn succession_leads_until_its_last_renewal_is_too_old() {
        let mut root = RootSuccession::new(RULES);
        assert_eq!(root.step(50, SuccessionInput::Granted(0, 7)), Some(SuccessionEffect::Lead(7 + EPOCHS)));
        assert_eq!((root.due(), root.step(799, SuccessionInput::Tick)), (Some(800), None));
        assert_eq!(root.step(799, SuccessionInput::Renewed(700)), None);
        assert_eq!(root.step(1_499, SuccessionInput::Tick), None);
        assert_eq!(root.step(1_500, SuccessionInput::Tick), Some(SuccessionEffect::Stop));
        // A renewal after that may be of a lease that is another's by now.
        assert_eq!(root.step(1_600, SuccessionInput::Renewed(1_400)), None);
        assert!(!root.leads());
    }

    #[test]
    fn succession_takes_no_answer_that_came_too_late_and_stops_at_a_loss() {
        let mut root = RootSuccession::new(RULES);
        assert_eq!(root.step(900, SuccessionInput::Granted(100, 0)), None);
        assert_eq!(root.step(900, SuccessionInput::Lost), None);
        assert!(root.step(901, SuccessionInput::Granted(900, 0)).is_some());
        assert_eq!(root.step(1_000, SuccessionInput::Lost), Some(SuccessionEffect::Stop));
        assert!(root.step(1_001, SuccessionInput::Granted(1_000, 0)).is_some());
        // Late although in time by its own request: it stops, and does not go on.
        assert_eq!(root.step(1_900, SuccessionInput::Renewed(1_850)), Some(SuccessionEffect::Stop));
    }

    /// A store with one lease, roots that ask at any time, answers that take any time: no two lead at once.
    #[test]
    fn succession_never_has_two_roots() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        // (owner, until) of the store; what is on its way back to each root: arrival, answer.
        let (mut lease, mut roots) = ((0, 0), [RootSuccession::new(RULES); 3]);
        let mut answers: [Vec<(u64, SuccessionInput)>; 3] = Default::default();
        let (mut led, mut epoch) = ([false; 3], 0);
        for now in 0..2_000_000u64 {
            for at in 0..3 {
                let mut effects = vec![roots[at].step(now, SuccessionInput::Tick)];
                let due: Vec<SuccessionInput> =
                    answers[at].extract_if(.., |(arrives, _)| *arrives <= now).map(|(_, input)| input).collect();
                effects.extend(due.into_iter().map(|input| roots[at].step(now, input)));
                for effect in effects.into_iter().flatten() {
                    if let SuccessionEffect::Lead(first) = effect {
                        assert!(first > epoch, "epochs ascend");
                        (epoch, led[at]) = (first, true);
                    }
                }
                // A request reaches the store after a while; a dead root asks for nothing for a long time.
                if random(150) == 0 && (now / 20_000) % 3 != at as u64 {
                    let (sent, arrives) = (now.saturating_sub(random(100)), now + 1 + random(900));
                    let answer = match lease {
                        (owner, until) if owner == at && now < until && roots[at].leads() => {
                            lease.1 = now + RULES.ttl;
                            SuccessionInput::Renewed(sent)
                        }
                        (_, until) if now >= until => {
                            lease = (at, now + RULES.ttl);
                            SuccessionInput::Granted(sent, epoch)
                        }
                        _ => continue,
                    };
                    answers[at].push((arrives, answer));
                }
            }
            assert!(roots.iter().filter(|root| root.leads()).count() <= 1, "two roots at {now}");
        }
        assert_eq!(led, [true; 3], "each led once");
    }
}
