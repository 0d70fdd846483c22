//! Documents hold what was found, whatever the names are; and what is read back is the same.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::collections::BTreeMap;
use std::path::Path;

use poach_scan::document::{self, Format, ImportError, read, read_within};
use poach_scan::report::Extent;
use poach_scan::{Control, Kind, Link, Node, Options, Scan, scan};
use serde_json::Value;

use crate::rig;

fn scanned(path: &Path) -> Scan {
    let options = Options { keep_files: true, ..Options::default() };
    scan(&[path.into()], &options, &Control::new()).expect("threads can be had")
}

fn grown() -> (tempfile::TempDir, Scan) {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    let scan = scanned(tree.path());
    (tree, scan)
}

fn written(format: Format, scan: &Scan, extent: &Extent) -> Vec<u8> {
    let mut out = Vec::new();
    format.write(scan, extent, &mut out).expect("a vector can be written to");
    out
}

/// What is known of each entry, by path.
type Portrait = BTreeMap<Vec<u8>, (Kind, u64, u64, u64, bool)>;

fn portrait(scan: &Scan) -> Portrait {
    let mut portrait = Portrait::new();
    let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
    while let Some(node) = waiting.pop() {
        let (apparent, disk) = (node.apparent_bytes(), node.disk_bytes());
        let facts = (node.kind(), apparent, disk, node.entries(), node.counts_elsewhere());
        assert!(portrait.insert(node.path(), facts).is_none(), "a path twice");
        waiting.extend(node.directories().chain(node.files()));
    }
    portrait
}

fn bytes_of(row: &Value, member: &str) -> Vec<u8> {
    let hex = row[&format!("{member}_hex")].as_str().filter(|hex| !hex.is_empty());
    match hex {
        None => row[member].as_str().expect("a name").into(),
        Some(hex) => unhex(hex),
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&hex[2 * at..][..2], 16);
    (0..hex.len() / 2).map(|at| digits(at).expect("hexadecimal")).collect()
}

fn kind_of(text: &str) -> Kind {
    match text {
        "directory" => Kind::Directory,
        "file" => Kind::File,
        "symlink" => Kind::Symlink,
        "other" => Kind::Other,
        _ => panic!("there is no kind {text}"),
    }
}

fn row_of(row: &Value) -> (Kind, u64, u64, u64, bool) {
    let number = |member: &str| row[member].as_u64().expect("a number");
    (
        kind_of(row["kind"].as_str().expect("a kind")),
        number("apparent_bytes"),
        number("disk_bytes"),
        number("entries"),
        row["counted_elsewhere"].as_bool().unwrap_or(false),
    )
}

fn is_safe(text: &str) -> bool {
    !text.chars().any(|it| it != '\n' && it.is_control() || it == '\u{202e}')
}

#[test]
fn a_document_is_read_within_a_limit_of_memory_or_refused() {
    let entries = (0..9000).map(|number| format!(",{{\"name\":\"a-name-{number}\"}}"));
    let export = format!("[1,2,{{}},[{{\"name\":\"/r\"}}{}]]", entries.collect::<String>());
    let scan = read(export.as_bytes()).expect("an export");
    // What vectors hold of the entries (24 bytes) and their names (12 bytes), twice.
    let least = 9000 * 2 * (24 + 12);
    for format in [Format::Ncdu, Format::NcduBinary, Format::Snapshot] {
        let out = written(format, &scan, &Extent::default());
        for limit in [0, 1000, 100_000, least] {
            let refused = read_within(&out[..], limit).expect_err("a small limit");
            assert!(matches!(refused, ImportError::Memory(it) if it == limit), "{refused}");
            assert!(refused.to_string().contains(&limit.to_string()), "{refused}");
        }
        let again = read_within(&out[..], 4 * least).expect("a limit that suffices");
        assert_eq!(portrait(&again), portrait(&scan), "{format:?}");
    }
}

