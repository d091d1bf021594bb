//! What makes the simulator worth believing: closed forms, queueing theory, direct sampling, seeds, ablations.

use crate::dice::Dice;
use fairnet::sim::*;
use fairnet::{DeadlineRules, Plan, PlanRequest};
use kernel::{Calendar, DelayLaw, LawTable, Spikes, Xoshiro};
use proptest::prelude::*;

const COSTS: TreeCosts = TreeCosts {
    process: 10_000,
    copy: 3_200,
    occupancy: 3_200,
    link: DelayLaw::Constant(22_600.0),
    link_spikes: None,
    stragglers: None,
    slow_receivers: None,
    loss: 0.0,
};

fn plan(receivers: u32, depth: u32, hedging: u32) -> Plan {
    Plan::new(&PlanRequest { epoch: 1, receivers, depth: Some(depth), hedging, trees: 1 }).expect("a plan")
}

fn setup(plan: Plan, packets: u32, rate: f64) -> TreeSetup {
    let sent = SentPackets { packets, rate, is_poisson: false, burst: None };
    TreeSetup { plan, is_sprayed: true, costs: COSTS, sent, hold: None, replicas: 1, warm_up: 0, seed: 1 }
}

fn run(setup: &TreeSetup) -> TreeFigures {
    TreeRun::new(setup.clone()).run()
}

#[test]
fn validation_a_constant_delays_follow_the_closed_form_exactly() {
    for (receivers, depth, hedging) in [(10, 1, 0), (100, 1, 0), (100, 2, 0), (100, 2, 3), (1_000, 3, 0), (1_000, 3, 2)]
    {
        let plan = plan(receivers, depth, hedging);
        let figures = run(&setup(plan.clone(), 20, 100.0));
        let fan_out: u32 = (0..depth).map(|layer| plan.fan_out(layer)).sum();
        let expected = f64::from(depth) * 32.6 + 3.2 * f64::from(fan_out);
        assert!(figures.oml.sorted().iter().all(|oml| (oml - expected).abs() < 1e-9), "{:?} {expected}", figures.oml);
        assert_eq!((figures.incomplete, figures.events), (0, 20 * plan.copies_of_packet()));
    }
}

#[test]
fn validation_b_one_egress_queue_is_an_m_d_1_queue() {
    // One receiver: each packet occupies the root for 10 µs, and packets come at random.
    for load in [0.3, 0.7, 0.9] {
        let mut queue = setup(plan(1, 1, 0), 1_500_000, load / 10e-6);
        queue.costs = TreeCosts { process: 0, copy: 10_000, occupancy: 10_000, link: DelayLaw::Constant(0.0), ..COSTS };
        queue.sent.is_poisson = true;
        let mean = run(&queue).oml.mean();
        let expected = 10.0 + 10.0 * load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < 0.02, "load {load}: {mean} µs for {expected}");
    }
}

/// Latency to the last receiver of an unhedged tree, by drawing each link once and adding up.
fn drawn(receivers: u32, fan_out: usize, law: DelayLaw, dice: &mut Xoshiro) -> f64 {
    let mut layer = vec![0.0];
    while layer.len() < receivers as usize {
        let mut child = |place: usize| {
            let wait = 10_000.0 + 3_200.0 * (place % fan_out + 1) as f64;
            layer[place / fan_out] + wait + law.draw(dice)
        };
        layer = (0..layer.len() * fan_out).map(&mut child).collect();
    }
    layer.into_iter().fold(0.0, f64::max) / 1e3
}

#[test]
fn validation_c_unhedged_tree_equals_direct_sampling() {
    for law in [DelayLaw::LogNormal(22_600.0, 0.3), DelayLaw::Exponential(20_000.0), DelayLaw::Uniform(0.0, 50_000.0)] {
        let mut tree = setup(plan(100, 2, 0), 40_000, 500.0);
        tree.costs.link = law;
        let mut dice = Xoshiro::new(99);
        let direct = Spread::new((0..40_000).map(|_| drawn(100, 10, law, &mut dice)).collect());
        let distance = kolmogorov_smirnov(&run(&tree).oml, &direct);
        assert!(distance < 0.02, "{law:?}: {distance}");
    }
}

