//! Litmus files: the field's tests have x86-TSO's verdicts; what is not understood is refused.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use poach_check::herd::{Answer, Test};
use poach_check::{Buffer, Config};

fn run(name: &str, config: &Config) -> Answer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus").join(name);
    let text = fs::read_to_string(path.with_extension("litmus")).expect("a file of this test's");
    let answer =
        Test::parse(&text).unwrap_or_else(|mistake| panic!("{name}:{mistake}")).run(config);
    assert!(answer.conclusive, "{name}: {:?}", answer.report.verdict);
    answer
}

/// A name, then `Ok` or not under TSO without a bound, TSO[1] and sequential consistency.
const VERDICTS: &[(&str, [bool; 3])] = &[
    ("SB", [true, true, false]),
    ("SB+mfences", [true, true, true]),
    ("SB+xchgs", [false, false, false]),
    ("MP", [false, false, false]),
    ("LB", [false, false, false]),
    ("IRIW", [false, false, false]),
    ("R", [true, true, false]),
    ("2+2W", [false, false, false]),
    ("n6", [true, true, false]),
    ("increments", [true, true, true]),
    ("lost-increment", [true, true, true]),
    ("spinlock", [true, true, true]),
    ("two-stores", [true, false, false]),
];

#[test]
fn the_fields_tests_have_the_fields_verdicts() {
    for (name, wanted) in VERDICTS {
        let machines = [Config::default(), Config::bounded(1, false), Config::sequential()];
        let found = machines.each_ref().map(|config| run(name, config).holds);
        assert_eq!(found, *wanted, "{name}");
    }
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus"));
    assert_eq!(files.expect("the directory").count(), VERDICTS.len());
}

#[test]
fn an_answer_reads_as_herds() {
    let text = run("SB", &Config::default()).text();
    let wanted = "Test SB Allowed
States 4
0:rax=0; 1:rax=0;
0:rax=0; 1:rax=1;
0:rax=1; 1:rax=0;
0:rax=1; 1:rax=1;
Ok
Witnesses
Positive: 1 Negative: 3
Condition exists (0:rax=0 /\\ 1:rax=0)
Observation SB Sometimes 1 3
";
    assert_eq!(text, wanted);
    let text = run("SB+mfences", &Config::default()).text();
    assert!(text.starts_with("Test SB+mfences Forbidden\nStates 3\n0:EAX=0; 1:EAX=1;\n"), "{text}");
    assert!(text.contains("Ok\nWitnesses\nPositive: 3 Negative: 0\n"), "{text}");
    assert!(text.ends_with("Observation SB+mfences Never 0 3\n"), "{text}");
    let text = run("increments", &Config::default()).text();
    assert!(text.contains("Test increments Required\nStates 1\n[x]=2; 0:rdi=x;\nOk\n"), "{text}");
    assert!(text.contains("Condition forall ([x]=2)\nObservation increments Always 1 0"), "{text}");
}

#[test]
fn instructions_compute_what_x86_computes() {
    for (lines, wanted) in [
        ("movl $5,%eax ; addl $3,%eax ; subl $1,%eax ;", "0:rax=7"),
        ("movq $-1,%rax ; movl %eax,%eax ;", "0:rax=4294967295"),
        ("movl $6,%eax ; andl $3,%eax ; orl $8,%eax ; xorl $1,%eax ;", "0:rax=11"),
        ("movq $5,%rax ; negq %rax ;", "0:rax=-5"),
        ("movq $0,%rax ; notq %rax ; decq %rax ;", "0:rax=-2"),
        ("movl $5,(x) ; movl $3,%eax ; lock xaddl %eax,(x) ;", "0:rax=5 /\\ [x]=8"),
        ("movl $5,(x) ; movl $3,%eax ; xaddl %eax,(x) ;", "0:rax=5 /\\ [x]=8"),
        ("movl $4,%eax ; movl $9,%ebx ; lock cmpxchgl %ebx,(x) ;", "0:rax=0 /\\ [x]=0"),
        ("movl $0,%eax ; movl $9,%ebx ; lock cmpxchgl %ebx,(x) ;", "0:rax=0 /\\ [x]=9"),
        ("movl $4,%eax ; xchgl %eax,(x) ;", "0:rax=0 /\\ [x]=4"),
        ("movl $1,(x) ; lock subl $3,(x) ; lock negl (x) ;", "[x]=2"),
        ("movl $1,(x) ; lock notl (x) ; lock andl $6,(x) ; lock orl $1,(x) ;", "[x]=7"),
        ("movq $x,%rax ; movl $7,(%rax) ;", "0:rax=x /\\ [x]=7"),
        ("movl $3,%eax ; l: ; addl $2,(x) ; decl %eax ; jne l ;", "[x]=6"),
        ("movl $-1,%eax ; cmpl $1,%eax ; jl less ; movl $1,(x) ; less: ; nop ;", "[x]=0"),
        ("movl $-1,%eax ; cmpl $1,%eax ; jb less ; movl $1,(x) ; less: ; ret ;", "[x]=1"),
        ("movl $6,%eax ; testl $1,%eax ; je even ; movl $1,(x) ; even: ;", "[x]=0"),
        ("movl $1,(x) ; ret ; movl $2,(x) ;", "[x]=1"),
    ] {
        let text = format!("X86_64 one\n{{ }}\nP0 ;\n{lines}\nforall ({wanted})\n");
        let test = Test::parse(&text).unwrap_or_else(|mistake| panic!("{lines}: {mistake}"));
        let answer = test.run(&Config { buffer: Buffer::Bounded(2), ..Config::default() });
        assert!(answer.holds && answer.conclusive, "{lines}: {}", answer.text());
        assert_eq!(answer.states.len(), 1, "{lines}");
    }
}

