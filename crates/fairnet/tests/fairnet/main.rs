//! Tests of `fairnet` in one program: its parts are linked once.

mod clock;
mod delivery;
mod dice;
mod edge;
mod links;
mod nodes;
mod pace;
mod queue;
mod replicas;
mod roster;
mod sequencer;
mod simulator;
mod tree;
