//! `walras bench`: one command for each measured claim.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use bench::paper::exhibit::Paper;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use crate::init::founding::EngineName;
use crate::research::bench_papers::{DocumentArgs, PaperArgs, ascending, print_list};
use crate::research::figures::print_figures;
use crate::tables;

/// With TLS, without it, or both.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum TlsRuns {
    On,
    Off,
    Both,
}

/// Where resting orders are.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum PricesName {
    Near,
    Wide,
}

impl From<PricesName> for bench::matching::FlowPrices {
    fn from(name: PricesName) -> bench::matching::FlowPrices {
        match name {
            PricesName::Near => bench::matching::FlowPrices::Near,
            PricesName::Wide => bench::matching::FlowPrices::Wide,
        }
    }
}

/// What attacks the payment lane.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum AttackName {
    /// Batches of false signatures over outputs that do not exist, from sixteen addresses.
    Frames,
    /// 4,096 idle connections from sixteen addresses.
    Connections,
    /// 3,000 contested outputs of a hundredth.
    Contests,
}

impl AttackName {
    fn options(self, validators: u8, quick: bool) -> bench::lane_attacks::LaneAttackOptions {
        use bench::lane_attacks::{LaneAttack, LaneAttackOptions};
        let (attack, size, small) = match self {
            AttackName::Frames => (LaneAttack::Frames, 4_096, 64),
            AttackName::Connections => (LaneAttack::Connections, 4_096, 256),
            AttackName::Contests => (LaneAttack::Contests, 3_000, 64),
        };
        let (size, payers, payments, epoch_heights) = if quick { (small, 3, 4, 40) } else { (size, 8, 100, 300) };
        LaneAttackOptions { attack, validators: validators.into(), payers, payments, size, epoch_heights }
    }
}

/// What to measure.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// List every table, figure and headline number of the five papers, with what each costs.
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    bench: Option<Bench>,
}