#[test]
fn json_has_every_entry_and_says_how_it_was_made() {
    let (tree, scan) = grown();
    let out = written(Format::Json, &scan, &Extent::default());
    let text = std::str::from_utf8(&out).expect("JSON is UTF-8");
    assert!(is_safe(text));
    let document: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!((&document["schema"], &document["complete"]), (&1.into(), &true.into()));
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
    assert!(document["taken"].as_u64().is_some_and(|taken| taken > 1_700_000_000));
    let options = &document["options"];
    assert_eq!((&options["all"], &options["by"]), (&true.into(), &"disk".into()));
    assert_eq!((&options["depth"], &options["top"]), (&Value::Null, &Value::Null));

    let rows = document["tree"].as_array().expect("a tree");
    let mut found = Portrait::new();
    let mut paths: Vec<Vec<u8>> = Vec::new();
    for row in rows {
        let name = bytes_of(row, "name");
        let path = match row["parent"].as_u64() {
            None => name,
            Some(parent) => {
                let separator = std::path::MAIN_SEPARATOR_STR.as_bytes();
                [&paths[parent as usize][..], separator, &name].concat()
            }
        };
        let values = row_of(row);
        // The members that stand only if there is something to say.
        let stands = |member: &str| row.get(member).is_some();
        assert_eq!(stands("counted_elsewhere"), values.4);
        assert!(!["error", "modified", "mode", "owner", "group"].into_iter().any(stands));
        found.insert(path.clone(), values);
        paths.push(path);
    }
    assert!(!["no_sizes", "min_size"].iter().any(|it| options.get(it).is_some()));
    // Its members are in this order, whatever a reader makes of it.
    let at = |member: &str| text.find(&format!("\"{member}\":")).expect("it is there");
    assert!(at("totals") < at("tree"));
    assert_eq!(paths[0], tree.path().as_os_str().as_encoded_bytes());
    assert_eq!(found, portrait(&scan));
    assert_eq!(found.values().filter(|row| row.4).count(), 2, "two more names of one file");

    // A limited document says so, and its totals are of the whole.
    let cut = Extent { depth: Some(1), top: Some(3), ..Extent::default() };
    let cut: Value = serde_json::from_slice(&written(Format::Json, &scan, &cut)).expect("JSON");
    assert_eq!((&cut["complete"], &cut["options"]["top"]), (&false.into(), &3.into()));
    assert_eq!(cut["options"]["depth"], 1);
    assert_eq!(cut["tree"].as_array().map(Vec::len), Some(4));
    assert_eq!(cut["totals"], document["totals"]);
}

#[test]
fn each_line_of_ndjson_stands_for_itself() {
    let (_tree, scan) = grown();
    let out = written(Format::Ndjson, &scan, &Extent::default());
    let text = std::str::from_utf8(&out).expect("JSON is UTF-8");
    assert!(is_safe(text));
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!((&lines[0]["type"], &lines[0]["schema"]), (&"scan".into(), &1.into()));
    assert_eq!(lines[0]["totals"]["files"], scan.totals.files);
    let last = lines.last().expect("an end");
    assert_eq!(last["type"], "end");
    let entries = lines.iter().filter(|line| line["type"] == "entry");
    let found: Portrait = entries.map(|line| (bytes_of(line, "path"), row_of(line))).collect();
    assert_eq!(last["entries"], found.len());
    assert_eq!(found, portrait(&scan));
}

#[test]
fn a_record_of_csv_is_one_line_whatever_the_name() {
    let (_tree, scan) = grown();
    let out = written(Format::Csv, &scan, &Extent::default());
    let text = std::str::from_utf8(&out).expect("as its documentation says");
    assert!(is_safe(text));
    let mut reader = csv::Reader::from_reader(&out[..]);
    let columns = "path,kind,depth,apparent_bytes,disk_bytes,entries,counted_elsewhere,error,path_hex,modified,mode,owner,group";
    assert_eq!(text.lines().next(), Some(columns));
    let mut found = Portrait::new();
    for record in reader.records() {
        let record = record.expect("a record");
        let number = |column: usize| record[column].parse::<u64>().expect("a number");
        let path = if record[8].is_empty() { record[0].into() } else { unhex(&record[8]) };
        let row = (kind_of(&record[1]), number(3), number(4), number(5), &record[6] == "true");
        found.insert(path, row);
    }
    assert_eq!(found.len() + 1, text.lines().count());
    assert_eq!(found, portrait(&scan));
}

#[test]
fn an_export_of_ncdu_and_a_snapshot_are_read_back_as_they_were() {
    let (tree, scan) = grown();
    for format in [Format::Ncdu, Format::NcduBinary, Format::Snapshot] {
        let out = written(format, &scan, &Extent::default());
        let again = read(&out[..]).unwrap_or_else(|error| panic!("{format:?}: {error}"));
        let (mut totals, mut expected) = (again.totals, scan.totals);
        let (mut seen, mut wanted) = (portrait(&again), portrait(&scan));
        if format != Format::Snapshot {
            // It does not tell what is neither a file, nor a directory, nor a link: neither do we.
            (totals.other, expected.other) = (0, 0);
            for portrait in [&mut seen, &mut wanted] {
                portrait.retain(|_, row| row.0 != Kind::Other);
            }
        }
        assert_eq!(totals, expected, "{format:?}");
        assert_eq!(seen, wanted, "{format:?}");
        // ncdu's binary format does not tell when it was taken.
        assert_eq!(again.taken, if format == Format::NcduBinary { 0 } else { scan.taken });
        // And what is written again is the same.
        assert_eq!(written(format, &again, &Extent::default()), out, "{format:?}");
    }
    assert!(Path::new(tree.path()).exists());
}