fn jittery(seed: u64) -> TreeSetup {
    let mut tree = setup(plan(100, 2, 1), 4_000, 5_000.0);
    tree.costs.link = DelayLaw::LogNormal(22_600.0, 0.3);
    tree.costs.link_spikes = Some(Spikes { apart: 20e9, length: 5e6, extra: 200_000.0 });
    tree.costs.stragglers = Some(Spikes { apart: 40e9, length: 10e6, extra: 300_000.0 });
    tree.costs.loss = 1e-4;
    tree.seed = seed;
    tree
}

#[test]
fn validation_e_ten_seeds_agree_within_a_narrow_interval() {
    let medians: Vec<f64> = (1..=10).map(|seed| run(&jittery(seed)).oml.at(0.5)).collect();
    let (mean, half) = interval(&medians);
    assert!(half / mean < 0.01, "{mean} ± {half}");
    let within = medians.iter().filter(|median| (**median - mean).abs() < 4.0 * half).count();
    assert_eq!(within, 10);
    assert!(medians.windows(2).all(|pair| pair[0] != pair[1]), "seeds differ");
    assert_eq!(run(&jittery(3)), run(&jittery(3)), "one seed is one run");
}

#[test]
fn validation_f_each_law_switched_off_takes_its_effect_with_it() {
    let base = || setup(plan(100, 2, 0), 4_000, 5_000.0);
    let closed = 2.0 * (32.6 + 32.0);
    assert_eq!(run(&base()).oml.at(1.0), closed);

    let mut jitter = base();
    jitter.costs.link = DelayLaw::LogNormal(22_600.0, 0.3);
    let figures = run(&jitter);
    assert!(figures.oml.at(0.5) > closed + 5.0 && figures.incomplete == 0);

    let mut spikes = base();
    spikes.costs.link_spikes = Some(Spikes { apart: 2e9, length: 1e6, extra: 500_000.0 });
    let figures = run(&spikes);
    assert!(figures.oml.at(0.5) == closed && figures.oml.at(0.99) > closed + 100.0, "{:?}", figures.oml.at(0.99));

    let mut stragglers = base();
    stragglers.costs.stragglers = Some(Spikes { apart: 1e9, length: 2e6, extra: 500_000.0 });
    let figures = run(&stragglers);
    assert!(figures.oml.at(0.5) == closed && figures.oml.at(0.999) > closed + 100.0, "{:?}", figures.oml.at(0.999));

    let mut receivers = base();
    receivers.costs.slow_receivers = Some(Spikes { apart: 5e9, length: 2e6, extra: 500_000.0 });
    let figures = run(&receivers);
    assert!(figures.oml.at(0.5) == closed && figures.oml.at(0.999) > closed + 100.0, "{:?}", figures.oml.at(0.999));

    let mut loss = base();
    loss.costs.loss = 1e-3;
    let figures = run(&loss);
    // A packet is complete if none of its 110 copies is lost, or none that matters: 0.999^110 = 0.896.
    assert!((figures.incomplete as f64 / 4_000.0 - 0.104).abs() < 0.02, "{}", figures.incomplete);

    let mut queue = base();
    queue.sent = SentPackets { rate: 28_000.0, is_poisson: true, ..queue.sent };
    assert!(run(&queue).oml.at(0.9) > closed + 20.0, "a loaded egress queues");
}