impl BenchArgs {
    /// Runs the measurement, or lists.
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self.bench {
            Some(bench) if !self.list => bench.run(json),
            _ => {
                print_list(&Paper::ALL, json);
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Runs measurements.
#[derive(clap::Subcommand)]
pub enum Bench {
    /// Prices and amounts by both solvers on the same books, one thread, cold.
    #[command(after_help = "Examples:
  walras bench clearing
  walras bench clearing --suite assets --json
  walras bench clearing --suite hostile --books 1000000
  walras bench clearing --suite thin --books 1000000 --threads 2
  walras bench clearing --suite coingecko --data ../shared/data/coingecko --json")]
    Clearing {
        /// What to clear.
        #[arg(long, value_enum, default_value_t = SuiteName::Scaling)]
        suite: SuiteName,
        /// Books of each size, or days, instead of the suite's default; of large books there are fewer.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        books: Option<u32>,
        /// Skip books with more offers than this, in suites with several sizes.
        #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(100..))]
        most: u32,
        /// Threads of the suites hostile, minimum and thin, each with books of its own; others run on one.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
        threads: u32,
        /// Folder of the daily prices, for the suite that needs them.
        #[arg(long, default_value = "../shared/data/coingecko")]
        data: PathBuf,
    },
    /// The paper's workload: blocks proposed, validated, replayed; and how throughput changes while the book fills.
    #[command(after_help = "Examples:
  walras bench exchange --json
  walras bench exchange --accounts 1000000 --transactions 100000 --blocks 9
  walras bench exchange --accounts 10000000 --transactions 500000 --fill 20000000 --json")]
    Exchange {
        /// Numbers of accounts.
        #[arg(long, value_delimiter = ',', default_values_t = [100_000usize, 1_000_000])]
        accounts: Vec<usize>,
        /// Numbers of transactions in a block.
        #[arg(long, value_delimiter = ',', default_values_t = [10_000usize, 50_000, 100_000, 500_000])]
        transactions: Vec<usize>,
        /// Measured blocks of each kind.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        blocks: u32,
        /// Assets.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(3..=1_000))]
        assets: u32,
        /// Offers that rest before anything is measured.
        #[arg(long, default_value_t = 500_000)]
        resting: usize,
        /// Blocks with more transactions are measured without signatures only.
        #[arg(long, default_value_t = 100_000)]
        signed_transactions: usize,
        /// Fill the book to this number of offers in four steps and measure at each, instead of the runs on a small
        /// book.
        #[arg(long)]
        fill: Option<usize>,
        /// Pools that trade in each batch, at most as many as there are pairs of assets.
        #[arg(long, default_value_t = 0)]
        pools: usize,
        /// Numbers of offers that end in one block, at most 500,000.
        #[arg(long, value_delimiter = ',', default_values_t = [100_000usize])]
        ends: Vec<usize>,
        /// Numbers of threads, ascending; logged blocks, and those of a book that fills, use the last.
        #[arg(long, value_delimiter = ',', default_values_t = [1u32, 2],
              value_parser = clap::value_parser!(u32).range(1..=1_024))]
        threads: Vec<u32>,
        /// Directory for the logs of blocks; a temporary one by default.
        #[arg(long)]
        directory: Option<PathBuf>,
    },
    /// The worst block within the limits that a search finds, compared with an ordinary one of the same size.
    #[command(after_help = "Examples:
  walras bench hostile --json
  walras bench hostile --tries 2000 --transactions 50000 --resting 500000")]
    Hostile {
        /// Transactions of the ordinary block.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..))]
        transactions: u32,
        /// Resting offers.
        #[arg(long, default_value_t = 50_000)]
        resting: usize,
        /// Accounts.
        #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1_000..))]
        accounts: u32,
        /// Blocks tried in each row; the default takes a minute or two in all.
        #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
        tries: u32,
        /// Seed of the search.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Checkpoints during execution, and recovery from them.
    #[command(after_help = "Examples:
  walras bench recovery
  walras bench recovery --accounts 10000000 --offers 20000000 --json")]
    Recovery {
        /// Accounts, each with two assets.
        #[arg(long, default_value_t = 1_000_000)]
        accounts: usize,
        /// Resting offers.
        #[arg(long, default_value_t = 2_000_000)]
        offers: usize,
        /// Assets.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(3..=1_000))]
        assets: u32,
        /// Transactions in a block.
        #[arg(long, default_value_t = 50_000)]
        transactions: usize,
        /// Minimum number of blocks before the checkpoint, and during or after it.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        blocks: u32,
        /// Directory for the store; a temporary one by default.
        #[arg(long)]
        directory: Option<PathBuf>,
    },
    /// Honest payments beside floods of what quotas, turns and pace bound, at four validators.
    #[command(after_help = "Example:\n  walras bench floods --seconds 20 --json")]
    Floods {
        /// Seconds of each flood.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
    },
    /// Blocks of payments only, between two accounts and between millions.
    #[command(
        after_help = "Examples:\n  walras bench payments --json\n  walras bench payments --accounts 2,10000 --transactions 100000"
    )]
    Payments {
        /// Numbers of accounts.
        #[arg(long, value_delimiter = ',', default_values_t = [2usize, 100, 10_000, 1_000_000, 10_000_000])]
        accounts: Vec<usize>,
        /// Numbers of transactions in a block.
        #[arg(long, value_delimiter = ',', default_values_t = [1_000usize, 10_000, 100_000])]
        transactions: Vec<usize>,
        /// Measured blocks of each kind.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        blocks: u32,
        /// Assets; each account pays in one of them.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        assets: u32,
        /// Numbers of threads, ascending.
        #[arg(long, value_delimiter = ',', default_values_t = [1u32, 2],
              value_parser = clap::value_parser!(u32).range(1..=1_024))]
        threads: Vec<u32>,
    },
    /// A node's Ethereum interfaces: transfers through JSON-RPC and the binary intake, calls under load, logs.
    #[command(after_help = "Examples:
  walras bench evm-rpc --json
  walras bench evm-rpc --transfers 100000 --connections 8 --batch 1000")]
    EvmRpc {
        /// Transfers through each interface.
        #[arg(long, default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(1..))]
        transfers: u64,
        /// Accounts that send them.
        #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
        senders: u64,
        /// Connections.
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
        connections: u8,
        /// Transfers in one request.
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        batch: u16,
        /// Logs requested at once.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        logs: u64,
    },
    /// A node's doors as users meet them: orders until their fill, replacements beside new orders, readers of a book
    /// that changes all the time, the page.
    #[command(after_help = "Examples:
  walras bench doors --json
  walras bench doors --readers 1,100 --changes 500 --rounds 3")]
    Doors {
        /// Orders until their fill, of each way to send one.
        #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        orders: u16,
        /// New offers, and as many replaced, of one round.
        #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        offers: u32,
        /// Numbers of readers of one book.
        #[arg(long, value_delimiter = ',', default_values_t = [1u16, 100, 1_000],
              value_parser = clap::value_parser!(u16).range(1..=8_000))]
        readers: Vec<u16>,
        /// Changes of the book in a second, while it is read.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(2..=2_000))]
        changes: u16,
        /// Seconds that each number of readers reads in one round.
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
        seconds: u8,
        /// Rounds of all but the orders.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
        rounds: u8,
    },
    /// The loads of the Diablo benchmark: contract calls by a plan, on validators in this process.
    #[command(after_help = "Examples:
  walras bench diablo --workload gafam --validators 4
  walras bench diablo --workload gafam --variants --json     # also without each measure of transaction management
  walras bench diablo --workload football,dota --most 200000 # the first calls of two larger loads
  walras bench diablo --workload all --most 100000 --json")]
    Diablo {
        /// Names of loads, separated by commas, or all.
        #[arg(long, value_delimiter = ',', default_value = "gafam")]
        workload: Vec<String>,
        /// Folder with workload-NAME.yaml.
        #[arg(long, default_value = "../shared/data/diablo")]
        data: PathBuf,
        /// Validators.
        #[arg(long, default_value = "4", value_parser = validators)]
        validators: usize,
        /// Accounts that send.
        #[arg(long, default_value_t = 2_048, value_parser = clap::value_parser!(u64).range(1..))]
        senders: u64,
        /// Maximum number of calls of each load; the first ones count.
        #[arg(long)]
        most: Option<u64>,
        /// Run each load again with each measure of transaction management switched off.
        #[arg(long)]
        variants: bool,
        /// How validators agree on blocks.
        #[arg(long, value_enum, default_value_t = EngineName::Dbft)]
        engine: EngineName,
    },
    /// The payment lane: shards on sockets with durable logs, compared with what signatures and hashes alone allow.
    #[command(after_help = "Examples:
  walras bench payments-lane --json
  walras bench payments-lane --validators 4 --payments 50000 --leaves 256
  walras bench payments-lane --quick --tls on
  walras bench payments-lane --attack frames --json       # a running network, while it is attacked")]
    PaymentsLane {
        /// Instead: latency of payers of a running network before, during and after an attack.
        #[arg(long, value_enum)]
        attack: Option<AttackName>,
        /// Validators.
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
        validators: u8,
        /// Shards of each validator, all on this machine.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
        shards: u16,
        /// Payments of each phase.
        #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
        payments: u32,
        /// Maximum number of payments in flight.
        #[arg(long, default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(1..))]
        window: u32,
        /// Leaves of a tree, for each run; 1 is the naive scheme.
        #[arg(long, value_delimiter = ',', default_values_t = [1usize, 64, 256])]
        leaves: Vec<usize>,
        /// Runs with TLS, without it, or both.
        #[arg(long, value_enum, default_value = "both")]
        tls: TlsRuns,
        /// Few payments: only a check that everything runs.
        #[arg(long)]
        quick: bool,
        /// Directory for the logs; a temporary one by default.
        #[arg(long)]
        directory: Option<PathBuf>,
    },
    /// The matching engine alone: a steady book under a mix of commands.
    #[command(after_help = "Example:\n  walras bench matching --json")]
    Matching {
        /// Resting orders.
        #[arg(long, value_delimiter = ',', default_values_t = [1_000usize, 20_000, 500_000])]
        depths: Vec<usize>,
        /// Commands of a run.
        #[arg(long, default_value_t = 2_000_000)]
        commands: usize,
        /// Runs of each depth.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
        /// Where resting orders are: `near` the middle, or evenly over a `wide` range, with short levels.
        #[arg(long, value_enum, default_value = "near")]
        prices: PricesName,
        /// Write the commands of each depth into this folder for another engine, and measure nothing.
        #[arg(long)]
        flow: Option<PathBuf>,
    },
    /// Settles of continuous markets on the ledger, against their signatures, payments, checkpoints, and no venue.
    #[command(after_help = "Example:\n  walras bench settle --json")]
    Settle {
        /// Traders, each with a key and two deposits: at least twice as many as fills.
        #[arg(long, default_value_t = 20_000)]
        traders: usize,
        /// Fills of a settle, each of two new orders.
        #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=2_500))]
        fills: u32,
        /// Turns.
        #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// The root of a venue: orders a second, its journal against the disk, signatures, a Soup session, market data.
    #[command(after_help = "Examples:
  walras bench venue --json
  walras bench venue --file 01302020.NASDAQ_ITCH50 --security AAPL   # orders of a day instead of a drawn flow")]
    Venue {
        /// Arrivals of a drawn flow.
        #[arg(long, default_value_t = 200_000)]
        arrivals: usize,
        /// A file of framed ITCH 5.0 messages, whose orders are replayed.
        #[arg(long)]
        file: Option<PathBuf>,
        /// With --file: the security; the first one that has orders by default.
        #[arg(long, requires = "file")]
        security: Option<String>,
        /// Arrivals of a step.
        #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4_096))]
        batch: u32,
        /// Round trips over each socket in a run.
        #[arg(long, default_value_t = 5_000)]
        trips: usize,
        /// Runs.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
        /// Directory for the journals; a temporary one by default.
        #[arg(long)]
        directory: Option<PathBuf>,
        /// Only risk, engine and journal, with the commands that --flow writes.
        #[arg(long, conflicts_with = "file")]
        pipeline: bool,
        /// Write the commands of --pipeline into flow.txt in this folder, for another engine, and measure nothing.
        #[arg(long, requires = "pipeline")]
        flow: Option<PathBuf>,
    },
    /// Tables and figures of SPEEDEX: prices, whole blocks, payments, the filter. Each is labelled measured, simulated,
    /// Monte Carlo, computed or quoted, and says whether what the paper claims holds.
    #[command(after_help = "Examples:
  walras bench speedex --list
  walras bench speedex --figure 7 --threads 1,2,4
  walras bench speedex --all --size small --out figures     # figures/speedex-figure-7.json, .csv and .svg")]
    Speedex(PaperArgs),
    /// Tables and figures of Smart Red Belly: transaction management, rates, the trace of NASDAQ.
    #[command(after_help = "Example:\n  walras bench red-belly --table 1 --figure 3 --size full")]
    RedBelly(PaperArgs),
    /// The plot of Block-STM, and the same executor under the EVM.
    #[command(after_help = "Example:\n  walras bench block-stm --all --threads 1,2,4,8")]
    BlockStm(PaperArgs),
    /// Tables and figures of Accept: schemes, shards, trees, the set of spent outputs.
    #[command(after_help = "Example:\n  walras bench accept --table 2 --size full")]
    Accept(PaperArgs),
    /// Tables and figures of Onyx: multicast to a thousand receivers, hedging, fair order queues.
    #[command(after_help = "Examples:
  walras bench onyx --table 3 --size full --json
  walras bench onyx --name proxy-rate,release-span
  walras bench onyx --figure 15 --out figures     # writes figures/onyx-figure-15.json, .csv and .svg")]
    Onyx(PaperArgs),
    /// Make the tables of a document anew from what exhibits wrote with `--out`.
    #[command(after_help = "Examples:\n  walras bench document\n  walras bench document --check")]
    Document(DocumentArgs),
    /// The deterministic filter alone.
    #[command(after_help = "Example:\n  walras bench filter --json")]
    Filter {
        /// Numbers of accounts.
        #[arg(long, value_delimiter = ',', default_values_t = [100_000usize, 1_000_000])]
        accounts: Vec<usize>,
        /// Numbers of transactions in a block.
        #[arg(long, value_delimiter = ',', default_values_t = [10_000usize, 100_000, 500_000])]
        transactions: Vec<usize>,
        /// Measured runs of each kind.
        #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
        /// Numbers of threads, ascending.
        #[arg(long, value_delimiter = ',', default_values_t = [1u32, 2],
              value_parser = clap::value_parser!(u32).range(1..=1_024))]
        threads: Vec<u32>,
        /// Every n-th transaction asks for more than its account has: a few for a contested block.
        #[arg(long, default_value_t = bench::filter::FilterOptions::OVERDRAWN as u32,
              value_parser = clap::value_parser!(u32).range(1..))]
        overdrawn: u32,
    },
    /// A network of validators under load: throughput, latency to commitment and certificate, bytes, syncs, processor
    /// time; healthy, and with one validator dead, slow or Byzantine.
    #[command(
        after_help = "Examples:\n  walras bench consensus --json\n  walras bench consensus --validators 4 --rate 15000 --seconds 10"
    )]
    Consensus {
        /// Numbers of validators; faults are tried with the first.
        #[arg(long, value_delimiter = ',', default_values_t = [4usize, 7, 10], value_parser = validators)]
        validators: Vec<usize>,
        /// Transactions offered per second.
        #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        rate: u64,
        /// Seconds of load in each run.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
        seconds: u64,
        /// Offers that rest in the book before each run
        #[arg(long, default_value_t = 0)]
        resting: u64,
        /// How validators agree on blocks.
        #[arg(long, value_enum, default_value_t = EngineName::Dbft)]
        engine: EngineName,
        /// Count ready votes as the estimates of the first round.
        #[arg(long)]
        fast: bool,
    },
    /// Transaction management with each of its measures switched off in turn: one validator validates, sub-block by
    /// sub-block, bodies and receipts are cached when written.
    #[command(
        after_help = "Examples:\n  walras bench transaction-management --json\n  walras bench transaction-management --validators 7 --transactions 10000"
    )]
    TransactionManagement {
        /// Number of validators.
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
        validators: u32,
        /// Transactions, offered at once.
        #[arg(long, default_value_t = 15_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        transactions: u64,
        /// Runs of each variant; medians are reported.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// Block-STM compared with the best sequential loop: payments of 8 reads and 5 writes, with and without work.
    #[command(
        after_help = "Examples:\n  walras bench stm --json\n  walras bench stm --accounts 100 --work-us 20 --threads 1,2,16"
    )]
    Stm {
        /// Numbers of accounts.
        #[arg(long, value_delimiter = ',', default_values_t = [2u32, 10, 100, 1_000, 10_000],
              value_parser = clap::value_parser!(u32).range(2..))]
        accounts: Vec<u32>,
        /// Microseconds of work in a transaction.
        #[arg(long, value_delimiter = ',', default_values_t = [0u32, 2, 20],
              value_parser = clap::value_parser!(u32).range(..=10_000))]
        work_us: Vec<u32>,
        /// Numbers of threads.
        #[arg(long, value_delimiter = ',', default_values_t = [1u32, 2],
              value_parser = clap::value_parser!(u32).range(1..=1_024))]
        threads: Vec<u32>,
        /// Transactions in a block.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        transactions: u32,
        /// Measured rounds; medians are reported.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
    },
    /// Contracts: payments, transfers of a token, swaps and a hot slot, compared with the best sequential loop over
    /// revm.
    #[command(after_help = "Examples:\n  walras bench evm --json\n  walras bench evm --threads 1,2,16 --pools 1000")]
    Evm {
        /// Numbers of threads.
        #[arg(long, value_delimiter = ',', default_values_t = [1u32, 2],
              value_parser = clap::value_parser!(u32).range(1..=1_024))]
        threads: Vec<u32>,
        /// Transactions in a block.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        transactions: u32,
        /// Accounts that send them.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..))]
        accounts: u32,
        /// Pools that swaps use.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        pools: u32,
        /// Measured rounds; medians are reported.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
        /// Write the blocks and the states before them into this folder for another executor, and measure nothing.
        #[arg(long)]
        flow: Option<PathBuf>,
    },
    /// Frames between validators on loopback: bulk, votes alone and concurrent with bulk, superblocks.
    #[command(
        after_help = "Examples:\n  walras bench transport --json\n  walras bench transport --frame-bytes 4000000 --validators 10"
    )]
    Transport {
        /// Bytes of a bulk frame.
        #[arg(long, default_value_t = 750_000, value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
        frame_bytes: u32,
        /// Bulk frames of a run.
        #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
        frames: u32,
        /// Round trips of votes in a run.
        #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
        round_trips: u32,
        /// Validators that exchange superblocks.
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
        validators: u32,
        /// Superblocks.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        heights: u32,
    },
}

