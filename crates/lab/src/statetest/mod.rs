//! `walras-lab statetest`: Ethereum's published state tests through the executor of the contract phase.
//!
//! Each case runs three times. *Sequentially*, by the plain loop: the state root and the hash of the logs must be the
//! published ones. In a *block of many cases* by Block-STM, where each case has a space of its own, so the published
//! roots still hold for each. And, where a test has several cases with the same start state, in a *block of one
//! state* with consecutive nonces, where the transactions may conflict: Block-STM must then produce the result of the
//! plain loop.

mod fixture;
mod roots;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, ensure};
use ledger::contracts::ethereum::{Address, B256, U256};
use ledger::contracts::{
    AccountInfo, EvmContent, EvmJob, EvmOutcome, EvmPlace, EvmProgram, EvmState, TxEnv, evm_workers, parallel_tuning,
};
use serde_json::json;

use fixture::{Case, FixtureFile, FixtureState};

/// Cases of a block whose cases have spaces of their own.
const CASES: usize = 64;
/// Differences between what fixtures need and what the ledger's phase does.
const SWITCHES: [&str; 6] = [
    "the proposer is paid after each case, not after the block",
    "legacy transactions without a chain id are executed",
    "authorizations for chain 0 are executed",
    "blob transactions are executed",
    "the rules are the fork of the case, from Cancun on, not Osaka alone",
    "block hashes, base fee, gas limit and randomness are those of the case",
];

/// Runs Ethereum's state tests.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: walras-lab statetest tests/GeneralStateTests --json")]
pub struct StateTest {
    /// A file of tests, or a folder of them
    pub path: PathBuf,
    /// Threads of Block-STM
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,
    /// Run only cases whose name contains this
    #[arg(long)]
    pub only: Option<String>,
}

/// The results.
#[derive(Default)]
struct Report {
    passed: usize,
    failed: Vec<(String, String)>,
    unsupported: BTreeMap<String, usize>,
    blocks: usize,
    in_blocks: usize,
    shared_blocks: usize,
    in_shared_blocks: usize,
}

