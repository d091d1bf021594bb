//! The registry of measurements: one row each, as every exhibit of a paper has one.

use clap::{ArgMatches, Command};

use crate::measurement::{BenchResult, BenchSteps, Measurement};

/// A row of the registry: a name, options and what runs.
pub struct BenchRow {
    /// Its name on the command line.
    pub name: &'static str,
    options: fn(Command) -> Command,
    run: fn(&ArgMatches, &mut BenchSteps) -> BenchResult,
}

const fn row<Options: Measurement>(name: &'static str) -> BenchRow {
    let run = |given: &ArgMatches, say: &mut BenchSteps| Options::from_arg_matches(given)?.measured(say);
    BenchRow { name, options: Options::augment_args, run }
}

/// Every measurement.
pub static BENCHES: [BenchRow; 21] = [
    row::<crate::clearing::ClearingOptions>("clearing"),
    row::<crate::exchange::ExchangeArgs>("exchange"),
    row::<crate::hostile::HostileOptions>("hostile"),
    row::<crate::recovery::RecoveryArgs>("recovery"),
    row::<crate::room::RoomArgs>("room"),
    row::<crate::floods::FloodsOptions>("floods"),
    row::<crate::payments::PaymentsOptions>("payments"),
    row::<crate::evm_rpc::EvmRpcOptions>("evm-rpc"),
    row::<crate::doors::DoorsOptions>("doors"),
    row::<crate::diablo::DiabloArgs>("diablo"),
    row::<crate::payments_lane::PaymentsLaneArgs>("payments-lane"),
    row::<crate::matching::MatchingArgs>("matching"),
    row::<crate::settle::SettleOptions>("settle"),
    row::<crate::venue_measurement::VenueArgs>("venue"),
    row::<crate::sealed::SealedOptions>("sealed"),
    row::<crate::filter::FilterOptions>("filter"),
    row::<crate::consensus::ConsensusArgs>("consensus"),
    row::<crate::transaction_management::TransactionManagementOptions>("transaction-management"),
    row::<crate::stm::StmOptions>("stm"),
    row::<crate::evm::EvmArgs>("evm"),
    row::<crate::transport::TransportOptions>("transport"),
];

impl BenchRow {
    /// Its command, with its options.
    pub fn command(&self) -> Command {
        (self.options)(Command::new(self.name))
    }

    /// Measures with the options that were given.
    ///
    /// # Errors
    /// What a disk, a socket or an option lacks.
    pub fn measured(&self, given: &ArgMatches, say: &mut BenchSteps) -> BenchResult {
        (self.run)(given, say)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_measurement_says_what_it_is_and_shows_how_to_ask() {
        let names: BTreeSet<&str> = BENCHES.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), BENCHES.len());
        for row in &BENCHES {
            let command = row.command();
            command.clone().debug_assert();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() > 20 && !about.contains('`') && !about.contains('['), "{}: {about}", row.name);
            assert!(examples.contains(&format!("walras-lab bench {}", row.name)), "{}: {examples}", row.name);
        }
    }
}
