//! A bank: transfers between accounts, fees into one pot, and a limit on the total transferred in a day.
//!
//! Every transfer changes the pot and the day's total. As reads and writes these would serialize all transfers; as
//! bounded increments they do not conflict.
//!
//! ```sh
//! cargo run --release -p stm --example bank
//! ```

use stm::{Blocked, Number, TransactionView, Vm, Workers};

const ACCOUNTS: u32 = 1_000;
const TRANSFERS: usize = 50_000;
const FEE: u64 = 1;
const DAILY_LIMIT: i128 = 2_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Account(u32),
    Fees,
    TransferredToday,
}

#[derive(Clone, Copy)]
struct Cents(u64);

impl Number for Cents {
    fn to_number(&self) -> i128 {
        self.0.into()
    }
    fn from_number(number: i128) -> Self {
        Cents(number.try_into().expect("bounds are those of a u64"))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Receipt {
    Done,
    InsufficientFunds,
    LimitReached,
}

struct Transfer {
    from: u32,
    to: u32,
    amount: u64,
}

struct Bank {
    transfers: Vec<Transfer>,
}

impl Vm for Bank {
    type Key = Key;
    type Value = Cents;
    type Output = Receipt;

    fn load(&self, key: &Key) -> Cents {
        Cents(if matches!(key, Key::Account(_)) { 10_000 } else { 0 })
    }

    // A transfer that fails writes nothing: all checks come before the first write.
    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<Receipt, Blocked> {
        let Transfer { from, to, amount } = self.transfers[txn];
        let Cents(balance) = view.read(&Key::Account(from))?;
        let Some(left) = balance.checked_sub(amount + FEE) else { return Ok(Receipt::InsufficientFunds) };
        if !view.add(&Key::TransferredToday, amount.into(), 0..=DAILY_LIMIT)? {
            return Ok(Receipt::LimitReached);
        }
        view.add(&Key::Fees, FEE.into(), 0..=u64::MAX.into())?;
        view.write(Key::Account(from), Cents(left));
        let Cents(credit) = view.read(&Key::Account(to))?;
        view.write(Key::Account(to), Cents(credit + amount));
        Ok(Receipt::Done)
    }
}

fn main() {
    let transfer = |number: u32| Transfer {
        from: number.wrapping_mul(7_919) % ACCOUNTS,
        to: number.wrapping_mul(104_729).wrapping_add(1) % ACCOUNTS,
        amount: u64::from(number % 97),
    };
    let bank = || Bank { transfers: (0..TRANSFERS as u32).map(transfer).collect() };
    let threads = std::thread::available_parallelism().map_or(2, |threads| threads.get());

    let parallel = Workers::new(threads).execute(bank(), TRANSFERS, Vec::new());
    let sequential = Workers::new(1).execute(bank(), TRANSFERS, Vec::new());
    assert_eq!(parallel.sink, sequential.sink, "the receipts are those of one by one");

    let count = |receipt| parallel.sink.iter().filter(|&other| *other == receipt).count();
    println!("done: {}", count(Receipt::Done));
    println!("insufficient funds: {}", count(Receipt::InsufficientFunds));
    println!("limit reached: {}", count(Receipt::LimitReached));
    println!("{threads} threads: {:?}", parallel.tally);

    let committed = parallel.result.expect("no transfer panics");
    for (key, Cents(value)) in committed.writes.into_sorted() {
        match key {
            Key::Fees => println!("fees: {value}"),
            Key::TransferredToday => println!("transferred today: {value}"),
            Key::Account(_) => {}
        }
    }
}