#[test]
fn several_paths_and_a_file_are_kept_apart() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    std::fs::create_dir(tree.path().join("a")).expect("a directory");
    std::fs::write(tree.path().join("b"), b"12345").expect("a file");
    let paths = ["a", "b", "gone"].map(|name| tree.path().join(name));
    let options = Options { keep_files: true, ..Options::default() };
    let scan = scan(&paths, &options, &Control::new()).expect("threads can be had");
    let snapshot = written(Format::Snapshot, &scan, &Extent::default());
    let again = read(&snapshot[..]).expect("a snapshot");
    assert_eq!((portrait(&again), &again.errors), (portrait(&scan), &scan.errors));
    assert_eq!((again.totals, again.errors.len()), (scan.totals, 1));

    let mut binary = Vec::new();
    document::ncdu_binary(&scan, &mut binary).expect("memory");
    for ncdu in [written(Format::Ncdu, &scan, &Extent::default()), binary] {
        let again = read(&ncdu[..]).expect("an export");
        let root = again.tree.roots().next().expect("one root");
        assert_eq!((root.name(), root.entries()), (&b"(several paths)"[..], 2));
        assert_eq!(root.apparent_bytes(), scan.totals.apparent_bytes);
    }
}

#[test]
fn a_tree_of_three_thousand_levels_goes_through_every_format() {
    let mut export = b"[1,2,{\"progname\":\"test\"}".to_vec();
    for level in 0..3000 {
        export.extend(format!(",\n[{{\"name\":\"d{level}\",\"asize\":1,\"dsize\":2}}").bytes());
    }
    export.extend(b",{\"name\":\"file\",\"asize\":5}");
    export.extend(b"]".repeat(3001));
    let scan = read(&export[..]).expect("an export");
    assert_eq!((scan.totals.directories, scan.totals.files), (3000, 1));
    assert_eq!((scan.totals.apparent_bytes, scan.totals.disk_bytes), (3005, 6000));
    for format in Format::ALL {
        assert!(!written(format, &scan, &Extent::default()).is_empty(), "{format:?}");
    }
    let snapshot = written(Format::Snapshot, &scan, &Extent::default());
    assert_eq!(read(&snapshot[..]).expect("a snapshot").totals, scan.totals);
}

#[test]
fn what_ncdu_says_of_an_entry_is_understood() {
    let export =
        br#" [1, 2, {"progname":"ncdu","progver":"1.18","timestamp":1700000000, "x": [{}]},
        [{"name":"/r\u006fot","asize":4096,"dsize":4096,"dev":7},
         {"name":"one","asize":10,"dsize":512,"ino":5,"hlnkc":true,"nlink":2},
         {"name":"two","asize":10,"dsize":512,"ino":5,"hlnkc":true,"nlink":2},
         {"name":"far","asize":10,"dsize":512,"ino":5,"hlnkc":true,"nlink":2,"dev":8},
         {"name":"link","notreg":true,"mode":41471,"asize":3},
         {"name":"pipe","notreg":true},
         {"name":"other-fs","excluded":"othfs"},
         [{"name":"proc","excluded":"kernfs"},{"name":"inside","asize":1000}],
         [{"name":"locked","read_error":true,"asize":4096}],
         {"name":"raw RAW"}
        ]]
    "#;
    let at = export.windows(3).position(|it| it == b"RAW").expect("it stands there");
    let mut export = export.to_vec();
    export[at..at + 3].copy_from_slice(b"\xff\xc3(");
    let scan = read(&export[..]).expect("an export");
    let totals = &scan.totals;
    assert_eq!((totals.directories, totals.files, totals.symlinks, totals.other), (2, 4, 1, 1));
    assert_eq!((totals.apparent_bytes, totals.disk_bytes), (8192 + 10 + 10 + 3, 4096 + 1024));
    assert_eq!(scan.errors.len(), 1);
    let native = |path: &[u8]| {
        let separator = std::path::MAIN_SEPARATOR as u8;
        let below = path[1..].iter().map(|&byte| if byte == b'/' { separator } else { byte });
        [&path[..1], &below.collect::<Vec<u8>>()].concat()
    };
    assert_eq!(scan.errors[0].path, native(b"/root/locked"));
    assert_eq!(scan.taken, 1_700_000_000);
    assert!(portrait(&scan).contains_key(&native(b"/root/raw \xff\xc3(")));
}

