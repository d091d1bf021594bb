//! What a transaction does, by steps and by calls, in the form of Ethereum's debugging tools.
//!
//! *Properties.* A trace holds at most [`TRACE_BYTES_MAX`] and the requested number of steps, whatever the
//! transaction does; the rest is dropped, and the trace says so.

use revm::context::{ContextTr, JournalTr};
use revm::inspector::Inspector;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{Jumps, LoopControl, MemoryTr};
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, Interpreter, InterpreterResult,
};
use revm::primitives::{Address, Bytes, Log, U256};
use revm::state::bytecode::opcode::{self, OpCode};

use super::words::failure;

/// The approximate maximum size of a trace in bytes.
pub const TRACE_BYTES_MAX: usize = 16 << 20;
/// The most steps of a trace.
pub const TRACE_STEPS_MAX: usize = 100_000;

/// What a trace shows of an execution.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceSettings {
    /// Most steps; zero for none.
    pub steps: usize,
    /// Whether a step shows the stack before it.
    pub stack: bool,
    /// Whether a step shows the memory before it.
    pub memory: bool,
    /// Whether a step shows the slot that it reads or writes.
    pub storage: bool,
    /// Whether calls are shown.
    pub calls: bool,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct TraceStep {
    /// The program counter.
    pub pc: u64,
    /// The instruction.
    pub op: u8,
    /// Gas before it.
    pub gas: u64,
    /// Gas that it took; for a call, including the gas given to the call.
    pub cost: u64,
    /// Depth of the call, from 1 on.
    pub depth: u64,
    /// Gas to refund, before it.
    pub refund: i64,
    /// The account whose storage it sees.
    pub account: Address,
    /// The stack before it.
    pub stack: Vec<U256>,
    /// The memory before it.
    pub memory: Vec<u8>,
    /// The slot that it reads or writes, with its value afterwards.
    pub slot: Option<(U256, U256)>,
    /// Why it ended the call, if it did so abnormally.
    pub error: Option<String>,
}

impl TraceStep {
    /// The name of the instruction.
    pub fn name(&self) -> String {
        OpCode::new(self.op).map_or_else(|| format!("opcode 0x{:02x} not defined", self.op), |op| op.as_str().into())
    }
}

/// A call, or the creation of a contract.
#[derive(Clone, Debug)]
pub struct TraceCall {
    /// CALL, STATICCALL, DELEGATECALL, CALLCODE, CREATE, CREATE2 or SELFDESTRUCT.
    pub kind: &'static str,
    /// Who calls.
    pub from: Address,
    /// Who is called, or the contract that was created.
    pub to: Option<Address>,
    /// Wei sent with the call; none where a call carries none.
    pub value: Option<U256>,
    /// Gas given to the call.
    pub gas: u64,
    /// Gas that it used.
    pub gas_used: u64,
    /// Its input, or the code that creates the contract.
    pub input: Bytes,
    /// What it returned.
    pub output: Bytes,
    /// Why it failed.
    pub error: Option<String>,
    /// Whether it failed by reverting.
    pub is_reverted: bool,
    /// Its own logs.
    pub logs: Vec<Log>,
    /// The calls that it made.
    pub calls: Vec<TraceCall>,
}

/// Observes an execution.
#[derive(Debug, Default)]
pub struct Tracer {
    settings: TraceSettings,
    /// Steps in order.
    pub steps: Vec<TraceStep>,
    /// The outermost call, when it has ended.
    pub call: Option<TraceCall>,
    /// Whether something was dropped because the trace would become too large.
    pub is_cut: bool,
    open: Vec<TraceCall>,
    bytes: usize,
    /// Whether the current step is recorded.
    is_step_open: bool,
}

impl Tracer {
    /// A tracer with these settings.
    pub fn new(settings: TraceSettings) -> Tracer {
        Tracer { settings, ..Tracer::default() }
    }

    /// Reserves this many bytes; false if there is not enough room.
    fn takes(&mut self, bytes: usize) -> bool {
        let total = self.bytes.saturating_add(bytes);
        let fits = total <= TRACE_BYTES_MAX;
        if fits {
            self.bytes = total;
        }
        self.is_cut |= !fits;
        fits
    }

    fn begin(&mut self, call: TraceCall) {
        if self.settings.calls {
            // Calls are counted and dropped where they end, so that each end finds its beginning.
            self.open.push(call);
        }
    }

    fn end(&mut self, result: &InterpreterResult, created: Option<Address>) {
        let Some(mut call) = self.open.pop() else { return };
        call.gas_used = result.gas.total_gas_spent();
        call.to = call.to.or(created);
        call.is_reverted = result.result.is_revert();
        if !result.result.is_ok() {
            call.error = Some(if call.is_reverted { "execution reverted" } else { failure(result.result) }.into());
        }
        call.output = result.output.clone();
        let size = 256 + call.input.len() + call.output.len();
        let size = size + call.logs.iter().map(|log| 160 + log.data.data.len()).sum::<usize>();
        if self.open.is_empty() {
            self.call = Some(call);
        } else if self.takes(size) {
            self.open.last_mut().expect("not empty").calls.push(call);
        }
    }
}