#[test]
fn conditions_are_understood() {
    for (condition, holds) in [
        ("exists (0:rax=1)", true),
        ("exists 0:rax=0 /\\ [x]=1", true),
        ("forall ([x]=1 /\\ (0:rax=0 \\/ 0:rax=1))", true),
        ("exists (~([x]=1))", false),
        ("exists not ([x]=1) \\/ true", true),
        ("~exists ([x]!=1)", true),
        ("filter ([x]=2) exists (true)", false),
        ("filter (0:rax=1) forall (0:rax=1)", true),
        ("locations [0:rax; x; y;] exists (false)", false),
    ] {
        let text = format!(
            "X86_64 one\n{{ }}\nP0 | P1 ;\nmovl (x),%eax | movl $1,(x) ;\n{condition}\n(* the end *)"
        );
        let test = Test::parse(&text).unwrap_or_else(|mistake| panic!("{condition}: {mistake}"));
        assert_eq!(test.run(&Config::default()).holds, holds, "{condition}");
    }
}

#[test]
fn what_is_not_understood_is_refused_where_it_stands() {
    let columns = |cell: &str| format!("X86_64 t\n{{ }}\n P0 ;\n {cell} ;\nexists (true)");
    for (text, place, says) in [
        ("AArch64 t\n{ }".to_owned(), "1:1", "AArch64"),
        ("X86\n{ }".to_owned(), "1:1", "no name"),
        ("X86_64 t\nno brace".to_owned(), "1:9", "initial state"),
        ("X86_64 t\n{ x=what!; }".to_owned(), "2:9", "found '!'"),
        ("X86_64 t\n{ 9:rax=1; }".to_owned(), "2:3", "is no thread"),
        ("X86_64 t\n{ 0:rzz=1; }".to_owned(), "2:5", "is no register"),
        ("X86_64 t\n{ }\nP1 ;".to_owned(), "3:1", "expected the column P0"),
        ("X86_64 t\n{ }\nP0 ;\n nop | nop ;\nexists (true)".to_owned(), "4:7", "more columns"),
        ("X86_64 t\n{ }\nP0 ;\n nop".to_owned(), "4:2", "';'"),
        (columns("movntil $1,(x)"), "4:2", "movntil is not modelled"),
        (columns("movb $1,(x)"), "4:2", "8 or 16 bits"),
        (columns("movl (x),(y)"), "4:2", "one operand in memory"),
        (columns("movl $1"), "4:2", "2 operands"),
        (columns("movl $1,4(x)"), "4:11", "offsets"),
        (columns("movl $1,%xmm0"), "4:11", "%xmm0"),
        (columns("lock movl $1,(x)"), "4:7", "cannot be locked"),
        (columns("jmp away"), "4:6", "no label away"),
        (columns("movl %eax,$1"), "4:2", "to a number"),
        (columns("movl $99999999999999999999,(x)"), "4:8", "64 bits"),
        ("X86_64 t\n{ }\nP0 ;\n nop ;\nexists (x=1".to_owned(), "5:12", "\")\""),
        ("X86_64 t\n{ }\nP0 ;\n nop ;\nwhenever (x=1)".to_owned(), "5:1", "';'"),
        ("X86_64 t\n{ }\nP0 ;\n nop ;\nexists (x=1) and more".to_owned(), "5:14", "more after"),
    ] {
        let mistake = Test::parse(&text).expect_err(&text);
        assert!(mistake.what.contains(says), "{text}: {mistake}");
        assert_eq!(format!("{}:{}", mistake.line, mistake.column), place, "{text}: {mistake}");
    }
}

/// Whatever is cut off or broken in a file, the answer is a test or a mistake, never a panic.
#[test]
fn no_broken_file_panics() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    for file in fs::read_dir(directory).expect("the directory") {
        let text = fs::read_to_string(file.expect("an entry").path()).expect("a text");
        for at in 0..text.len() {
            let _ = Test::parse(&text[..at]);
            for letter in ["%", "(", "é", "9", ";", "*)"] {
                let broken = format!("{}{letter}{}", &text[..at], &text[at + 1..]);
                let _ = Test::parse(&broken);
            }
        }
    }
}
