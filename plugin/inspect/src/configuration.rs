//! The compiler's configurations of its kernels, parsed from the text that it writes with
//! `--iree-hal-dump-executable-configurations-to`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The compiler's configuration of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// The pipeline that lowers the kernel
    pub pipeline: String,
    /// Lanes of a workgroup
    pub workgroup_size: Vec<u64>,
    /// Lanes of a wave
    pub subgroup_size: Option<u64>,
    /// Further options of the pipeline, as the compiler writes them
    pub options: String,
    /// The distinct lowering configurations of the kernel's operations
    pub lowerings: Vec<Lowering>,
}

/// The lowering configuration of an operation: its tiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lowering {
    /// The matrix instruction
    pub matrix: Option<String>,
    /// Lists by name: `workgroup`, `reduction`, `subgroup`, `thread`, `promote_operands`, ...
    pub lists: BTreeMap<String, Vec<i64>>,
    /// The whole attribute, as the compiler writes it
    pub text: String,
}

/// Returns the configurations of the kernels in a dump, by kernel name.
#[must_use]
pub fn configurations(dump: &str) -> BTreeMap<String, Configuration> {
    let mut all = BTreeMap::new();
    for part in dump.split("func.func @").skip(1) {
        let name = part.split(['(', ' ']).next().unwrap_or_default();
        let Some(translation) = attribute(part, "translation_info = ") else {
            continue;
        };
        let mut lowerings: Vec<Lowering> = Vec::new();
        let mut rest = part;
        while let Some(at) = rest.find("lowering_config = ") {
            rest = &rest[at..];
            if let Some(text) = attribute(rest, "lowering_config = ") {
                let lowering = lowering(text);
                if !lowerings.contains(&lowering) {
                    lowerings.push(lowering);
                }
            }
            rest = &rest["lowering_config = ".len()..];
        }
        let configuration = Configuration {
            pipeline: pipeline(translation),
            workgroup_size: list(translation, "workgroup_size").unwrap_or_default(),
            subgroup_size: number(translation, "subgroup_size"),
            options: braces(translation).unwrap_or_default().to_owned(),
            lowerings,
        };
        all.insert(name.to_owned(), configuration);
    }
    all
}

/// Returns the attribute that follows a name, up to its closing bracket.
fn attribute<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let begin = text.find(name)? + name.len();
    let rest = text.get(begin..)?;
    let mut depth = 0_u32;
    let mut before = ' ';
    for (at, letter) in rest.char_indices() {
        match letter {
            '<' | '[' | '(' | '{' => depth += 1,
            // The arrow of an affine map closes no bracket.
            '>' if before == '-' => {}
            '>' | ']' | ')' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return rest.get(..=at);
                }
            }
            _ => {}
        }
        before = letter;
    }
    None
}

/// Returns a pipeline's name, which is written as `#iree_gpu.pipeline<TileAndFuse>` or as a plain
/// word.
fn pipeline(translation: &str) -> String {
    let Some((_, rest)) = translation.split_once("pipeline = ") else {
        return String::new();
    };
    let word = rest.split([' ', ',']).next().unwrap_or_default();
    let inner = word.split_once('<').map_or(word, |(_, inner)| inner);
    inner.trim_end_matches('>').to_owned()
}

fn list<T: std::str::FromStr>(text: &str, name: &str) -> Option<Vec<T>> {
    let (_, rest) = text.split_once(&format!("{name} = ["))?;
    let (inner, _) = rest.split_once(']')?;
    inner.split(',').map(|item| item.trim().parse().ok()).collect()
}

fn number(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(&format!("{name} = "))?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Returns the text between the outermost braces.
fn braces(text: &str) -> Option<&str> {
    let (first, last) = (text.find('{')?, text.rfind('}')?);
    text.get(first + 1..last)
}

fn lowering(text: &str) -> Lowering {
    let inner = braces(text).unwrap_or(text);
    let mut lists = BTreeMap::new();
    for (at, _) in inner.match_indices(" = [") {
        let before = inner.get(..at).unwrap_or_default();
        let name = before
            .rsplit(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .next()
            .unwrap_or_default();
        // Only lists at the top level: nested ones belong to other attributes.
        let opened = |open, close| {
            before.matches(open).count() - before.matches(close).count().min(before.matches(open).count())
        };
        if opened('<', '>') + opened('{', '}') > 0 {
            continue;
        }
        if let Some(values) = list(inner.get(at.saturating_sub(name.len())..).unwrap_or_default(), name) {
            lists.insert(name.to_owned(), values);
        }
    }
    let matrix = inner.split_once("mma_kind = ").map(|(_, rest)| {
        let word = rest.split([',', ' ', '}']).next().unwrap_or_default();
        let name = word.split_once('<').map_or(word, |(_, inner)| inner);
        name.trim_end_matches('>').to_owned()
    });
    Lowering {
        matrix,
        lists,
        text: text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "hal.executable public @main_dispatch_0 {
      func.func @main_dispatch_0_matmul() attributes {translation_info = #iree_codegen.translation_info<pipeline = \
      #iree_gpu.pipeline<TileAndFuse> workgroup_size = [256, 1, 1] subgroup_size = 64, {gpu_pipeline_options = \
      #iree_gpu.pipeline_options<prefetch_num_stages = 2, use_igemm_convolution = false>}>} {
        %11 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>]} outs(%10 : tensor<512xf32>) attrs =  {lowering_config = \
        #iree_gpu.lowering_config<{mma_kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>, promote_operands = [0, 1], \
        promotion_types = [#iree_gpu.swizzle_operand<a, [7]>], reduction = [0, 0, 8], subgroup = [1, 1, 0], workgroup = [32, 32, 0]}>} {
        %12 = linalg.generic {lowering_config = #iree_gpu.lowering_config<{thread = [4], workgroup = [64]}>} {
      }
      func.func @main_dispatch_1_fill() attributes {translation_info = #iree_codegen.translation_info<pipeline = None workgroup_size = [64]>} {
      }
      func.func private @helper() {";

    #[test]
    fn a_dump_tells_pipelines_and_tiles() {
        let all = configurations(DUMP);
        assert_eq!(
            all.keys().collect::<Vec<_>>(),
            ["main_dispatch_0_matmul", "main_dispatch_1_fill"]
        );
        let first = &all["main_dispatch_0_matmul"];
        assert_eq!(first.pipeline, "TileAndFuse");
        assert_eq!(
            (first.workgroup_size.as_slice(), first.subgroup_size),
            (&[256, 1, 1][..], Some(64))
        );
        assert!(first.options.contains("prefetch_num_stages = 2"), "{}", first.options);
        let [product, rest] = first.lowerings.as_slice() else {
            panic!("{:?}", first.lowerings);
        };
        assert_eq!(product.matrix.as_deref(), Some("MFMA_F32_16x16x16_F16"));
        let lists = |lowering: &Lowering| -> Vec<(String, Vec<i64>)> { lowering.lists.clone().into_iter().collect() };
        let named = |name: &str, values: &[i64]| (name.to_owned(), values.to_vec());
        assert_eq!(
            lists(product),
            [
                named("promote_operands", &[0, 1]),
                named("reduction", &[0, 0, 8]),
                named("subgroup", &[1, 1, 0]),
                named("workgroup", &[32, 32, 0])
            ]
        );
        assert_eq!(lists(rest), [named("thread", &[4]), named("workgroup", &[64])]);
        assert_eq!(all["main_dispatch_1_fill"].pipeline, "None");
    }
}
