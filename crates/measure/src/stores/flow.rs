//! The search: Dijkstra's shortest paths over the instructions of all functions.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use iced_x86::{
    FlowControl, Formatter as _, Instruction, InstructionInfoFactory, IntelFormatter, Mnemonic,
    OpAccess, OpKind, Register,
};

use super::program::Program;
use super::{CannotAnalyse, End, Reading, Step, Stores, Way};

/// A place of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Node {
    /// Before an instruction.
    At(usize),
    /// At the return from a function.
    Return(usize),
}

/// What an instruction may do next.
#[derive(Default)]
struct Next {
    nodes: Vec<Node>,
    pops: bool,
    unknown: Option<&'static str>,
}

const CALL: &str = "a call that cannot be followed";
const JUMP: &str = "a jump through a pointer";
const RETURN: &str = "a return to callers that are not known";

struct Graph<'p> {
    program: &'p Program,
    queue: &'p HashSet<usize>,
    /// Where a function's direct calls return to.
    returns: HashMap<usize, Vec<usize>>,
    /// Functions that end by a jump to a function.
    tails: HashMap<usize, Vec<usize>>,
    reading: Reading,
}

pub(super) fn search(program: &Program, queue: &HashSet<usize>) -> Result<Stores, CannotAnalyse> {
    let mut graph = Graph {
        program,
        queue,
        returns: HashMap::new(),
        tails: HashMap::new(),
        reading: Reading::Likely,
    };
    let mut calls = 0;
    let mut starts = BTreeSet::new();
    for (at, instruction) in program.instructions.iter().enumerate() {
        let Some(target) = near_target(instruction) else { continue };
        let Some(called) = program.function_at(target) else { continue };
        let here = program.function_of(at);
        let start = match instruction.flow_control() {
            FlowControl::Call => {
                let Some(after) = program.instruction_at(instruction.next_ip()) else { continue };
                graph.returns.entry(called).or_default().push(after);
                Node::At(after)
            }
            // A jump to its own beginning is a loop; one to another function a call in its stead.
            _ if here == called => continue,
            _ => {
                graph.tails.entry(called).or_default().push(here);
                Node::Return(here)
            }
        };
        if queue.contains(&called) {
            calls += 1;
            starts.insert(start);
        }
    }
    let mut functions: Vec<String> =
        queue.iter().map(|&function| program.functions[function].name.clone()).collect();
    functions.sort();
    functions.dedup();
    if calls == 0 {
        return Err(CannotAnalyse::NeverCalled { functions });
    }
    let (likely, met) = graph.shortest(&starts);
    graph.reading = Reading::Certain;
    let (certain, _) = graph.shortest(&starts);
    let of_kind = |kind| met.iter().filter(|(_, unknown)| *unknown == kind).count();
    Ok(Stores {
        functions,
        calls,
        certain,
        likely,
        unknown_calls: of_kind(CALL),
        indirect_jumps: of_kind(JUMP),
        unknown_returns: of_kind(RETURN),
    })
}

fn near_target(instruction: &Instruction) -> Option<u64> {
    matches!(instruction.op0_kind(), OpKind::NearBranch64).then(|| instruction.near_branch_target())
}

/// The stores that an instruction makes for certain, and how many of them are a push's or a call's.
fn stores(instruction: &Instruction, info: &mut InstructionInfoFactory) -> (u64, u64) {
    // A repeated store may be repeated no times.
    if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
        return (0, 0);
    }
    let of_stack = |base| base == Register::RSP || base == Register::SP;
    let (mut all, mut on_stack) = (0, 0);
    for memory in info.info(instruction).used_memory() {
        if matches!(memory.access(), OpAccess::Write | OpAccess::ReadWrite) {
            all += 1;
            on_stack += u64::from(instruction.is_stack_instruction() && of_stack(memory.base()));
        }
    }
    (all, on_stack)
}