/// One rule for every time that 64 bits hold, through each format and back.
#[test]
fn a_time_is_the_same_in_every_format() {
    let mut random = fastrand::Rng::with_seed(8);
    let edges = [0, 1, -1, i64::MIN, i64::MAX, i64::MIN + 1, 1 << 47, -(1 << 47), 1 << 62];
    let times: Vec<i64> =
        edges.into_iter().chain((0..500).map(|_| random.i64(..) >> random.u32(..64))).collect();
    let items: Vec<String> = times
        .iter()
        .enumerate()
        .map(|(at, time)| {
            // As it is, or as ncdu writes it.
            let shown = if at % 2 == 0 { time.to_string() } else { (*time as u64).to_string() };
            format!(",{{\"name\":\"{at}\",\"mtime\":{shown}}}")
        })
        .collect();
    let export =
        format!("\u{feff}[1,2,{{\"timestamp\":-1.5}},[{{\"name\":\"r\"}}{}]]", items.concat());
    let modified = |scan: &Scan| -> Vec<i64> {
        let root = scan.tree.roots().next().expect("a root");
        let mut found: Vec<(usize, i64)> = root
            .files()
            .map(|file| {
                let at =
                    std::str::from_utf8(file.name()).expect("a number").parse().expect("a number");
                (at, file.facts().expect("they were kept").modified())
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, time)| time).collect()
    };
    let scan = read(export.as_bytes()).expect("an export");
    assert_eq!(modified(&scan), times);
    for format in [Format::Ncdu, Format::Snapshot] {
        let again = read(&written(format, &scan, &Extent::default())[..]).expect("a document");
        assert_eq!(modified(&again), times, "{format:?}");
    }
    let told = |rows: Vec<(String, i64)>| {
        let at = |name: &str| {
            name.rsplit(['/', '\\']).next().and_then(|name| name.parse::<usize>().ok())
        };
        let mut rows: Vec<_> =
            rows.into_iter().filter_map(|(name, time)| Some((at(&name)?, time))).collect();
        rows.sort_unstable();
        assert_eq!(rows.into_iter().map(|(_, time)| time).collect::<Vec<_>>(), times);
    };
    let row = |row: &Value, name: &str| {
        let name = row[name].as_str().expect("a name").to_owned();
        (name, row["modified"].as_i64().expect("a number"))
    };
    let json: Value =
        serde_json::from_slice(&written(Format::Json, &scan, &Extent::default())).expect("JSON");
    told(json["tree"].as_array().expect("a tree").iter().map(|it| row(it, "name")).collect());
    let ndjson =
        String::from_utf8(written(Format::Ndjson, &scan, &Extent::default())).expect("UTF-8");
    let lines = ndjson.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    told(lines.filter(|it| it["type"] == "entry").map(|it| row(&it, "path")).collect());
    let csv = String::from_utf8(written(Format::Csv, &scan, &Extent::default())).expect("UTF-8");
    let cells = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    told(cells.map(|it| (it[0].to_owned(), it[9].parse().expect("a number"))).collect());

    // Values that other programs write: fractions, and numbers beyond all times.
    let others = r#"[1,2,{},[{"name":"r"},{"name":"0","mtime":-0.5},{"name":"1","mtime":1.9e3},
        {"name":"2","mtime":1e300},{"name":"3","mtime":-99999999999999999999}]]"#;
    let scan = read(others.as_bytes()).expect("an export");
    assert_eq!(modified(&scan), [-1, 1900, i64::MAX, i64::MIN]);
}

