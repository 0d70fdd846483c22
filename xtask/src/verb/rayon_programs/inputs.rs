//! What the programs work on, made from a seed: the same bytes on each machine.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use fastrand::Rng;

use crate::published::write;

const SEED: u64 = 0x9_0AC4;
const FILES: usize = 4_000;
const LARGE: usize = 256 << 20;
const PICTURES: u32 = 6;
const SIDE: u32 = 768;
const GENOMES: usize = 24;
const BASES: usize = 1_000_000;

/// Writes all inputs below `directory`, unless they are there.
pub(super) fn make(directory: &Path) -> Result<()> {
    let whole = directory.join(format!("whole-{SEED:x}"));
    if whole.exists() {
        return Ok(());
    }
    if directory.exists() {
        fs::remove_dir_all(directory)
            .with_context(|| format!("could not remove {}", directory.display()))?;
    }
    let mut random = Rng::with_seed(SEED);
    code(&directory.join("code"), &mut random)?;
    large(&directory.join("large"), &mut random)?;
    pictures(&directory.join("pictures"), &mut random)?;
    genomes(&directory.join("genomes"), &mut random)?;
    write(&whole, "")
}

/// Files that look like Rust, C and Python to a program that counts lines; each fifth is a copy of
/// an earlier file.
fn code(directory: &Path, random: &mut Rng) -> Result<()> {
    let mut made: Vec<String> = Vec::new();
    for index in 0..FILES {
        let text = match made.get(index / 2) {
            Some(copied) if index % 5 == 4 => copied.clone(),
            _ => functions(random),
        };
        let extension = ["rs", "c", "py"][index % 3];
        let name = format!("part-{}/module-{}/file-{index}.{extension}", index % 7, index % 61);
        write(&directory.join(name), &text)?;
        made.push(text);
    }
    Ok(())
}

fn functions(random: &mut Rng) -> String {
    let mut text = String::new();
    for function in 0..random.usize(2..80) {
        let _ = writeln!(
            text,
            "// The function of number {function}.\nfn f{function}(a: u64) -> u64 {{"
        );
        for line in 0..random.usize(1..16) {
            let _ =
                writeln!(text, "    let v{line} = a * {}; /* {} */", random.u32(..), random.u8(..));
        }
        let _ = writeln!(text, "    a\n}}\n");
    }
    text
}

fn large(path: &Path, random: &mut Rng) -> Result<()> {
    let mut bytes = vec![0; LARGE];
    random.fill(&mut bytes);
    write(path, bytes)
}

/// One picture of smooth colours with noise, and others that differ from it more and more.
fn pictures(directory: &Path, random: &mut Rng) -> Result<()> {
    for picture in 0..PICTURES {
        let mut pixels = Vec::new();
        for (y, x) in (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (y, x))) {
            let noise = random.u32(..=picture * 4);
            pixels
                .extend([x / 4, y / 4, (x ^ y) / 8].map(|colour| (colour + noise).min(255) as u8));
        }
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, SIDE, SIDE);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::Fast);
        encoder.write_header()?.write_image_data(&pixels)?;
        write(&directory.join(format!("{picture}.png")), file)?;
    }
    Ok(())
}

/// One random genome, and others in each of which more bases are changed.
fn genomes(directory: &Path, random: &mut Rng) -> Result<()> {
    let mut base = || b"ACGT"[random.usize(..4)];
    let first: Vec<u8> = (0..BASES).map(|_| base()).collect();
    for genome in 0..GENOMES {
        let mut bases = first.clone();
        for at in (0..BASES).step_by(1 + 400 / (genome + 1)) {
            bases[at] = base();
        }
        let mut text = format!(">genome-{genome}\n").into_bytes();
        text.extend(bases.chunks(80).flat_map(|line| line.iter().copied().chain([b'\n'])));
        write(&directory.join(format!("{genome:02}.fa")), text)?;
    }
    Ok(())
}
