//! Strategies inside the gateway (Onyx, appendix G, trust model 1): WebAssembly modules that see packets when they are
//! shown, and answer with orders.
//!
//! # Interface
//!
//! | module exports | what it is |
//! |---|---|
//! | `memory` | its memory |
//! | `buffer() -> i32` | asked once: where a packet of up to 2,048 bytes is to be written |
//! | `on_packet(sequence: i64, deadline: i64, length: i32)` | a packet is shown: its payload is in the buffer |
//!
//! | module imports | what it does |
//! |---|---|
//! | `walras.order(class: i32, at: i32, length: i32) -> i32` | an order: class 0 critical, 1 other; 0 if it is taken |
//!
//! There is nothing else to import: no clock, no randomness, no network. Time is the deadline of the packet. Two
//! machines that run one module see the same packets and issue the same orders.
//!
//! # Properties
//!
//! - A call ends after [`StrategyLimits::fuel`] at the latest. What it ordered before it failed is not sent, and the
//!   module is not called again: its memory may be half written.
//! - Memory, tables, orders of a call, bytes of a module are bounded; growth beyond the bound is refused to the module.
//! - Modules with floating-point instructions, start functions or other imports are refused.
//! - Strategies that share a core do not pay for each other: an order counts as made when its packet was released, plus
//!   what its own call has cost ([`StrategyTurn::cost`]).

use fairnet::{Nanos, NewEdgeOrder, ORDER_BYTES_MAX, OrderClass, ShownPacket};
use wasmi::{
    Caller, CompilationMode, Config, EnforcedLimits, Engine, Instance, Linker, Memory, Module, Store, StoreLimits,
    StoreLimitsBuilder, TypedFunc,
};

use crate::datagrams::DATAGRAM_BYTES;

/// Elements of a module's tables.
const ELEMENTS: usize = 1_024;
/// What a unit of fuel counts as, ns: about an instruction.
const FUEL_NANOS: Nanos = 1;

/// What a strategy may use.
#[derive(Clone, Copy, Debug)]
pub struct StrategyLimits {
    /// Fuel of one call: about so many instructions.
    pub fuel: u64,
    /// Bytes of memory.
    pub memory: usize,
    /// Orders of one call.
    pub orders: usize,
    /// Bytes of a module.
    pub module: usize,
}

impl Default for StrategyLimits {
    fn default() -> StrategyLimits {
        StrategyLimits { fuel: 1_000_000, memory: 4 << 20, orders: 64, module: 1 << 20 }
    }
}

/// Why a strategy does not run.
#[derive(Debug, thiserror::Error)]
pub enum StrategyError {
    /// The module is too long.
    #[error("a module of {0} bytes: at most {1} are taken")]
    TooLong(usize, usize),
    /// It is no module that a gateway runs.
    #[error("no strategy: {0}. A module has no floats, no start function and no import but walras.order")]
    Module(String),
    /// It does not export what a strategy needs.
    #[error("the module does not export {0}: see the interface in docs/fairnet.md")]
    Missing(&'static str),
    /// Its buffer is not inside its memory.
    #[error("the module's buffer at {0} has no room for {DATAGRAM_BYTES} bytes")]
    Buffer(i32),
    /// A call used up its fuel.
    #[error("a call used up its fuel: the strategy is stopped")]
    OutOfFuel,
    /// A call failed.
    #[error("a call failed ({0}): the strategy is stopped")]
    Trap(String),
    /// An earlier call failed.
    #[error("the strategy was stopped after an earlier failure")]
    Stopped,
}

/// What a module's calls work on.
struct Turn {
    limits: StoreLimits,
    orders: Vec<(OrderClass, Vec<u8>)>,
    most: usize,
}

/// What one call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyTurn {
    /// Classes and bodies, in order.
    pub orders: Vec<(OrderClass, Vec<u8>)>,
    /// What the call counts as, ns.
    pub cost: Nanos,
}

impl StrategyTurn {
    /// The orders, made upon a packet that was released at a time.
    pub fn made_upon(self, released: Nanos) -> impl Iterator<Item = NewEdgeOrder> {
        let made = Some(released.saturating_add(self.cost));
        self.orders.into_iter().map(move |(class, body)| NewEdgeOrder { class, body, made })
    }
}

/// A module that runs.
pub struct Strategy {
    store: Store<Turn>,
    on_packet: TypedFunc<(i64, i64, i32), ()>,
    memory: Memory,
    buffer: usize,
    fuel: u64,
    is_stopped: bool,
}

fn engine() -> Engine {
    let mut config = Config::default();
    config.consume_fuel(true).floats(false).allow_start_fn(false);
    config.wasm_multi_memory(false).wasm_tail_call(false);
    config.enforced_limits(EnforcedLimits::strict()).compilation_mode(CompilationMode::Eager);
    Engine::new(&config)
}

