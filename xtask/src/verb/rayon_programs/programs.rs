//! The programs: what is asked for, with what input, and what two runs must agree in.

/// A program that its authors published, and a task for it.
pub(super) struct Program {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// The name of its executable.
    pub(super) executable: &'static str,
    /// More arguments of `cargo build`.
    pub(super) build: &'static str,
    /// What it does here.
    pub(super) task: &'static str,
    /// Its arguments, separated by blanks. `{threads}`, `{input}` and `{output}` are filled in; of
    /// an argument that ends with `/*`, one is made for each file below that directory.
    pub(super) arguments: &'static str,
    pub(super) answer: Answer,
}

/// What a program answers with, which both cores must agree in.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Answer {
    /// What it prints.
    Text,
    /// The lines that it prints, whose order the program leaves open, but those that begin with
    /// this.
    Lines { except: &'static str },
    /// The files that it writes to the output directory.
    Files,
    /// What it makes of the files in the output directory, into which this directory of the input
    /// is copied before.
    Changes { of: &'static str },
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        package: "b3sum",
        version: "1.8.7",
        executable: "b3sum",
        build: "",
        task: "hashes a file of 256 MiB",
        arguments: "--num-threads {threads} {input}/large",
        answer: Answer::Text,
    },
    Program {
        package: "tokei",
        version: "15.0.0",
        executable: "tokei",
        build: "",
        task: "counts the lines of 4,000 files of code",
        arguments: "--files --sort code {input}/code",
        answer: Answer::Lines { except: "#" },
    },
    Program {
        package: "parallel-disk-usage",
        version: "0.24.0",
        executable: "pdu",
        build: "",
        task: "the sizes of 4,000 files",
        arguments: "--threads {threads} --no-sort --quantity apparent-size --total-width 100 {input}/code",
        answer: Answer::Lines { except: "#" },
    },
    Program {
        package: "du-dust",
        version: "1.2.7",
        executable: "dust",
        build: "",
        task: "the largest of 4,000 files",
        arguments: "--threads {threads} --no-colors --no-progress --apparent-size --terminal-width 100 {input}/code",
        answer: Answer::Lines { except: "#" },
    },
    Program {
        package: "diskus",
        version: "0.9.0",
        executable: "diskus",
        build: "",
        task: "the size of 4,000 files together",
        arguments: "--threads {threads} --apparent-size {input}/code",
        answer: Answer::Text,
    },
    Program {
        package: "sd",
        version: "1.0.0",
        executable: "sd",
        build: "",
        task: "replaces a pattern in 4,000 files",
        arguments: r"let\s+(\w+)\s*= let\x20mut\x20$1\x20= {output}/*",
        answer: Answer::Changes { of: "code" },
    },
    Program {
        package: "fclones",
        version: "0.35.0",
        executable: "fclones",
        build: "",
        task: "finds the equal ones of 4,000 files",
        arguments: "--quiet group --threads {threads} {input}/code",
        answer: Answer::Lines { except: "#" },
    },
    Program {
        package: "oxipng",
        version: "10.2.1",
        executable: "oxipng",
        build: "",
        task: "compresses six pictures",
        arguments: "--quiet --opt 2 --threads {threads} --dir {output} {input}/pictures/*",
        answer: Answer::Files,
    },
    Program {
        package: "dssim",
        version: "3.5.1",
        executable: "dssim",
        build: "",
        task: "compares a picture with five others",
        arguments: "{input}/pictures/*",
        answer: Answer::Text,
    },
    Program {
        package: "skani",
        version: "0.4.0",
        executable: "skani",
        build: "",
        task: "compares each of 24 genomes with each",
        arguments: "triangle -t {threads} {input}/genomes/*",
        answer: Answer::Text,
    },
];
