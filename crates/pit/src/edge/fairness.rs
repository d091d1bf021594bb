//! How an edge is, as JSON.

use edge::{EdgeStatus, RootStatus};
use fairnet::{ClockEstimate, FairnessEvent, MedianAndP99, ROOT_MEMBER};
use primitives::to_hex;
use serde_json::{Value, json};

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1_000.0
}

/// A figure with its label: proven if the clocks' errors are bounded, otherwise estimated.
fn figure([median, p99]: MedianAndP99, is_bounded: bool) -> Value {
    json!({ "p50_us": micros(median), "p99_us": micros(p99), "label": if is_bounded { "proven" } else { "estimated" } })
}

fn event(event: &FairnessEvent) -> Value {
    let (name, member, value) = match *event {
        FairnessEvent::Evicted(member, silent) => ("evicted", member, Some(silent)),
        FairnessEvent::Admitted(member) => ("admitted", member, None),
        FairnessEvent::Skipped(member, waited) => ("skipped", member, Some(waited)),
        FairnessEvent::Readmitted(member) => ("readmitted", member, None),
        FairnessEvent::Restamped(member, stamp) => ("restamped", member, Some(stamp)),
        FairnessEvent::Excluded(member) => ("excluded", member, None),
        FairnessEvent::Included(member) => ("included", member, None),
        FairnessEvent::Late(member, late) => ("late", member, Some(late)),
        FairnessEvent::Clock(member, bound) => ("clock", member, Some(bound)),
        FairnessEvent::Diverged(participant) => ("diverged", participant, None),
        // What these say is not always a time.
        FairnessEvent::Implausible(member, _) => ("implausible", member, None),
        FairnessEvent::Flooded(member, _) => ("flooded", member, None),
    };
    json!({ "event": name, "member": member, "value_ns": value.map(|value| value.to_string()) })
}

/// What probes say of members' clocks: how far each is ahead of the root's, and how wrong that can be.
fn clocks(root: &RootStatus) -> Vec<Value> {
    let found = root.clocks.estimates(root.at);
    let others = found.into_iter().filter(|(member, _)| *member != ROOT_MEMBER);
    let clock = |(member, clock): (u64, ClockEstimate)| {
        json!({ "member": member, "ahead_us": clock.offset / 1_000.0, "bound_us": clock.bound / 1_000.0,
            "drift_ppm": clock.drift_ppm, "share_of_pure_probes": clock.pure, "label": "estimated" })
    };
    others.map(clock).collect()
}

/// What `/v1/fairness` answers: figures of deliveries, each with its label, and the log of fairness events, newest
/// first.
pub fn fairness_body(status: &EdgeStatus) -> Value {
    let Some(root) = &status.root else { return Value::Null };
    let (windows, counters) = (&root.windows, &status.counters);
    let is_bounded = windows.error_bound.is_some();
    let log: Vec<Value> = root
        .log
        .iter()
        .rev()
        .map(|entry| {
            json!({ "number": entry.number, "epoch": entry.epoch, "at_ns": entry.at.to_string(),
            "what": event(&entry.event) })
        })
        .collect();
    json!({
        "epoch": root.epoch,
        "layers": root.widths,
        "hedging": root.hedging,
        "proxies": root.proxies,
        "gateways": root.gateways,
        "headroom_us": micros(root.headroom),
        "packets": root.sequence,
        "orders": counters.orders,
        "orders_restamped": counters.restamped,
        "order_copies": counters.order_copies,
        "bundles": counters.bundles,
        "orders_late_for_their_bundle": counters.bundled_late,
        "forged_or_malformed_datagrams": counters.forged + counters.malformed,
        "sampled_packets": windows.windows,
        "samples_that_some_gateway_missed": windows.incomplete,
        "delivery_window": figure(windows.width, is_bounded),
        "lateness": figure(windows.late, is_bounded),
        "hold_time": figure(windows.held, true),
        "one_way_delay": figure(windows.delay, is_bounded),
        "clock_error_bound_us": windows.error_bound.map(micros),
        "clock_offsets": clocks(root),
        "share_within_1_us": { "value": windows.within, "label": "estimated" },
        "share_proven_within_1_us": { "value": windows.proven, "label": "proven" },
        "evictions": counters.evictions,
        "log": log,
        "log_head": to_hex(&root.log_head),
    })
}