impl Graph<'_> {
    fn next(&self, node: Node) -> Next {
        match node {
            Node::At(at) => self.after(at),
            Node::Return(function) => self.after_return(function),
        }
    }

    fn after_return(&self, function: usize) -> Next {
        let back = self.returns.get(&function).into_iter().flatten().map(|&at| Node::At(at));
        let tails = self.tails.get(&function).into_iter().flatten().map(|&from| Node::Return(from));
        let nodes: Vec<Node> = back.chain(tails).collect();
        let known = !nodes.is_empty() && !self.program.functions[function].address_taken;
        Next { nodes, pops: false, unknown: (!known).then_some(RETURN) }
    }

    fn after(&self, at: usize) -> Next {
        let instruction = &self.program.instructions[at];
        let function = self.program.function_of(at);
        let mut next = Next::default();
        let fall = |next: &mut Next| {
            if at + 1 < self.program.functions[function].last {
                next.nodes.push(Node::At(at + 1));
            }
        };
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::XbeginXabortXend => fall(&mut next),
            // A system call returns.
            FlowControl::Interrupt if instruction.mnemonic() != Mnemonic::Int3 => fall(&mut next),
            FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => fall(&mut next),
            FlowControl::ConditionalBranch => {
                fall(&mut next);
                self.jump(instruction, function, &mut next);
            }
            FlowControl::UnconditionalBranch => self.jump(instruction, function, &mut next),
            FlowControl::Call => {
                let called = near_target(instruction).and_then(|to| self.program.function_at(to));
                match called {
                    Some(called) if self.queue.contains(&called) => next.pops = true,
                    Some(called) => {
                        next.nodes.push(Node::At(self.program.functions[called].first));
                    }
                    None => {
                        next.unknown = Some(CALL);
                        fall(&mut next);
                    }
                }
            }
            FlowControl::IndirectCall => {
                next.unknown = Some(CALL);
                fall(&mut next);
            }
            FlowControl::IndirectBranch => {
                next.unknown = Some(JUMP);
                next.nodes.push(Node::Return(function));
                next.nodes.extend(self.blocks(function).map(Node::At));
            }
            FlowControl::Return => next.nodes.push(Node::Return(function)),
            FlowControl::Interrupt | FlowControl::Exception => {}
        }
        next
    }

    fn jump(&self, instruction: &Instruction, function: usize, next: &mut Next) {
        let target = near_target(instruction);
        let at = target.and_then(|target| self.program.instruction_at(target));
        match at {
            None => {
                // Out of what has symbols, and perhaps back from there.
                next.unknown = Some(CALL);
                next.nodes.push(Node::Return(function));
            }
            Some(at) => {
                let to = self.program.function_of(at);
                let entry = self.program.functions[to].first == at;
                if entry && self.queue.contains(&to) {
                    next.pops = true;
                } else {
                    next.nodes.push(Node::At(at));
                }
            }
        }
    }

    /// Where a jump through a table may lead: what a branch leads to, and what nothing falls into.
    fn blocks(&self, function: usize) -> impl Iterator<Item = usize> {
        let function = &self.program.functions[function];
        let mut blocks = BTreeSet::new();
        for at in function.first..function.last {
            let instruction = &self.program.instructions[at];
            let ends = matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            );
            if ends && at + 1 < function.last {
                blocks.insert(at + 1);
            }
            let target =
                near_target(instruction).filter(|to| (function.start..function.end).contains(to));
            blocks.extend(target.and_then(|target| self.program.instruction_at(target)));
        }
        blocks.into_iter()
    }

    /// The way with the fewest stores from a start to a pop, and the unknowns that were met.
    fn shortest(&self, starts: &BTreeSet<Node>) -> (Option<Way>, BTreeSet<(Node, &'static str)>) {
        let mut info = InstructionInfoFactory::new();
        let mut best: HashMap<Node, (u64, Option<Node>)> = HashMap::new();
        let mut heap = BinaryHeap::new();
        let mut met = BTreeSet::new();
        for &start in starts {
            best.insert(start, (0, None));
            heap.push(Reverse((0, start)));
        }
        // The cheapest end so far; an end is reached after its instruction's own stores.
        let mut end: Option<(u64, Node, End)> = None;
        while let Some(Reverse((so_far, node))) = heap.pop() {
            if end.is_some_and(|(least, ..)| least <= so_far) && self.reading == Reading::Certain {
                break;
            }
            if best[&node].0 < so_far {
                continue;
            }
            let weight = match node {
                Node::At(at) => stores(&self.program.instructions[at], &mut info).0,
                Node::Return(_) => 0,
            };
            let reached = so_far + weight;
            let next = self.next(node);
            met.extend(next.unknown.map(|unknown| (node, unknown)));
            let lost = next.unknown.is_some() && self.reading == Reading::Certain;
            if (next.pops || lost) && end.is_none_or(|(least, ..)| reached < least) {
                end = Some((reached, node, if next.pops { End::Pop } else { End::Unknown }));
            }
            for to in next.nodes {
                if best.get(&to).is_none_or(|(least, _)| reached < *least) {
                    best.insert(to, (reached, Some(node)));
                    heap.push(Reverse((reached, to)));
                }
            }
        }
        let way = end.map(|(stores, last, end)| self.way(&best, stores, last, end));
        (way, met)
    }

    fn way(
        &self,
        best: &HashMap<Node, (u64, Option<Node>)>,
        all: u64,
        last: Node,
        end: End,
    ) -> Way {
        let mut nodes = vec![last];
        while let Some((_, Some(before))) = best.get(&nodes[nodes.len() - 1]) {
            nodes.push(*before);
        }
        let mut info = InstructionInfoFactory::new();
        let mut formatter = IntelFormatter::new();
        let (mut steps, mut on_stack) = (Vec::new(), 0);
        for node in nodes.into_iter().rev() {
            let Node::At(at) = node else { continue };
            let instruction = &self.program.instructions[at];
            let (stores, pushed) = stores(instruction, &mut info);
            on_stack += pushed;
            if stores == 0 && instruction.flow_control() == FlowControl::Next {
                continue;
            }
            let mut text = String::new();
            formatter.format(instruction, &mut text);
            let function = self.program.functions[self.program.function_of(at)].name.clone();
            let (address, unknown) = (instruction.ip(), self.after(at).unknown);
            steps.push(Step { address, function, instruction: text, stores, unknown });
        }
        Way { stores: all, on_stack, steps, end }
    }
}
