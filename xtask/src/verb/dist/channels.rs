//! The files that package managers read, from their templates in `packaging/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::run::{Step, has_program};

/// A template, and how its own tool looks at what it became.
const TEMPLATES: [(&str, &[&str]); 5] = [
    ("poach.rb", &["ruby", "-c"]),
    ("poach.json", &["python3", "-m", "json.tool"]),
    ("PKGBUILD", &["bash", "-n"]),
    ("flake.nix", &["nix-instantiate", "--parse"]),
    ("winget.yaml", &["ruby", "-ryaml", "-e", "YAML.load_file(ARGV[0])"]),
];

/// What stands where nobody has said yet where the releases lie.
const NOWHERE: &str = "https://example.invalid/poach";

/// Writes all into `to`.
pub(super) fn write(
    source: &Path,
    to: &Path,
    version: &str,
    repository: Option<&str>,
    sums: &BTreeMap<String, String>,
) -> Result<()> {
    fs::create_dir_all(to)?;
    if repository.is_none() {
        eprintln!("dist: no --repository was named: the files for package managers say {NOWHERE}");
    }
    for (name, syntax) in TEMPLATES {
        let template = source.join(format!("packaging/{name}.in"));
        let template =
            fs::read_to_string(&template).with_context(|| template.display().to_string())?;
        let file = to.join(name);
        fs::write(&file, fill(&template, version, repository.unwrap_or(NOWHERE), sums))?;
        if has_program(syntax[0]) {
            let what = format!("{name} is not as {} reads it", syntax[0]);
            Step::program(syntax[0])
                .args(&syntax[1..])
                .args([file.to_string_lossy()])
                .run(&what)?;
        } else {
            eprintln!("dist: LEFT OUT: {} is not here to read {name}", syntax[0]);
        }
    }
    Ok(())
}

/// A template with the values in place of their names. A platform that was not built has zeros.
fn fill(
    template: &str,
    version: &str,
    repository: &str,
    sums: &BTreeMap<String, String>,
) -> String {
    let url = format!("{repository}/releases/download/v{version}");
    let mut filled = template
        .replace("@URL@", &url)
        .replace("@REPOSITORY@", repository)
        .replace("@VERSION@", version)
        .replace("@MAINTAINER@", "The Poach maintainers");
    while let Some((before, rest)) = filled.split_once("@SHA256:") {
        let (target, after) = rest.split_once('@').unwrap_or((rest, ""));
        let archive = format!("poach-{version}-{target}.");
        let is_it = |name: &&String| name.starts_with(&archive) && !name.ends_with(".cdx.json");
        let sum = sums.keys().find(is_it).map_or("0".repeat(64), |name| sums[name].clone());
        filled = format!("{before}{sum}{after}");
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_is_filled_and_names_no_value_any_more() {
        let archive = "poach-1.2.3-x86_64-unknown-linux-musl.tar.gz";
        let sums = BTreeMap::from([(archive.to_owned(), "5".repeat(64))]);
        let packaging = crate::workspace::root().join("packaging");
        for (name, _) in TEMPLATES {
            let template = fs::read_to_string(packaging.join(format!("{name}.in"))).unwrap();
            let filled = fill(&template, "1.2.3", "https://example.org/p", &sums);
            assert!(
                filled.contains("1.2.3") && filled.contains("https://example.org/p"),
                "{filled}"
            );
            for named in ["@VERSION@", "@URL@", "@SHA256:", "@REPOSITORY@", "@MAINTAINER@"] {
                assert!(!filled.contains(named), "{name}: {filled}");
            }
            let has_sum = filled.contains(&"5".repeat(64));
            assert_eq!(has_sum, template.contains("@SHA256:x86_64-unknown-linux-musl@"), "{name}");
        }
    }
}