#[test]
fn hedging_and_spraying_avoid_stragglers_and_losses() {
    let mut tree = setup(plan(100, 2, 0), 8_000, 2_000.0);
    tree.costs.stragglers = Some(Spikes { apart: 1e9, length: 20e6, extra: 400_000.0 });
    tree.costs.slow_receivers = Some(Spikes { apart: 20e9, length: 20e6, extra: 400_000.0 });
    tree.costs.loss = 1e-4;
    let at = |hedging: u32| {
        let mut tree = tree.clone();
        tree.plan = plan(100, 2, hedging);
        run(&tree)
    };
    let (none, one) = (at(0), at(1));
    assert!(
        one.oml.at(0.9) < none.oml.at(0.9) && one.incomplete < none.incomplete / 4,
        "{} {}",
        one.incomplete,
        none.incomplete
    );
    // Receivers are machines too: a second one for each participant hedges them.
    let mut twice = tree.clone();
    (twice.plan, twice.replicas) = (plan(200, 2, 1), 2);
    let twice = run(&twice);
    assert!(twice.oml.at(0.99) < one.oml.at(0.99), "{} {}", twice.oml.at(0.99), one.oml.at(0.99));
}

#[test]
fn receiver_hedging_takes_the_earlier_of_two_machines() {
    // Without proxies only receivers are slow, never both of a participant for long.
    let mut tree = setup(plan(40, 1, 0), 20_000, 1_000.0);
    tree.costs.slow_receivers = Some(Spikes { apart: 2e9, length: 5e6, extra: 400_000.0 });
    let alone = run(&tree).oml;
    tree.replicas = 2;
    let hedged = run(&tree).oml;
    let closed = 32.6 + 3.2 * 40.0;
    assert!(alone.at(0.99) > closed + 200.0, "{}", alone.at(0.99));
    assert!(hedged.at(0.99) <= closed, "{}", hedged.at(0.99));
}

#[test]
fn hold_and_release_narrows_the_delivery_window_to_clock_errors() {
    let mut tree = setup(plan(100, 2, 2), 4_000, 5_000.0);
    tree.costs.link = DelayLaw::LogNormal(22_600.0, 0.1);
    let open = run(&tree);
    let rules = DeadlineRules { percentile: 100, margin: 20_000, ..DeadlineRules::default() };
    tree.hold = Some(ReceiverClocks { rules, error: 50.0 });
    let held = run(&tree);
    assert!(open.window.at(0.5) > 20.0 && held.window.at(0.5) < 0.5, "{} {}", open.window.at(0.5), held.window.at(0.5));
    assert!(held.window.share_up_to(1.0) > 0.95, "{}", held.window.share_up_to(1.0));
    assert!(held.oml.at(0.5) > open.oml.at(0.5), "what fairness costs");
}

#[test]
fn hedging_means_of_appendix_c_are_known() {
    let mean = |hedging, is_tree, rounds: u32| {
        let model = HedgeModel { depth: 3, fan_out: 10, hedging, alpha: 0.0, is_tree };
        let mut dice = Xoshiro::new(7);
        let all: Vec<f64> = (0..rounds).flat_map(|_| hedged_delays(&model, &mut dice)).collect();
        Spread::new(all).mean()
    };
    for (hedging, alone, tree) in [(0, 1.50, 1.49), (1, 1.02, 1.04), (2, 0.80, 0.82), (3, 0.67, 0.70)] {
        let (lone, shared) = (mean(hedging, false, 100_000), mean(hedging, true, 300));
        assert!((lone - alone).abs() < 0.01, "H = {hedging}, independent: {lone} for {alone}");
        assert!((shared - tree).abs() < 0.02, "H = {hedging}, tree: {shared} for {tree}");
    }
}

#[test]
fn last_receivers_of_appendix_c_show_no_sudden_gain() {
    let last = |hedging| {
        let model = HedgeModel { depth: 3, fan_out: 10, hedging, alpha: 0.0, is_tree: true };
        let mut dice = Xoshiro::new(8);
        let round = |_| hedged_delays(&model, &mut dice).into_iter().fold(0.0, f64::max);
        Spread::new((0..300).map(round).collect()).mean()
    };
    for (hedging, expected) in [(0, 2.78), (1, 2.16), (2, 1.77), (3, 1.54)] {
        assert!((last(hedging) - expected).abs() < 0.02, "H = {hedging}: {} for {expected}", last(hedging));
    }
}

