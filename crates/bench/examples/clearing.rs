//! Prints the figures of a clearing suite: `clearing scaling|assets|coingecko BOOKS [FOLDER]`.

use std::process::ExitCode;

use bench::clearing::{Options, Suite, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let suite = match args.first().map(String::as_str) {
        Some("assets") => Suite::Assets,
        Some("coingecko") => Suite::Coingecko(args.get(2).map_or("../shared/data/coingecko".into(), Into::into)),
        _ => Suite::Scaling,
    };
    let books = args.get(1).and_then(|books| books.parse().ok()).unwrap_or(100);
    match run(&Options { suite, books }) {
        Ok(report) => print!("{report}"),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