impl Strategy {
    /// Loads a module, in binary form or as text.
    ///
    /// # Errors
    /// If it is none that a gateway runs.
    pub fn new(module: &[u8], limits: StrategyLimits) -> Result<Strategy, StrategyError> {
        if module.len() > limits.module {
            return Err(StrategyError::TooLong(module.len(), limits.module));
        }
        let refused = |error: wasmi::Error| StrategyError::Module(error.to_string());
        let engine = engine();
        let module = Module::new(&engine, module).map_err(refused)?;
        let bounds = StoreLimitsBuilder::new().memory_size(limits.memory).table_elements(ELEMENTS);
        let bounds = bounds.instances(1).memories(1).tables(4).build();
        let turn = Turn { limits: bounds, orders: Vec::new(), most: limits.orders };
        let mut store = Store::new(&engine, turn);
        store.limiter(|turn| &mut turn.limits);
        store.set_fuel(limits.fuel).map_err(refused)?;
        let mut linker = Linker::new(&engine);
        linker.func_wrap("walras", "order", order).map_err(|error| StrategyError::Module(error.to_string()))?;
        let instance = linker.instantiate_and_start(&mut store, &module).map_err(refused)?;
        let memory = instance.get_memory(&store, "memory").ok_or(StrategyError::Missing("a memory `memory`"))?;
        let on_packet = instance.get_typed_func(&store, "on_packet");
        let on_packet = on_packet.map_err(|_| StrategyError::Missing("`on_packet(i64, i64, i32)`"))?;
        let buffer = buffer_of(&instance, &mut store)?;
        let place = usize::try_from(buffer).ok();
        let end = place.and_then(|place| place.checked_add(DATAGRAM_BYTES));
        match (place, end) {
            (Some(buffer), Some(end)) if end <= memory.data(&store).len() => {
                Ok(Strategy { store, on_packet, memory, buffer, fuel: limits.fuel, is_stopped: false })
            }
            _ => Err(StrategyError::Buffer(buffer)),
        }
    }

    /// Shows it a packet.
    ///
    /// # Errors
    /// If the call fails; every later one is refused.
    pub fn on_packet(&mut self, packet: &ShownPacket) -> Result<StrategyTurn, StrategyError> {
        if std::mem::replace(&mut self.is_stopped, true) {
            return Err(StrategyError::Stopped);
        }
        let payload = &packet.payload[..packet.payload.len().min(DATAGRAM_BYTES)];
        self.memory.data_mut(&mut self.store)[self.buffer..][..payload.len()].copy_from_slice(payload);
        self.store.data_mut().orders.clear();
        self.store.set_fuel(self.fuel).map_err(failed)?;
        let words = (packet.sequence as i64, packet.deadline as i64, payload.len() as i32);
        self.on_packet.call(&mut self.store, words).map_err(failed)?;
        self.is_stopped = false;
        let used = self.fuel.saturating_sub(self.store.get_fuel().map_err(failed)?);
        let orders = std::mem::take(&mut self.store.data_mut().orders);
        Ok(StrategyTurn { orders, cost: used.saturating_mul(FUEL_NANOS) })
    }
}

fn buffer_of(instance: &Instance, store: &mut Store<Turn>) -> Result<i32, StrategyError> {
    let buffer = instance.get_typed_func::<(), i32>(&*store, "buffer");
    buffer.map_err(|_| StrategyError::Missing("`buffer() -> i32`"))?.call(store, ()).map_err(failed)
}

fn failed(error: wasmi::Error) -> StrategyError {
    match error.as_trap_code() {
        Some(wasmi::TrapCode::OutOfFuel) => StrategyError::OutOfFuel,
        _ => StrategyError::Trap(error.to_string()),
    }
}

/// What a module imports: 0 if the order is taken, 1 if not.
fn order(mut caller: Caller<'_, Turn>, class: i32, at: i32, length: i32) -> i32 {
    let body = || {
        let memory = caller.get_export("memory")?.into_memory()?;
        let (at, length) = (usize::try_from(at).ok()?, usize::try_from(length).ok()?);
        let body = memory.data(&caller).get(at..at.checked_add(length)?)?;
        (length <= ORDER_BYTES_MAX).then(|| body.to_vec())
    };
    let class = match class {
        0 => Some(OrderClass::Critical),
        1 => Some(OrderClass::Other),
        _ => None,
    };
    let Some((class, body)) = class.zip(body()) else { return 1 };
    let turn = caller.data_mut();
    if turn.orders.len() >= turn.most {
        return 1;
    }
    turn.orders.push((class, body));
    0
}