/// Documents that are small and deep: read in time and memory that grow with what they hold, or
/// refused.
#[test]
fn a_bomb_is_refused_or_takes_what_it_holds() {
    const DEPTH: usize = 100_000;
    let export = |item: &dyn Fn(usize) -> String| {
        let levels: String = (0..DEPTH).map(item).collect();
        format!("[1,2,{{}}{levels}{}]", "]".repeat(DEPTH))
    };
    // The path of each failure is as long as the failure is deep.
    let unread = export(&|at| format!(",[{{\"name\":\"{}\",\"read_error\":true}}", at % 10));
    let error = read(unread.as_bytes()).expect_err("it is a bomb").to_string();
    assert!(error.contains("their paths") && error.contains("at byte "), "{error}");
    // And so is each name of a file that has several.
    let linked = export(&|at| {
        let names = [0, 1].map(|name| {
            let inode = (at + name * DEPTH / 2) % DEPTH;
            format!(",{{\"name\":\"{name}\",\"asize\":1,\"ino\":{inode},\"hlnkc\":true}}")
        });
        format!(",[{{\"name\":\"d\"}}{}", names.concat())
    });
    let scan = read(linked.as_bytes()).expect("an export");
    assert_eq!((scan.totals.files, scan.totals.apparent_bytes), (2 * DEPTH as u64, DEPTH as u64));
    let again = written(Format::Snapshot, &scan, &Extent::default());
    assert_eq!(read(&again[..]).expect("a snapshot").totals, scan.totals);
    let long = format!("[1,2,{{}},[{{\"name\":\"r\"}},{{\"name\":\"{}\"}}]]", "n".repeat(1 << 16));
    assert!(read(long.as_bytes()).expect_err("no system has it").to_string().contains("65,535"));
}

#[test]
fn no_cell_of_csv_is_a_formula() {
    for name in ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\u{ff1d}1", "\\t=1", "\\r=1"] {
        let export =
            format!("[1,2,{{}},[{{\"name\":\"{name}\"}},{{\"name\":\"x\",\"read_error\":true}}]]");
        let mut scan = read(export.as_bytes()).expect("an export");
        scan.errors[0].message = "=1\nfake".to_owned();
        let csv =
            String::from_utf8(written(Format::Csv, &scan, &Extent::default())).expect("UTF-8");
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 3, "{csv}");
        for line in &lines[1..] {
            let first = line.trim_start_matches('"').chars().next();
            assert!(matches!(first, Some('\'' | '\\')), "{line}");
        }
        assert!(
            lines[1].contains(
                &name
                    .replace("\\t", "\t")
                    .replace("\\r", "\r")
                    .bytes()
                    .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
            ),
            "{csv}"
        );
        assert!(lines[2].contains(r",'=1\nfake,"), "{csv}");
    }
}

#[test]
fn a_document_that_was_cut_or_changed_is_refused() {
    let (_tree, scan) = grown();
    for format in [Format::Ncdu, Format::NcduBinary, Format::Snapshot] {
        let out = written(format, &scan, &Extent::default());
        let last = out.iter().rposition(|byte| !byte.is_ascii_whitespace()).expect("not empty");
        let mut random = fastrand::Rng::with_seed(11);
        let cuts = (0..40).map(|_| random.usize(..last)).chain([0, 1, 7, 8, 11, 12, 20, last]);
        for cut in cuts.filter(|&cut| cut <= last) {
            let error = read(&out[..cut]).expect_err("it was cut");
            assert!(
                matches!(error, ImportError::Damaged { .. } | ImportError::Unknown(_)),
                "{format:?} cut at {cut}: {error}"
            );
        }
        let mut longer = out.clone();
        longer.extend(b"x");
        assert!(matches!(read(&longer[..]), Err(ImportError::Damaged { .. })), "{format:?}");
    }
    let out = written(Format::Snapshot, &scan, &Extent::default());
    let (expected, mut refused) = (portrait(&scan), 0);
    for at in 0..out.len() {
        let mut changed = out.clone();
        changed[at] ^= 1 << (at % 8);
        match read(&changed[..]) {
            Err(ImportError::Damaged { .. } | ImportError::Unknown(_)) => refused += 1,
            // Of gzip's header the time and the system, and of its data the bits that fill the last
            // byte up, say nothing of the contents.
            Ok(same) => assert_eq!(portrait(&same), expected, "byte {at} was changed"),
            Err(error) => panic!("byte {at} was changed: {error}"),
        }
    }
    assert!(refused + 20 > out.len(), "{refused} of {}", out.len());
}

