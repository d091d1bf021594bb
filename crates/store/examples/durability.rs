//! Measures a store in a directory: appends with one sync each, group commit, a checkpoint during appends, opening,
//! reading.
//!
//! `cargo run --release -p store --example durability -- DIRECTORY BLOCK_BYTES BLOCKS CHECKPOINT_MIB`

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use store::{Options, RealDisk, Store, inspect};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| arguments[i].parse::<usize>().expect("a number");
    let (block_bytes, blocks, checkpoint_mib) = (number(1), number(2) as u64, number(3));
    let open = || Store::open(RealDisk::new(&arguments[0]).expect("a directory"), Options::default()).expect("opens");
    let (mut store, _) = open();
    let block: Vec<u8> = (0..block_bytes).map(|i| (i * i) as u8).collect();
    let from = store.last_height() + 1;
    let mut slowest = Duration::ZERO;
    let start = Instant::now();
    for height in from..from + blocks {
        let begun = Instant::now();
        store.append(height, &block).expect("appended");
        store.sync().expect("synced");
        store.append_receipts(height, &block[..block.len() / 10]).expect("put");
        slowest = slowest.max(begun.elapsed());
    }
    report("append and sync, each", start, blocks as usize * block_bytes);
    println!(
        "{:>10.2} ms each, slowest {:.2} ms",
        start.elapsed().as_secs_f64() * 1e3 / blocks as f64,
        slowest.as_secs_f64() * 1e3
    );

    let mut writer = store.begin_checkpoint(store.last_height()).expect("begun");
    let start = Instant::now();
    let thread = std::thread::spawn(move || {
        let piece = vec![7; 1 << 20];
        (0..checkpoint_mib).for_each(|_| writer.write_all(&piece).expect("written"));
        writer.finish().expect("finished");
        start.elapsed()
    });
    let mut waits = Vec::new();
    let from = store.last_height() + 1;
    for height in from..from + blocks {
        let begun = Instant::now();
        store.append(height, &block).expect("appended");
        store.sync().expect("synced");
        store.append_receipts(height, &block[..block.len() / 10]).expect("put");
        waits.push(begun.elapsed());
        if thread.is_finished() {
            break;
        }
    }
    let took = thread.join().expect("no panic");
    waits.sort();
    println!(
        "{:>10.2} s checkpoint of {checkpoint_mib} MiB ({:.0} MiB/s)",
        took.as_secs_f64(),
        checkpoint_mib as f64 / took.as_secs_f64()
    );
    println!(
        "{:>10.2} ms median, {:.2} ms slowest append and sync beside it",
        waits[waits.len() / 2].as_secs_f64() * 1e3,
        waits[waits.len() - 1].as_secs_f64() * 1e3
    );
    drop(store);

    let start = Instant::now();
    let (store, recovery) = open();
    report("open", start, 0);
    let start = Instant::now();
    let mut checkpoint = recovery.checkpoint.expect("there is one");
    let mut piece = vec![0; 1 << 16];
    let mut bytes = 0;
    while let Ok(count @ 1..) = checkpoint.read(&mut piece) {
        bytes += count;
    }
    report("read the checkpoint", start, bytes);
    let start = Instant::now();
    let replayed: usize = recovery.blocks.map(|block| block.expect("sound").1.len()).sum();
    report("read the blocks to replay", start, replayed);
    let start = Instant::now();
    let all: usize = (1..=store.last_height())
        .map(|height| store.block(height).expect("sound").map_or(0, |block| block.len()))
        .sum();
    report("read every block", start, all);
    let start = Instant::now();
    assert_eq!(inspect(RealDisk::new(&arguments[0]).expect("a directory")).expect("readable").damage().count(), 0);
    report("inspect", start, all + bytes);
}

fn report(what: &str, start: Instant, bytes: usize) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{:>10.2} ms {what} ({:.0} MiB/s)", seconds * 1e3, bytes as f64 / seconds / (1 << 20) as f64);
}
