//! Builds again when the page was: its files are embedded.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