/// A set of books.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum SuiteName {
    /// Random books of 50 assets, from 100 to 10^7 offers.
    Scaling,
    /// Random books of 200,000 and 10^6 offers, from 10 to 200 assets.
    Assets,
    /// Hard books: one-sided and disconnected assets, giant offers, prices 10^±12 apart; some cannot be full.
    Hard,
    /// Books made to break a clearing or to make it slow.
    Hostile,
    /// The same, within the minimum sizes.
    Minimum,
    /// Thin books of 2 to 50 assets and 2 to 10,000 offers: meshes, trees, cycles, hubs, two clusters.
    Thin,
    /// The daily batches of SPEEDEX §6.2, the book carried over from day to day.
    Coingecko,
    /// 10,000 assets against 20 numeraires, on one thread and on two; many small markets that trade separately.
    Decomposition,
    /// The fewest offers that a solver needs to be fast, by epsilon and mu: SPEEDEX figure 2.
    Figure2,
    /// The convex program by a public solver beside ours, by assets and offers: SPEEDEX figure 8.
    Figure8,
}

impl SuiteName {
    fn of(self, data: PathBuf) -> bench::clearing::Suite {
        match self {
            SuiteName::Scaling => bench::clearing::Suite::Scaling,
            SuiteName::Assets => bench::clearing::Suite::Assets,
            SuiteName::Hard => bench::clearing::Suite::Hard,
            SuiteName::Hostile => bench::clearing::Suite::Hostile,
            SuiteName::Minimum => bench::clearing::Suite::Minimum,
            SuiteName::Thin => bench::clearing::Suite::Thin,
            SuiteName::Coingecko => bench::clearing::Suite::Coingecko(data),
            SuiteName::Decomposition => bench::clearing::Suite::Decomposition,
            SuiteName::Figure2 => bench::clearing::Suite::Figure2,
            SuiteName::Figure8 => bench::clearing::Suite::Figure8,
        }
    }
}

