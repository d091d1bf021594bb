//! The search: all states, breadth first, so that a counterexample is as short as any.

use hashbrown::HashSet;

use crate::machine::Machine;
use crate::rules::{Rule, Step};
use crate::state::{Scenario, State};

/// The result of a search.
pub struct Searched {
    pub states: usize,
    /// The steps to the first state at which the search stopped, and that state.
    pub stopped: Option<(Vec<Step>, State)>,
}

/// Visits every reachable state, or stops at the first one that `stops` accepts.
pub fn search(scenario: &Scenario, rule: Rule, stops: impl Fn(&Machine<'_>) -> bool) -> Searched {
    let mut seen: HashSet<u128> = HashSet::new();
    // For each visited state the state before it, and the number of the step among that state's steps.
    let mut paths: Vec<(u32, u16)> = vec![(0, 0)];
    let start = State::start();
    seen.insert(start.key(scenario));
    let mut open = vec![(start, 0)];
    while !open.is_empty() {
        let mut next = Vec::new();
        for (state, from) in open {
            let machine = Machine { scenario, rule, state };
            for (number, step) in machine.steps().into_iter().enumerate() {
                let after = machine.after(step);
                if !seen.insert(after.key(scenario)) {
                    continue;
                }
                paths.push((from, number as u16));
                let at = (paths.len() - 1) as u32;
                if stops(&Machine { scenario, rule, state: after }) {
                    let steps = replay(scenario, rule, &path(&paths, at));
                    return Searched { states: seen.len(), stopped: Some((steps, after)) };
                }
                next.push((after, at));
            }
        }
        open = next;
    }
    Searched { states: seen.len(), stopped: None }
}

/// The numbers of the steps to a state.
fn path(paths: &[(u32, u16)], mut at: u32) -> Vec<u16> {
    let mut numbers = Vec::new();
    while at != 0 {
        let (before, number) = paths[at as usize];
        numbers.push(number);
        at = before;
    }
    numbers.reverse();
    numbers
}

fn replay(scenario: &Scenario, rule: Rule, numbers: &[u16]) -> Vec<Step> {
    let mut state = State::start();
    let step = |number: &u16| {
        let machine = Machine { scenario, rule, state };
        let step = machine.steps()[usize::from(*number)];
        state = machine.after(step);
        step
    };
    numbers.iter().map(step).collect()
}