/// Bytes that somebody made up, with a checksum that is right: a scan or an error, and no panic.
#[test]
fn what_was_made_up_is_a_scan_or_an_error() {
    use std::io::{Read as _, Write as _};
    let tree = tempfile::tempdir().expect("a directory for the test");
    std::fs::create_dir_all(tree.path().join("a/b")).expect("directories");
    std::fs::write(tree.path().join("a/b/one"), b"12345").expect("a file");
    std::fs::hard_link(tree.path().join("a/b/one"), tree.path().join("two")).expect("a link");
    let scan = scanned(tree.path());
    let export = written(Format::Ncdu, &scan, &Extent::default());
    let snapshot = written(Format::Snapshot, &scan, &Extent::default());
    let (start, contents) = snapshot.split_at(12);
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(contents).read_to_end(&mut plain).expect("gzip");
    let mut random = fastrand::Rng::with_seed(5);
    let (mut scans, mut errors) = (0, 0);
    for round in 0..6000 {
        let mut bytes = if round % 2 == 0 { export.clone() } else { plain.clone() };
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..4) {
                0 => bytes[at] = random.u8(..),
                1 => bytes[at] = b"[]{},\"0\x01\x08"[random.usize(..9)],
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[random.usize(..bytes.len())]),
            }
        }
        if round % 2 == 1 {
            let mut gzip =
                flate2::write::GzEncoder::new(start.to_vec(), flate2::Compression::fast());
            gzip.write_all(&bytes).expect("a vector can be written to");
            bytes = gzip.finish().expect("a vector can be written to");
        }
        match read(&bytes[..]) {
            Err(_) => errors += 1,
            Ok(scan) => {
                scans += 1;
                for format in Format::ALL {
                    // A path of a megabyte is refused by a snapshot.
                    let _ = format.write(&scan, &Extent::default(), &mut Vec::new());
                }
            }
        }
    }
    assert!(scans > 300 && errors > 300, "{scans} scans, {errors} errors: seed 5");
}

#[test]
fn what_is_no_document_is_named() {
    let cases: [(&[u8], &str); 14] = [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"{\"schema\":1}", "neither a snapshot"),
        (b"\x28\xb5\x2f\xfd....", "zstd"),
        (b"\xbfncduEX1", "binary export"),
        (b"[2,0,{},[{\"name\":\"a\"}]]", "major version is 2"),
        (b"[1,2,{},[{\"name\":\"a\"}]", "ends where `]`"),
        (b"[1,2,{},[{\"name\":\"a\"},7]]", "an entry is expected where `7`"),
        (b"[1,2,{},[{\"asize\":1}]]", "missing field `name`"),
        (b"[1,2,{},[{\"name\":\"a\",\"asize\":-1}]]", "invalid value"),
        (b"[1,2,{},[{\"name\":\"a\\u0000b\"}]]", "NUL"),
        (b"[1,2,{},{\"name\":\"a\"}]", "`[` is expected"),
        (b"[1,2,{},[{\"name\":\"a\"}]] [", "follows its end"),
        (b"\x89POACH\r\n\x02\0\0\0", "version is 2"),
    ];
    for (document, named) in cases {
        let error = read(document).expect_err("it is none").to_string();
        assert!(error.contains(named), "{:?}: {error}", document.escape_ascii().to_string());
    }
    // A bracket is a byte, and none of them a frame on the stack.
    let deep = [&b"[1,2,{},"[..], &b"[{\"name\":\"a\"},".repeat(300_000)].concat();
    assert!(matches!(read(&deep[..]), Err(ImportError::Damaged { .. })));
}

#[test]
fn what_holds_everything_wants_a_scan_with_files() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let scan = scan(&[tree.path().into()], &Options::default(), &Control::new()).expect("a scan");
    for format in Format::ALL {
        let written = format.write(&scan, &Extent::default(), &mut Vec::new());
        assert_eq!(written.is_err(), format.is_whole(), "{format:?}");
    }
    let mut out = Vec::new();
    assert!(
        document::ncdu(&scan, &mut out).is_err() && document::snapshot(&scan, &mut out).is_err()
    );
    assert!(document::html(&scan, Extent::default().measure, &mut out).is_err());
    document::json(&scan, &Extent::default(), &mut out).expect("a vector can be written to");
    document::ndjson(&scan, &Extent::default(), &mut out).expect("a vector can be written to");
    document::csv(&scan, &Extent::default(), &mut out).expect("a vector can be written to");
}