#[test]
fn correlated_links_of_appendix_c_take_the_gain_of_hedging() {
    let mean = |hedging, alpha| {
        let model = HedgeModel { depth: 3, fan_out: 10, hedging, alpha, is_tree: true };
        let mut dice = Xoshiro::new(9);
        Spread::new((0..100).flat_map(|_| hedged_delays(&model, &mut dice)).collect()).mean()
    };
    let means = [0.0, 1.0, 8.0, 1e9].map(|alpha| mean(2, alpha));
    assert!(means.is_sorted() && means[2] < mean(0, 0.0) - 0.02, "{means:?}");
    assert!((means[3] - mean(0, 0.0)).abs() < 0.02, "without limit the gain is gone");
    assert!(mean(1, 1.0) > mean(2, 1.0) && mean(2, 1.0) > mean(3, 1.0));
}

#[test]
fn spraying_of_appendix_k_loses_its_gain_with_alpha_and_beta() {
    let medians = |alpha, beta| {
        let model = SprayModel { fan_out: 10, spiky: 10, alpha, beta, stick: 5 };
        let (sprayed, fixed) = sprayed_delays(&model, 4_000, &mut Xoshiro::new(5));
        (Spread::new(sprayed).at(0.5), Spread::new(fixed).at(0.5))
    };
    let by_alpha = [0.0, 0.25, 0.5, 0.75, 1.0].map(|alpha| medians(alpha, 0.0).0);
    assert!(by_alpha.is_sorted() && by_alpha[0] < medians(0.5, 0.0).1 / 2.0, "{by_alpha:?}");
    let by_beta = [0.0, 0.5, 1.0].map(|beta| medians(0.5, beta).0);
    assert!(by_beta.is_sorted() && by_beta[2] > medians(0.5, 0.0).1, "{by_beta:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn calendar_queue_takes_events_like_a_sorted_list(seed in any::<u64>()) {
        let (mut dice, mut calendar, mut list) = (Dice::new(seed), Calendar::new(4, 5), Vec::new());
        let mut now = 0;
        for number in 0..600u64 {
            if dice.is(60) {
                let reach = if dice.is(10) { 5_000 } else { 300 };
                let time = now + dice.below(reach);
                calendar.push(time, number);
                list.push((time, number));
            } else {
                list.sort_unstable();
                let first = (!list.is_empty()).then(|| list.remove(0));
                prop_assert_eq!(calendar.pop(), first);
                now = first.map_or(now, |(time, _)| time);
            }
        }
        list.sort_unstable();
        let rest: Vec<(u64, u64)> = std::iter::from_fn(|| calendar.pop()).collect();
        prop_assert_eq!(rest, list);
    }
}

#[test]
fn laws_have_their_means_and_quantiles() {
    let mut dice = Xoshiro::new(2);
    for law in [DelayLaw::LogNormal(1e6, 0.5), DelayLaw::Exponential(1e6), DelayLaw::Uniform(0.0, 2e6)] {
        let table = LawTable::new(&law);
        let tabled = Spread::new((0..200_000).map(|_| table.draw(&mut dice) as f64).collect());
        let drawn = Spread::new((0..200_000).map(|_| law.draw(&mut dice)).collect());
        assert!(kolmogorov_smirnov(&tabled, &drawn) < 0.006, "{law:?}");
        for share in [0.1, 0.5, 0.9, 0.99] {
            assert!((drawn.at(share) / law.quantile(share) - 1.0).abs() < 0.02, "{law:?} {share}");
        }
    }
    let (mean, half) = interval(&[1.0, 2.0, 3.0]);
    assert!(mean == 2.0 && (half - 4.303 / 3.0f64.sqrt()).abs() < 1e-9);
}