impl<C: ContextTr> Inspector<C, EthInterpreter> for Tracer {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut C) {
        self.is_step_open = false;
        if self.settings.steps == 0 {
            return;
        }
        if self.steps.len() >= self.settings.steps {
            self.is_cut = true;
            return;
        }
        let shown = self.settings;
        let stack = interpreter.stack.data();
        let size = 160 + if shown.stack { 32 * stack.len() } else { 0 };
        let memory = if shown.memory { interpreter.memory.size() } else { 0 };
        if !self.takes(size + memory) {
            return;
        }
        let op = interpreter.bytecode.opcode();
        let top = |down: usize| stack.len().checked_sub(down + 1).map(|at| stack[at]);
        // The value that is read is known when the instruction has been executed.
        let slot = match op {
            opcode::SLOAD => top(0).map(|slot| (slot, U256::ZERO)),
            opcode::SSTORE => top(0).zip(top(1)),
            _ => None,
        };
        self.steps.push(TraceStep {
            pc: interpreter.bytecode.pc() as u64,
            op,
            gas: interpreter.gas.remaining(),
            cost: 0,
            depth: context.journal_ref().depth() as u64,
            refund: interpreter.gas.refunded(),
            account: interpreter.input.target_address,
            stack: if shown.stack { stack.to_vec() } else { Vec::new() },
            memory: interpreter.memory.slice(0..memory).to_vec(),
            slot: slot.filter(|_| shown.storage),
            error: None,
        });
        self.is_step_open = true;
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, _context: &mut C) {
        let Some(step) = self.steps.last_mut().filter(|_| self.is_step_open) else { return };
        self.is_step_open = false;
        step.cost = step.gas.saturating_sub(interpreter.gas.remaining());
        if let (opcode::SLOAD, Some((_, value))) = (step.op, &mut step.slot) {
            *value = interpreter.stack.data().last().copied().unwrap_or_default();
        }
        let action = interpreter.bytecode.action().as_ref();
        let ended = action.and_then(|action| action.instruction_result());
        step.error = ended.filter(|result| result.is_halt()).map(|result| failure(result).into());
    }

    fn log(&mut self, _context: &mut C, log: Log) {
        if let Some(call) = self.open.last_mut() {
            call.logs.push(log);
        }
    }

    fn call(&mut self, context: &mut C, inputs: &mut CallInputs) -> Option<CallOutcome> {
        let kind = match inputs.scheme {
            CallScheme::Call => "CALL",
            CallScheme::CallCode => "CALLCODE",
            CallScheme::DelegateCall => "DELEGATECALL",
            CallScheme::StaticCall => "STATICCALL",
        };
        let (from, to) = match inputs.scheme {
            CallScheme::DelegateCall | CallScheme::CallCode => (inputs.target_address, inputs.bytecode_address),
            _ => (inputs.caller, inputs.target_address),
        };
        if self.settings.calls {
            let input = inputs.input.bytes(context);
            let value = (inputs.scheme != CallScheme::StaticCall).then(|| inputs.call_value());
            self.begin(TraceCall { to: Some(to), value, ..opened(kind, from, inputs.gas_limit, input) });
        }
        None
    }

    fn call_end(&mut self, _context: &mut C, _inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.end(&outcome.result, None);
    }

    fn create(&mut self, _context: &mut C, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        let kind = match inputs.scheme() {
            revm::context_interface::CreateScheme::Create2 { .. } => "CREATE2",
            _ => "CREATE",
        };
        let call = opened(kind, inputs.caller(), inputs.gas_limit(), inputs.init_code().clone());
        self.begin(TraceCall { value: Some(inputs.value()), ..call });
        None
    }

    fn create_end(&mut self, _context: &mut C, _inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        self.end(&outcome.result, outcome.address);
    }

    fn selfdestruct(&mut self, contract: Address, target: Address, value: U256) {
        if self.settings.calls && self.takes(256) {
            let call = opened("SELFDESTRUCT", contract, 0, Bytes::new());
            if let Some(outer) = self.open.last_mut() {
                outer.calls.push(TraceCall { to: Some(target), value: Some(value), ..call });
            }
        }
    }
}

fn opened(kind: &'static str, from: Address, gas: u64, input: Bytes) -> TraceCall {
    TraceCall {
        kind,
        from,
        to: None,
        value: None,
        gas,
        gas_used: 0,
        input,
        output: Bytes::new(),
        error: None,
        is_reverted: false,
        logs: Vec::new(),
        calls: Vec::new(),
    }
}