#[test]
fn facts_that_were_kept_go_through_every_format() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    // The time of a directory is the user's to set on Unix alone.
    let name = if cfg!(windows) { "outer-0/inner-0/file-1" } else { "outer-0" };
    let old = std::fs::File::options().read(true).write(cfg!(windows)).open(tree.path().join(name));
    let old = old.expect("it is there");
    let long_ago = std::time::SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(77);
    old.set_modified(long_ago).expect("it is ours");
    let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
    let scan = scan(&[tree.path().into()], &options, &Control::new()).expect("a scan");
    let facts = |scan: &Scan| {
        let mut facts = BTreeMap::new();
        let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
        while let Some(node) = waiting.pop() {
            facts.insert(node.path(), node.facts().expect("they were kept"));
            waiting.extend(node.directories().chain(node.files()));
        }
        facts
    };
    let expected = facts(&scan);
    assert!(expected.values().any(|it| it.modified() == -77));
    for format in [Format::Ncdu, Format::Snapshot] {
        let out = written(format, &scan, &Extent::default());
        let again = read(&out[..]).unwrap_or_else(|error| panic!("{format:?}: {error}"));
        assert_eq!(facts(&again), expected, "{format:?}");
        assert!(again.options.keep_facts);
    }
    let json: Value =
        serde_json::from_slice(&written(Format::Json, &scan, &Extent::default())).expect("JSON");
    let root = &json["tree"][0];
    let of_root = expected[tree.path().as_os_str().as_encoded_bytes()];
    assert_eq!(
        (&root["modified"], &root["mode"]),
        (&of_root.modified().into(), &of_root.mode().into())
    );
    let csv = written(Format::Csv, &scan, &Extent::default());
    let record =
        csv::Reader::from_reader(&csv[..]).records().next().expect("one").expect("a record");
    assert_eq!(record[9], of_root.modified().to_string());
}

#[test]
fn names_of_one_file_are_told() {
    let (_tree, scan) = grown();
    let mut links: Vec<Link> = Vec::new();
    let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
    while let Some(node) = waiting.pop() {
        links.extend(node.link());
        waiting.extend(node.directories().chain(node.files()));
    }
    assert_eq!(links.len(), 3);
    assert!(links.iter().all(|link| link == &links[0]) && links[0].inode > 0);
}

/// A backslash needs no bytes beside it, as a cell has no escapes of its own.
#[test]
#[cfg(unix)]
fn a_name_with_a_backslash_is_exact_in_a_table_and_a_small_page_leaves_nothing_out() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    std::fs::create_dir(tree.path().join("d")).expect("a directory");
    std::fs::write(tree.path().join("d/a\\b"), "content").expect("a file");
    let scan = scanned(tree.path());
    let csv = String::from_utf8(written(
        Format::Csv,
        &scan,
        &Extent { directories_only: false, ..Extent::default() },
    ))
    .expect("text");
    let line = csv.lines().find(|line| line.contains("a\\b")).expect("a line");
    assert!(line.split(',').nth(8).is_some_and(str::is_empty), "{line}");
    let page = String::from_utf8(written(Format::Html, &scan, &Extent::default())).expect("text");
    assert!(page.contains("\"left\":[0,0,0]"), "something is said to be left out");
}

#[test]
fn errors_of_a_document_are_in_order_and_many_are_no_bomb() {
    let export = r#"[1,2,{},[{"name":"r"},[{"name":"b"},{"name":"x","read_error":true}],
        {"name":"a","read_error":true},{"name":"c","read_error":true}]]"#;
    let scan = read(export.as_bytes()).expect("an export");
    assert_eq!(scan.errors.len(), 3);
    assert!(scan.errors.is_sorted_by(|a, b| a.path < b.path), "{:?}", scan.errors);
    // Paths of 70 MB, in a document that is not much shorter than a sixteenth of that.
    let above = "d".repeat(60_000);
    let unread = |number: usize| {
        format!(",{{\"name\":\"{number}{}\",\"read_error\":true}}", "n".repeat(1_100))
    };
    let inside = (10_000..11_200).map(unread).collect::<Vec<_>>().concat();
    let export = format!("[1,2,{{}},[{{\"name\":\"/r\"}},[{{\"name\":\"{above}\"}}{inside}]]]");
    assert_eq!(read(export.as_bytes()).expect("an export").errors.len(), 1_200);
}