impl Bench {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut say = |step: &str| eprintln!("{step} …");
        match self {
            Bench::Clearing { suite, books, most, threads, data } => {
                let books = books.map(|books| books as usize);
                let (suite, most, threads) = (suite.of(data), most as usize, threads as usize);
                let options = bench::clearing::ClearingOptions { suite, books, most, threads };
                let report = clearing(&options)?;
                if json { println!("{report}") } else { print!("{}", tables::text(&report)) }
            }
            Bench::Exchange {
                accounts,
                transactions,
                blocks,
                assets,
                resting,
                signed_transactions,
                fill,
                pools,
                ends,
                threads,
                directory,
            } => {
                let blocks = blocks as usize;
                let options = bench::exchange::ExchangeOptions {
                    accounts,
                    transactions,
                    blocks,
                    assets,
                    resting,
                    signed_transactions,
                    fill,
                    pools,
                    ends,
                    modes: bench::exchange::BlockMode::ALL.to_vec(),
                    fill_signed: false,
                    fill_logged: false,
                    threads: ascending(&threads)?,
                };
                let temporary = tempfile::tempdir()?;
                let directory = directory.unwrap_or_else(|| temporary.path().to_path_buf());
                let figures =
                    bench::exchange::run(&options, &directory, &mut say).map_err(anyhow::Error::from_boxed)?;
                print_figures(&figures, json);
            }
            Bench::Hostile { transactions, resting, accounts, tries, seed } => {
                let (transactions, tries) = (transactions as usize, tries as usize);
                let options =
                    bench::hostile::HostileOptions { transactions, resting, accounts: accounts as usize, tries, seed };
                print_figures(&bench::hostile::run(&options, &bench::hostile::ROWS, &mut say), json);
            }
            Bench::Recovery { accounts, offers, assets, transactions, blocks, directory } => {
                let blocks = blocks as usize;
                let options = bench::recovery::RecoveryOptions { accounts, offers, assets, transactions, blocks };
                let temporary = tempfile::tempdir()?;
                let directory = directory.unwrap_or_else(|| temporary.path().to_path_buf());
                let figures =
                    bench::recovery::run(&options, &directory, &mut say).map_err(anyhow::Error::from_boxed)?;
                print_figures(&figures, json);
            }
            Bench::Floods { seconds } => {
                let directory = tempfile::tempdir()?;
                print_figures(&bench::floods::run(directory.path(), seconds, &mut say)?, json);
            }
            Bench::Payments { accounts, transactions, blocks, assets, threads } => {
                let (blocks, threads) = (blocks as usize, ascending(&threads)?);
                let options = bench::payments::PaymentsOptions { accounts, transactions, blocks, assets, threads };
                print_figures(&bench::payments::run(&options, &mut say), json);
            }
            Bench::PaymentsLane { attack: Some(attack), validators, quick, directory, .. } => {
                let temporary = tempfile::tempdir()?;
                let directory = directory.unwrap_or_else(|| temporary.path().to_path_buf());
                let figures = bench::lane_attacks::run(&attack.options(validators, quick), &directory, &mut say);
                print_figures(&figures.map_err(anyhow::Error::from_boxed)?, json);
            }
            Bench::PaymentsLane {
                validators,
                shards,
                payments,
                window,
                leaves,
                tls,
                quick,
                directory,
                attack: None,
            } => {
                use bench::lane_rows::LaneRowsOptions;
                use bench::payments_lane::LaneVariant;
                let variants = match tls {
                    TlsRuns::On => vec![LaneVariant::Tls],
                    TlsRuns::Off => vec![LaneVariant::Live, LaneVariant::ColdRoots],
                    TlsRuns::Both => vec![LaneVariant::Tls, LaneVariant::Live, LaneVariant::ColdRoots],
                };
                let options = bench::payments_lane::PaymentsLaneOptions {
                    validators: validators.into(),
                    shards,
                    payments: if quick { payments.min(256) } else { payments } as usize,
                    window: window as usize,
                    leaves,
                    variants,
                    rows: Some(if quick { LaneRowsOptions::QUICK } else { LaneRowsOptions::FULL }),
                };
                let temporary = tempfile::tempdir()?;
                let directory = directory.unwrap_or_else(|| temporary.path().to_path_buf());
                let figures =
                    bench::payments_lane::run(&options, &directory, &mut say).map_err(anyhow::Error::from_boxed)?;
                print_figures(&figures, json);
            }
            Bench::EvmRpc { transfers, senders, connections, batch, logs } => {
                let (connections, batch) = (connections.into(), batch.into());
                let options = bench::evm_rpc::EvmRpcOptions { transfers, senders, connections, batch, logs };
                print_figures(&bench::evm_rpc::run(&options, &mut say)?, json);
            }
            Bench::Doors { orders, offers, readers, changes, seconds, rounds } => {
                let options = bench::doors::DoorsOptions {
                    orders: orders.into(),
                    offers: offers as usize,
                    readers: readers.into_iter().map(usize::from).collect(),
                    changes: changes.into(),
                    seconds: seconds.into(),
                    rounds: rounds.into(),
                };
                print_figures(&bench::doors::run(&options, &mut say).map_err(anyhow::Error::from_boxed)?, json);
            }
            Bench::Diablo { workload, data, validators, senders, most, variants, engine } => {
                let engine =
                    engine.engine().context("--engine solo is for a single node: choose dbft or tendermint")?;
                let options = bench::diablo::DiabloOptions {
                    loads: workload,
                    data,
                    validators,
                    senders,
                    most: most.unwrap_or(u64::MAX),
                    variants,
                    rules: engine.rules(),
                };
                print_figures(&bench::diablo::run(&options, &mut say)?, json);
            }
            Bench::Matching { depths, commands, prices, flow: Some(folder), .. } => {
                for depth in depths {
                    let path = folder.join(format!("flow-{depth}.txt"));
                    let file = std::fs::File::create(&path).with_context(|| path.display().to_string())?;
                    bench::matching::write_flow(prices.into(), depth, commands, &mut std::io::BufWriter::new(file))?;
                    println!("{}", path.display());
                }
            }
            Bench::Matching { depths, commands, runs, prices, flow: None } => {
                let prices = prices.into();
                let options = bench::matching::MatchingOptions { prices, depths, commands, runs: runs as usize };
                print_figures(&bench::matching::run(&options, &mut say), json);
            }
            Bench::Settle { traders, fills, runs } => {
                let (fills, runs) = (fills as usize, runs as usize);
                let options = bench::settle::SettleOptions { traders, fills, runs };
                print_figures(&bench::settle::run(&options, &mut say)?, json);
            }
            Bench::Venue { arrivals, flow: Some(folder), .. } => {
                let file = std::fs::File::create(folder.join("flow.txt"))?;
                bench::venue_pipeline::write_flow(arrivals, &mut std::io::BufWriter::new(file))?;
            }
            Bench::Venue { arrivals, batch, runs, directory, pipeline: true, .. } => {
                let (batch, runs) = (batch as usize, runs as usize);
                let options = bench::venue_pipeline::PipelineOptions { arrivals, batch, runs };
                let temporary = tempfile::tempdir()?;
                let directory = directory.unwrap_or_else(|| temporary.path().to_path_buf());
                print_figures(&bench::venue_pipeline::run(&options, &directory, &mut say)?, json);
            }
            Bench::Venue { arrivals, file, security, batch, trips, runs, directory, .. } => {
                let flow = bench::flow::FlowParameters::default();
                let replayed = file.map(|file| replayed(&file, security.as_deref(), flow.owners)).transpose()?;
                let (batch, runs) = (batch as usize, runs as usize);
                let options = bench::venue::VenueBenchOptions { flow, arrivals, replayed, batch, trips, runs };
                let temporary = tempfile::tempdir()?;
                let directory = directory.unwrap_or_else(|| temporary.path().to_path_buf());
                print_figures(&bench::venue::run(&options, &directory, &mut say)?, json);
            }
            Bench::Speedex(args) => return args.run(Paper::Speedex, json, &mut say),
            Bench::RedBelly(args) => return args.run(Paper::RedBelly, json, &mut say),
            Bench::BlockStm(args) => return args.run(Paper::BlockStm, json, &mut say),
            Bench::Accept(args) => return args.run(Paper::Accept, json, &mut say),
            Bench::Onyx(args) => return args.run(Paper::Onyx, json, &mut say),
            Bench::Document(args) => return args.run(json),
            Bench::Filter { accounts, transactions, runs, threads, overdrawn } => {
                let (runs, overdrawn, threads) = (runs as usize, overdrawn as usize, ascending(&threads)?);
                let assets = 50;
                let options = bench::filter::FilterOptions { accounts, transactions, runs, assets, threads, overdrawn };
                print_figures(&bench::filter::run(&options, &mut say), json);
            }
            Bench::Consensus { validators, rate, seconds, resting, engine, fast } => {
                let engine =
                    engine.engine().context("--engine solo is for a single node: choose dbft or tendermint")?;
                let rules = consensus::Rules { fast, ..engine.rules() };
                let options =
                    bench::consensus::ConsensusOptions { validators, rate, seconds, resting, rules, links: None };
                print_figures(&bench::consensus::run(&options, &mut say)?, json);
            }
            Bench::TransactionManagement { validators, transactions, runs } => {
                let options = bench::transaction_management::TransactionManagementOptions {
                    validators: validators as usize,
                    transactions,
                    runs: runs as usize,
                    variants: bench::transaction_management::TransactionManagementOptions::VARIANTS.to_vec(),
                };
                print_figures(&bench::transaction_management::run(&options, &mut say)?, json);
            }
            Bench::Stm { accounts, work_us, threads, transactions, rounds } => {
                let options = bench::stm::StmOptions {
                    accounts: accounts.into_iter().map(|accounts| accounts as usize).collect(),
                    work_us,
                    threads: threads.into_iter().map(|threads| threads as usize).collect(),
                    transactions: transactions as usize,
                    rounds: rounds as usize,
                };
                print_figures(&bench::stm::run(&options, &mut say), json);
            }
            Bench::Evm { threads, transactions, accounts, pools, rounds, flow } => {
                let options = bench::evm::EvmOptions {
                    threads: threads.into_iter().map(|threads| threads as usize).collect(),
                    transactions: transactions as usize,
                    accounts: accounts as usize,
                    pools: pools as usize,
                    rounds: rounds as usize,
                    loads: bench::evm::EvmOptions::LOADS.to_vec(),
                };
                match flow {
                    Some(folder) => {
                        bench::evm::write_loads(&options, &folder).with_context(|| format!("{}", folder.display()))?
                    }
                    None => print_figures(&bench::evm::run(&options, &mut say), json),
                }
            }
            Bench::Transport { frame_bytes, frames, round_trips, validators, heights } => {
                let options = bench::transport::TransportOptions {
                    frame_bytes: frame_bytes as usize,
                    frames: frames as usize,
                    round_trips: round_trips as usize,
                    validators: validators as usize,
                    heights: heights as usize,
                };
                print_figures(&bench::transport::run(&options, &mut say)?, json);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The orders of a file of ITCH 5.0 messages.
fn replayed(file: &Path, security: Option<&str>, owners: u32) -> anyhow::Result<Vec<bench::flow::FlowEvent>> {
    let bytes = std::fs::read(file).with_context(|| format!("{}", file.display()))?;
    let padded = |text: &str| {
        let mut symbol = [b' '; 8];
        anyhow::ensure!(text.len() <= symbol.len(), "--security {text}: a symbol has at most eight characters");
        symbol[..text.len()].copy_from_slice(text.as_bytes());
        Ok(symbol)
    };
    let security = security.map(padded).transpose()?;
    bench::flow::from_itch(&bytes, security, owners).map_err(|what| anyhow::anyhow!("{}: {what}", file.display()))
}

fn validators(text: &str) -> Result<usize, String> {
    let count: usize = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if (1..=64).contains(&count) {
        Ok(count)
    } else {
        Err(format!("{count} validators are out of range: write 1 to 64"))
    }
}

/// Clears books and shows a progress bar.
fn clearing(options: &bench::clearing::ClearingOptions) -> anyhow::Result<Value> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {elapsed}").expect("a sound template");
    let progress = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
    let report = bench::clearing::run(options, &mut |what, done, of| {
        progress.set_length(of as u64);
        progress.set_position(done as u64);
        progress.set_message(what.to_owned());
    })?;
    progress.finish_and_clear();
    Ok(report)
}