impl StateTest {
    /// Runs the tests; exits 1 if one fails.
    ///
    /// # Errors
    /// If a file cannot be read; the error names it.
    pub fn run(self, json: bool) -> Result<ExitCode> {
        let files = fixture::files(&self.path)?;
        let mut report = Report::default();
        let mut workers = evm_workers(self.threads as usize);
        let mut cases = Vec::new();
        for file in &files {
            let FixtureFile { cases: found, unsupported } = fixture::read(file)?;
            unsupported.into_iter().for_each(|(_, why)| *report.unsupported.entry(why).or_default() += 1);
            let is_wanted = |case: &Case| self.only.as_ref().is_none_or(|only| case.name.contains(only));
            cases.extend(found.into_iter().filter(is_wanted));
        }
        ensure!(!cases.is_empty(), "{}: no cases of Cancun or later", self.path.display());
        cases.iter().for_each(|case| report.sequential(case));
        cases.chunks(CASES).for_each(|cases| report.block(cases, &mut workers));
        let same =
            |one: &Case, other: &Case| Arc::ptr_eq(&one.pre, &other.pre) && Arc::ptr_eq(&one.context, &other.context);
        cases.chunk_by(same).filter(|cases| cases.len() > 1).for_each(|cases| report.shared(cases, &mut workers));
        report.print(files.len(), json);
        Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The states of the cases of a block, by space.
struct Spaces(Vec<Arc<FixtureState>>);

impl Spaces {
    fn get(&self, space: u32, address: &Address) -> Option<&fixture::FixtureAccount> {
        self.0[space as usize].get(address)
    }
}

impl EvmState for Spaces {
    fn account(&self, space: u32, address: &Address) -> Option<AccountInfo> {
        self.get(space, address).map(|account| account.info.clone())
    }

    fn slot(&self, space: u32, address: &Address, slot: &U256) -> U256 {
        self.get(space, address).and_then(|account| account.storage.get(slot).copied()).unwrap_or_default()
    }

    fn code(&self, _: u32, hash: &B256) -> ledger::contracts::EvmCode {
        unreachable!("accounts of fixtures include their code, also {hash}")
    }

    fn block_hash(&self, _: u32, number: u64) -> B256 {
        fixture::block_hash(number)
    }
}

fn job(space: u32, case: &Case, transaction: &Arc<TxEnv>) -> EvmJob {
    EvmJob { space, context: case.context.clone(), transaction: transaction.clone() }
}

/// Compares the result of a case with the published one.
fn check(case: &Case, outcome: &EvmOutcome, writes: Vec<(EvmPlace, EvmContent)>) -> Result<(), String> {
    let mut state = FixtureState::clone(&case.pre);
    let mut logs = &Vec::new();
    match outcome {
        EvmOutcome::Skipped(_) if case.is_refused => {}
        EvmOutcome::Skipped(why) => return Err(format!("refused: {why:?}")),
        EvmOutcome::Executed(_) if case.is_refused => return Err("executed, but it should be refused".into()),
        EvmOutcome::Executed(execution) => {
            roots::write(&mut state, writes.into_iter());
            roots::reward(&mut state, case.context.block.beneficiary, execution.tip);
            logs = &execution.logs;
        }
    }
    let (root, logs) = (roots::state_root(&state), roots::logs_hash(logs));
    match () {
        () if root != case.root => Err(format!("the state root is {}", fixture::shown(&root))),
        () if logs != case.logs => Err(format!("the hash of the logs is {}", fixture::shown(&logs))),
        () => Ok(()),
    }
}

/// Whether an account has storage and neither code nor nonce: if a contract is created over it, Ethereum's answer
/// depends on storage that no chain has.
fn has_unreachable_storage(pre: &FixtureState) -> bool {
    pre.values().any(|account| {
        let has_storage = account.storage.values().any(|value| !value.is_zero());
        has_storage && account.info.nonce == 0 && account.info.is_empty_code_hash()
    })
}

impl Report {
    fn judge(&mut self, how: &str, case: &Case, verdict: Result<(), String>) {
        match verdict {
            Ok(()) => self.passed += usize::from(how.is_empty()),
            Err(_) if has_unreachable_storage(&case.pre) => {
                let why = "a contract over an account with storage but no code and nonce: this cannot occur (EIP-7610)";
                *self.unsupported.entry(why.into()).or_default() += usize::from(how.is_empty());
            }
            Err(why) => self.failed.push((case.name.clone(), format!("{how}{why}"))),
        }
    }

    fn sequential(&mut self, case: &Case) {
        let verdict = match &case.transaction {
            None => check(case, &EvmOutcome::Skipped(ledger::contracts::Skip::Malformed), Vec::new()),
            Some(transaction) => {
                let program =
                    EvmProgram { state: Spaces(vec![case.pre.clone()]), jobs: vec![job(0, case, transaction)] };
                let block = program.execute_sequentially();
                check(case, &block.outcomes[0], block.writes)
            }
        };
        self.judge("", case, verdict);
    }

    /// Runs cases in one block, each in a space of its own.
    fn block(&mut self, cases: &[Case], workers: &mut ledger::contracts::Workers) {
        let cases: Vec<(&Case, &Arc<TxEnv>)> =
            cases.iter().filter_map(|case| Some((case, case.transaction.as_ref()?))).collect();
        let jobs = (0..).zip(&cases).map(|(space, (case, transaction))| job(space, case, transaction)).collect();
        let state = Spaces(cases.iter().map(|(case, _)| case.pre.clone()).collect());
        let (block, ..) = EvmProgram { state, jobs }.execute(workers, &parallel_tuning());
        let mut writes = block.writes.into_iter().peekable();
        for (space, ((case, _), outcome)) in (0..).zip(cases.iter().zip(&block.outcomes)) {
            let own = std::iter::from_fn(|| writes.next_if(|(place, _)| place.space == space)).collect();
            self.judge("by Block-STM, in a block of many cases: ", case, check(case, outcome, own));
        }
        self.blocks += 1;
        self.in_blocks += cases.len();
    }

    /// Runs cases with the same start state in one block, one after another.
    fn shared(&mut self, cases: &[Case], workers: &mut ledger::contracts::Workers) {
        let mut nonces: BTreeMap<Address, u64> = BTreeMap::new();
        let mut follow = |case: &Case| {
            let transaction = case.transaction.as_ref()?;
            let nonce = nonces.entry(transaction.caller).or_insert(transaction.nonce);
            let following = Arc::new(TxEnv { nonce: *nonce, ..TxEnv::clone(transaction) });
            *nonce = nonce.saturating_add(1);
            Some(job(0, case, &following))
        };
        let jobs: Vec<EvmJob> = cases.iter().filter_map(&mut follow).collect();
        let program = |jobs| EvmProgram { state: Spaces(vec![cases[0].pre.clone()]), jobs };
        let expected = program(jobs.clone()).execute_sequentially();
        let count = jobs.len();
        let (found, ..) = program(jobs).execute(workers, &parallel_tuning());
        if found != expected {
            let why = "by Block-STM, after the other cases of its test: differs from the result of the plain loop";
            self.failed.push((cases[0].name.clone(), why.into()));
        }
        self.shared_blocks += 1;
        self.in_shared_blocks += count;
    }

    fn print(&self, files: usize, json: bool) {
        let failed = |(case, why): &(String, String)| json!({ "case": case, "why": why });
        if json {
            let report = json!({
                "files": files,
                "passed": self.passed,
                "failed": self.failed.iter().map(failed).collect::<Vec<_>>(),
                "unsupported": self.unsupported,
                "block_stm": {
                    "blocks_of_many_cases": self.blocks, "transactions": self.in_blocks,
                    "blocks_of_one_state": self.shared_blocks, "transactions_of_one_state": self.in_shared_blocks,
                },
                "switches": SWITCHES,
            });
            println!("{report}");
            return;
        }
        self.failed.iter().for_each(|(case, why)| println!("failed: {case}: {why}"));
        self.unsupported.iter().for_each(|(why, count)| println!("skipped: {count} cases: {why}"));
        SWITCHES.iter().for_each(|switch| println!("switch: {switch}"));
        println!("{} files, {} cases passed, {} failed", files, self.passed, self.failed.len());
        println!("by Block-STM: {} in {} blocks of many cases", self.in_blocks, self.blocks);
        println!("by Block-STM: {} in {} blocks of one state", self.in_shared_blocks, self.shared_blocks);
    }
}