#[test]
fn facts_stay_with_their_entries_where_the_first_have_none() {
    let export = r#"[1,2,{},[{"name":"r"},[{"name":"before"},{"name":"x"},{"name":"y"}],
        {"name":"file","mtime":77,"uid":1,"gid":2,"mode":33188},{"name":"last"}]]"#;
    let scan = read(export.as_bytes()).expect("an export");
    let facts = |names: &[&str]| scan.tree.find(names).expect("it is there").facts().expect("kept");
    let file = facts(&["r", "file"]);
    assert_eq!((file.modified(), file.owner(), file.group(), file.mode()), (77, 1, 2, 0o100_644));
    for names in [&["r"][..], &["r", "before"], &["r", "before", "y"], &["r", "last"]] {
        assert_eq!(facts(names), poach_scan::Facts::default(), "{names:?}");
    }
    let again = String::from_utf8(written(Format::Ncdu, &scan, &Extent::default())).expect("ASCII");
    assert!(again.contains(r#""uid":1,"gid":2,"mtime":77"#), "{again}");
}

#[test]
fn a_file_of_several_names_takes_more_memory_and_is_known_by_their_number() {
    let entry = |at: usize| format!(",{{\"name\":\"n{at:05}\",\"ino\":{at},\"nlink\":2}}");
    let entries = (0..9000).map(entry).collect::<Vec<_>>().concat();
    let export = format!("[1,2,{{}},[{{\"name\":\"/r\",\"dev\":1}}{entries}]]");
    // An entry, its name, and what waits to be told of a file with several names.
    let least = 9000 * 2 * (24 + 7 + 32);
    let refused = read_within(export.as_bytes(), least).expect_err("a small limit");
    assert!(matches!(refused, ImportError::Memory(_)), "{refused}");
    let twice = r#"[1,2,{},[{"name":"r"},{"name":"a","asize":5,"ino":7,"nlink":2},
        {"name":"b","asize":5,"ino":7,"nlink":2}]]"#;
    let scan = read(twice.as_bytes()).expect("an export");
    assert_eq!((scan.totals.files, scan.totals.apparent_bytes), (2, 5));
}

#[test]
fn how_a_scan_was_made_is_read_back_and_wrong_totals_are_refused() {
    use std::io::{Read as _, Write as _};
    let tree = tempfile::tempdir().expect("a directory for the test");
    std::fs::write(tree.path().join("file"), "12345").expect("a file");
    for (one_file_system, follow_paths, interrupted) in
        [(true, false, false), (false, true, false), (false, false, true)]
    {
        let options =
            Options { keep_files: true, one_file_system, follow_paths, ..Options::default() };
        let scan = scan(&[tree.path().into()], &options, &Control::new()).expect("a scan");
        let scan = Scan { interrupted, ..scan };
        let out = written(Format::Snapshot, &scan, &Extent::default());
        let again = read(&out[..]).expect("a snapshot");
        let it = (again.options.one_file_system, again.options.follow_paths, again.interrupted);
        assert_eq!(it, (one_file_system, follow_paths, interrupted));
        // The last of the totals, under a checksum that is right.
        let mut contents = Vec::new();
        flate2::read::GzDecoder::new(&out[12..]).read_to_end(&mut contents).expect("gzip");
        *contents.last_mut().expect("a byte") ^= 1;
        let mut other = out[..12].to_vec();
        let mut gzip = flate2::write::GzEncoder::new(&mut other, flate2::Compression::fast());
        gzip.write_all(&contents).and_then(|()| gzip.finish().map(drop)).expect("a vector");
        let refused = read(&other[..]).expect_err("wrong totals").to_string();
        assert!(refused.contains("totals"), "{refused}");
    }
}

#[test]
fn what_was_given_twice_and_what_is_a_part_is_said_in_documents() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    std::fs::create_dir(tree.path().join("a")).expect("a directory");
    std::fs::write(tree.path().join("b"), b"12345").expect("a file");
    let paths = ["a", "a", "b"].map(|name| tree.path().join(name));
    let options = Options { keep_files: true, ..Options::default() };
    let scan = scan(&paths, &options, &Control::new()).expect("a scan");
    let lines = String::from_utf8(written(Format::Ndjson, &scan, &Extent::default()));
    assert_eq!(lines.expect("UTF-8").matches("\"repeated\"").count(), 1);
    // Of a part of a scan nothing is missing in a file.
    let part = Scan { interrupted: true, ..scan };
    let out = written(Format::Ncdu, &part, &Extent::default());
    let errors = read(&out[..]).expect("an export").errors;
    assert!(errors.len() == 1 && errors[0].path.ends_with(b"a"), "{errors:?}");
    let shown = Extent { directories_only: true, at_least: 1, ..Extent::default() };
    let json: Value = serde_json::from_slice(&written(Format::Json, &part, &shown)).expect("JSON");
    assert_eq!((&json["options"]["all"], &json["complete"]), (&false.into(), &false.into()));
    let whole = Scan { interrupted: false, ..part };
    let json: Value = serde_json::from_slice(&written(Format::Json, &whole, &shown)).expect("JSON");
    assert_eq!(json["complete"], false);
}
