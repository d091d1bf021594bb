//! What a transaction does, by steps and by calls, in the form of Ethereum's debugging tools.
//!
//! *Properties.* A trace holds at most [`TRACE_BYTES_MAX`] and the requested number of steps, whatever the
//! transaction does; the rest is dropped, and the trace says so. What a frame that failed has logged, itself or by
//! calls, never happened and is not shown.

use revm::context::{ContextTr, JournalTr};
use revm::inspector::Inspector;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{Jumps, LoopControl, MemoryTr, ReturnData};
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, Interpreter, InterpreterResult,
};
use revm::primitives::{Address, Bytes, Log, U256};
use revm::state::bytecode::opcode::{self, OpCode};

use super::failures::failure;

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
    /// Whether a step shows what the last call of its frame returned.
    pub returned: bool,
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
    /// Gas to refund to the transaction, before it.
    pub refund: i64,
    /// The account whose storage it sees.
    pub account: Address,
    /// The stack before it.
    pub stack: Vec<U256>,
    /// The memory before it.
    pub memory: Vec<u8>,
    /// What the last call of its frame returned, before it.
    pub returned: Bytes,
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

/// A log of a call.
#[derive(Clone, Debug)]
pub struct TraceLog {
    /// The log.
    pub log: Log,
    /// How many calls its frame had made before it.
    pub position: usize,
    /// Its number among the logs of the transaction, from 0 on.
    pub number: usize,
}

/// A call, or the creation of a contract.
#[derive(Clone, Debug)]
pub struct TraceCall {
    /// CALL, STATICCALL, DELEGATECALL, CALLCODE, CREATE, CREATE2 or SELFDESTRUCT.
    pub kind: &'static str,
    /// Who calls.
    pub from: Address,
    /// Who is called, or the contract that was created; none where the creation failed.
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
    /// Its own logs; none if it failed, or a call above it.
    pub logs: Vec<TraceLog>,
    /// The calls that it made.
    pub calls: Vec<TraceCall>,
    /// Number of logs of the transaction before it.
    first_log: usize,
}

impl TraceCall {
    /// Drops its logs and those of its calls. Calls that failed have none any more, so that each is looked at once.
    fn unlog(&mut self) {
        self.logs.clear();
        self.calls.iter_mut().filter(|call| call.error.is_none()).for_each(TraceCall::unlog);
    }
}

/// What an observer of an execution learns besides its instructions and calls.
pub(super) trait Observer {
    /// The transaction is to be refunded this gas before it begins: delegations of accounts that exist (EIP-7702).
    fn refunds(&mut self, _gas: u64) {}
}

impl Observer for () {}

impl Observer for Tracer {
    fn refunds(&mut self, gas: u64) {
        self.refund = i64::try_from(gas).unwrap_or(i64::MAX);
    }
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
    /// Number of logs so far, without those of calls that failed.
    logs: usize,
    /// Gas to refund before the current step, and when each open frame began.
    refund: i64,
    refund_outside: Vec<i64>,
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

    fn begin(&mut self, call: impl FnOnce() -> TraceCall) {
        self.refund_outside.push(self.refund);
        if self.settings.calls {
            // Calls are counted and dropped where they end, so that each end finds its beginning.
            self.open.push(TraceCall { first_log: self.logs, ..call() });
        }
    }

    fn end(&mut self, result: &InterpreterResult, created: Option<Address>) {
        self.refund_outside.pop();
        let Some(mut call) = self.open.pop() else { return };
        call.gas_used = result.gas.total_gas_spent();
        call.is_reverted = result.result.is_revert();
        if result.result.is_ok() {
            call.to = call.to.or(created);
        } else {
            call.error = Some(if call.is_reverted { "execution reverted" } else { failure(result.result) }.into());
            call.unlog();
            self.logs = call.first_log;
        }
        // What a halted frame leaves behind is no output: code that cannot be kept, for one.
        call.output = if call.error.is_none() || call.is_reverted { result.output.clone() } else { Bytes::new() };
        let size = 256 + call.input.len() + call.output.len();
        let size = size + call.logs.iter().map(|of| 160 + of.log.data.data.len()).sum::<usize>();
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
        self.refund = self.refund_outside.last().unwrap_or(&0) + interpreter.gas.refunded();
        if self.steps.len() >= self.settings.steps {
            self.is_cut = true;
            return;
        }
        let shown = self.settings;
        let stack = interpreter.stack.data();
        let size = 160 + if shown.stack { 32 * stack.len() } else { 0 };
        let memory = if shown.memory { interpreter.memory.size() } else { 0 };
        let returned = if shown.returned { interpreter.return_data.buffer().clone() } else { Bytes::new() };
        if !self.takes(size + memory + returned.len()) {
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
            refund: self.refund,
            account: interpreter.input.target_address,
            stack: if shown.stack { stack.to_vec() } else { Vec::new() },
            memory: interpreter.memory.slice(0..memory).to_vec(),
            returned,
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
            call.logs.push(TraceLog { log, position: call.calls.len(), number: self.logs });
            self.logs += 1;
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
        self.begin(|| {
            let value = (inputs.scheme != CallScheme::StaticCall).then(|| inputs.call_value());
            TraceCall { to: Some(to), value, ..opened(kind, from, inputs.gas_limit, inputs.input.bytes(context)) }
        });
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
        self.begin(|| {
            let call = opened(kind, inputs.caller(), inputs.gas_limit(), inputs.init_code().clone());
            TraceCall { value: Some(inputs.value()), ..call }
        });
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
        first_log: 0,
    }
}
