//! Gauges of the committee's sealing key, and of what the ledger waits for while envelopes are closed.

use ledger::Ledger;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::ValidatorLabel;

/// The gauges; all are zero on a chain that makes no sealing key.
#[derive(Default)]
pub(super) struct SealingGauges {
    expected: Gauge,
    key: Gauge,
    age: Gauge,
    holders: Gauge,
    wait_seconds: Gauge,
    silent: Family<ValidatorLabel, Gauge>,
}

impl SealingGauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("sealing_expected", "Whether the committee makes a sealing key", self.expected.clone());
        registry.register("sealing_key", "The sealing key in force in the next block, or 0", self.key.clone());
        registry.register("sealing_key_age_heights", "Heights that the key has been in force", self.age.clone());
        registry.register("sealing_key_holders", "Seats that hold a share of the key", self.holders.clone());
        let waits = "For how long a decided height has waited for its envelopes, up to 51 seconds";
        registry.register("sealed_wait_seconds", waits, self.wait_seconds.clone());
        let silent = "Whether shares of a validator are awaited and have not come";
        registry.register("sealed_silent", silent, self.silent.clone());
    }

    pub(super) fn note_key(&self, ledger: &Ledger) {
        let next = ledger.height() + 1;
        let key = ledger.seals().and_then(|seals| seals.in_force(next));
        self.expected.set(ledger.seals().is_some().into());
        self.key.set(key.map_or(0, |key| as_figure(key.number)));
        self.age.set(key.map_or(0, |key| as_figure(next.saturating_sub(key.from))));
        self.holders.set(key.map_or(0, |key| as_figure(key.holders.len() as u64)));
    }

    pub(super) fn note_wait(&self, wait: Option<(u64, &[u8])>, peers: usize) {
        self.wait_seconds.set(wait.map_or(0, |(ms, _)| as_figure(ms / 1_000)));
        // Chains without a key have no lines of validators.
        if wait.is_none() && self.expected.get() == 0 {
            return;
        }
        for validator in 0..peers as u32 {
            let is_silent = wait.is_some_and(|(_, silent)| silent.iter().any(|one| u32::from(*one) == validator));
            self.silent.get_or_create(&ValidatorLabel { validator }).set(is_silent.into());
        }
    }
}

fn as_figure(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::metrics::Metrics;

    #[test]
    fn who_is_silent_is_told_and_is_silent_no_more_when_the_height_opens() {
        let metrics = Metrics::new();
        metrics.note_sealed_wait(None, 4);
        assert!(!metrics.encode().contains("walras_sealed_silent{"));
        metrics.note_sealed_wait(Some((12_400, &[1, 3])), 4);
        let text = metrics.encode();
        let lines = ["walras_sealed_wait_seconds 12", "walras_sealed_silent{validator=\"3\"} 1"];
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
        assert!(text.contains("walras_sealed_silent{validator=\"2\"} 0"), "{text}");
        // What was told is taken back.
        metrics.note_sealed_wait(Some((0, &[])), 4);
        let text = metrics.encode();
        assert!((0..4).all(|one| text.contains(&format!("walras_sealed_silent{{validator=\"{one}\"}} 0"))), "{text}");
    }
}
