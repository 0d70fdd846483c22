//! Files by the ends of their names, and by what these stand for.

use std::any::Any;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::section::{APPARENT, Column, DISK, FILES};
use super::tally::{Tally, merge, ranked};
use super::{Cell, Collector, Report, Section, Settings, Sources, other};
use crate::Kind;
use crate::sys::Meta;
use crate::visit::Seen;

/// The longest end of a name that counts as an extension.
const LONGEST: usize = 16;

/// The extension of a name in lower case, without its dot; empty if it has none, as `.profile`,
/// `a.` and names whose last dot stands before a space or a very long end.
fn extension(name: &[u8]) -> Vec<u8> {
    let Some(dot) = name.iter().rposition(|&byte| byte == b'.') else { return Vec::new() };
    let end = &name[dot + 1..];
    let apt = |byte: &u8| !byte.is_ascii_whitespace() && !byte.is_ascii_control();
    if dot == 0 || end.is_empty() || end.len() > LONGEST || !end.iter().all(apt) {
        return Vec::new();
    }
    end.to_ascii_lowercase()
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Extensions(HashMap<Vec<u8>, Tally>);

impl Extensions {
    pub(super) fn count(&mut self, name: &[u8], meta: &Meta, bears: bool) {
        if meta.kind == Kind::File {
            self.0.entry(extension(name)).or_default().add(&Tally::of(meta, bears));
        }
    }

    pub(super) fn bear(&mut self, name: &[u8], meta: &Meta) {
        if meta.kind == Kind::File {
            self.0.entry(extension(name)).or_default().add(&Tally::size(meta));
        }
    }

    pub(super) fn add(&mut self, others: &Extensions) {
        merge(&mut self.0, others.0.clone());
    }

    pub(super) fn section(self, settings: &Settings) -> Section {
        const COLUMNS: &[Column] = &[FILES, DISK, APPARENT, Column::text("extension", "extension")];
        let (found, left_out) = ranked(self.0, settings);
        let row = |(name, tally): &(Vec<u8>, Tally)| {
            let name = if name.is_empty() { b"(none)" } else { &name[..] };
            let name = String::from_utf8_lossy(name).into_owned();
            tally.cells().into_iter().chain([Cell::Text(name.into())]).collect()
        };
        let rows = found.iter().map(row).collect();
        Section { left_out, ..Section::complete(Report::Extensions, COLUMNS, rows) }
    }
}

impl Collector for Extensions {
    fn entry(&mut self, seen: &Seen<'_>) {
        self.count(seen.name, seen.meta, seen.bears);
    }

    fn merge(&mut self, others: Box<dyn Any>) {
        merge(&mut self.0, other::<Self>(others).0);
    }

    fn finish(self: Box<Self>, sources: &Sources<'_>) -> Section {
        self.section(sources.settings)
    }
}

/// The kinds of files that extensions stand for.
const TYPES: [(&str, &[&str]); 12] = [
    (
        "images",
        &[
            "jpg", "jpeg", "png", "gif", "webp", "bmp", "tif", "tiff", "svg", "heic", "avif",
            "raw", "cr2", "nef", "ico", "psd", "xcf",
        ],
    ),
    ("video", &["mp4", "mkv", "avi", "mov", "webm", "wmv", "flv", "m4v", "mpg", "mpeg", "m2ts"]),
    ("audio", &["mp3", "flac", "ogg", "opus", "wav", "m4a", "aac", "wma", "aiff", "mid"]),
    (
        "archives",
        &[
            "zip", "tar", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "lz4", "jar", "whl", "deb",
            "rpm", "crate", "apk",
        ],
    ),
    ("disk images", &["iso", "img", "qcow2", "vmdk", "vdi", "vhd", "vhdx", "dmg"]),
    (
        "documents",
        &[
            "pdf", "doc", "docx", "odt", "xls", "xlsx", "ods", "ppt", "pptx", "odp", "epub", "rtf",
            "ps", "djvu",
        ],
    ),
    ("text", &["txt", "md", "rst", "log", "tex", "adoc", "org", "csv", "tsv"]),
    (
        "data",
        &[
            "json", "xml", "yaml", "yml", "toml", "ini", "conf", "sql", "db", "sqlite", "sqlite3",
            "parquet", "npy", "h5", "dat", "lock", "pb",
        ],
    ),
    (
        "source code",
        &[
            "c", "h", "cc", "cpp", "hpp", "cxx", "hh", "rs", "go", "py", "pyi", "js", "mjs", "ts",
            "tsx", "jsx", "java", "kt", "scala", "rb", "php", "pl", "pm", "sh", "bash", "lua",
            "zig", "swift", "cs", "hs", "ml", "el", "lisp", "clj", "ex", "erl", "r", "jl", "asm",
            "s", "vue", "css", "scss", "html", "htm",
        ],
    ),
    (
        "programs and libraries",
        &[
            "so", "a", "o", "rlib", "rmeta", "exe", "dll", "lib", "dylib", "ko", "pyc", "class",
            "wasm", "d", "bin", "obj",
        ],
    ),
    ("fonts", &["ttf", "otf", "woff", "woff2", "pcf", "pfb"]),
    ("backups", &["bak", "old", "orig", "swp", "tmp", "part"]),
];

#[derive(Default)]
pub(super) struct Types(HashMap<&'static str, Tally>);

impl Types {
    /// What files of these extensions add up to.
    pub(super) fn of(extensions: &Extensions) -> Types {
        let mut types = Types::default();
        for (extension, tally) in &extensions.0 {
            types.0.entry(type_of(extension)).or_default().add(tally);
        }
        types
    }

    pub(super) fn section(self, settings: &Settings) -> Section {
        const COLUMNS: &[Column] = &[FILES, DISK, APPARENT, Column::text("type", "type")];
        let (found, left_out) = ranked(self.0, settings);
        let row = |(name, tally): &(&'static str, Tally)| {
            tally.cells().into_iter().chain([Cell::Text((*name).into())]).collect()
        };
        let rows = found.iter().map(row).collect();
        Section { left_out, ..Section::complete(Report::Types, COLUMNS, rows) }
    }
}

fn type_of(extension: &[u8]) -> &'static str {
    let known = TYPES.iter().find(|(_, those)| those.iter().any(|it| it.as_bytes() == extension));
    known.map_or("other", |&(name, _)| name)
}

impl Collector for Types {
    fn entry(&mut self, seen: &Seen<'_>) {
        if seen.meta.kind == Kind::File {
            self.0.entry(type_of(&extension(seen.name))).or_default().count(seen);
        }
    }

    fn merge(&mut self, others: Box<dyn Any>) {
        merge(&mut self.0, other::<Self>(others).0);
    }

    fn finish(self: Box<Self>, sources: &Sources<'_>) -> Section {
        self.section(sources.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_what_people_take_for_one() {
        for (name, expected) in [
            ("a.RS", "rs"),
            ("a.tar.gz", "gz"),
            (".profile", ""),
            ("a.", ""),
            ("plain", ""),
            ("Dr. Who and others", ""),
            ("a.b c", ""),
            ("v1.0-of-a-very-long-name", ""),
        ] {
            assert_eq!(extension(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn no_extension_stands_for_two_types() {
        let mut all: Vec<&str> = TYPES.iter().flat_map(|(_, those)| *those).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!((type_of(b"png"), type_of(b""), type_of(b"zzz")), ("images", "other", "other"));
    }
}
