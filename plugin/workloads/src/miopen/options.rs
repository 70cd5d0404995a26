//! The options of each driver, and their values on a command line.

use std::collections::HashMap;
use std::str::FromStr;

/// A result, or the reason why the line cannot be converted.
pub(super) type Made<T> = Result<T, String>;

/// An option: its long name, its letter, and its default.
type Declared = (&'static str, char, &'static str);

/// Options that do not change the computed operation: repetitions, verification, output, sources of
/// data. Their values are not parsed.
const NO_MATTER: [&str; 23] = [
    "iter",
    "verify",
    "time",
    "wall",
    "search",
    "printconv",
    "print",
    "dump_output",
    "in_data",
    "weights",
    "in_bias",
    "dout_data",
    "solution",
    "gpualloc",
    "verification_cache",
    "dot_graph",
    "out_data",
    "dump_root",
    "gpubuffer_check",
    "index_type",
    "index_position",
    "dinput",
    "output",
];

/// Declares the options of drivers: long name, letter, default.
macro_rules! drivers {
    ($($driver:literal { $($name:literal $letter:literal $default:literal),* $(,)? })*) => {
        [$(($driver, &[$(($name, $letter, $default)),*])),*]
    };
}

/// The options of each driver, as `driver/*_driver.hpp` declares them.
pub(super) const TABLES: [(&str, &[Declared]); 11] = drivers! {
    "conv" {
        "in_layout" 'I' "", "out_layout" 'O' "", "fil_layout" 'f' "", "spatial_dim" '_' "2", "forw" 'F' "0",
        "batchsize" 'n' "100", "in_channels" 'c' "3", "in_d" '!' "32", "in_h" 'H' "32", "in_w" 'W' "32",
        "out_channels" 'k' "32", "fil_d" '@' "3", "fil_h" 'y' "3", "fil_w" 'x' "3", "conv_stride_d" '#' "1",
        "conv_stride_h" 'u' "1", "conv_stride_w" 'v' "1", "pad_d" '$' "0", "pad_h" 'p' "0", "pad_w" 'q' "0",
        "pad_val" 'r' "0", "trans_output_pad_d" '%' "0", "trans_output_pad_h" 'Y' "0", "trans_output_pad_w" 'X' "0",
        "bias" 'b' "0", "mode" 'm' "conv", "pad_mode" 'z' "default", "tensor_vect" 'Z' "0", "vector_length" 'L' "1",
        "dilation_d" '^' "1", "dilation_h" 'l' "1", "dilation_w" 'j' "1", "group_count" 'g' "1",
        "in_cast_type" 'U' "-1", "out_cast_type" 'T' "-1", "wei_cast_type" 'R' "-1", "iter" 'i' "", "verify" 'V' "",
        "verification_cache" 'C' "", "time" 't' "", "wall" 'w' "", "search" 's' "", "printconv" 'P' "",
        "dump_output" 'o' "", "in_data" 'd' "", "weights" 'e' "", "in_bias" 'a' "", "dout_data" 'D' "",
        "solution" 'S' "", "gpualloc" 'G' "", "gpubuffer_check" '~' "",
    }
    "CBAInfer" {
        "batchsize" 'n' "32", "in_channels" 'c' "3", "in_h" 'H' "32", "in_w" 'W' "32", "out_channels" 'k' "32",
        "group_count" 'g' "1", "fil_h" 'y' "3", "fil_w" 'x' "3", "conv_stride_h" 'u' "1", "conv_stride_w" 'v' "1",
        "pad_h" 'p' "0", "pad_w" 'q' "0", "pad_val" 'r' "0", "alpha" 'A' "1", "beta" 'B' "0", "gamma" 'G' "1",
        "activMode" 'm' "3", "bnMode" 'M' "0", "dilation_h" 'l' "1", "dilation_w" 'j' "1", "pad_mode" 'z' "conv",
        "fusion_mode" 'F' "0", "iter" 'i' "", "verify" 'V' "", "time" 't' "", "printconv" 'P' "", "wall" 'w' "",
        "search" 's' "", "dot_graph" 'D' "",
    }
    "bnorm" {
        "forw" 'F' "1", "back" 'b' "0", "batchsize" 'n' "32", "in_channels" 'c' "3", "in_h" 'H' "32", "in_w" 'W' "32",
        "in_d" 'D' "0", "layout" 'L' "", "alpha" 'A' "1", "beta" 'B' "0", "mode" 'm' "0", "save" 's' "0",
        "run" 'r' "0", "iter" 'i' "", "verify" 'V' "", "time" 't' "", "printconv" 'P' "", "wall" 'w' "",
    }
    "activ" {
        "forw" 'F' "0", "batchsize" 'n' "100", "in_channels" 'c' "3", "in_h" 'H' "32", "in_w" 'W' "32",
        "mode" 'm' "3", "alpha" 'A' "1", "beta" 'B' "1", "gamma" 'G' "1", "iter" 'i' "", "verify" 'V' "",
        "time" 't' "", "wall" 'w' "",
    }
    "pool" {
        "input" 'W' "100x3x32x32,NCHW", "batchsize" 'n' "", "in_channels" 'c' "", "forw" 'F' "0", "win_d" 'Z' "3",
        "win_h" 'y' "3", "win_w" 'x' "3", "pool_stride_d" 's' "1", "pool_stride_h" 'v' "1", "pool_stride_w" 'u' "1",
        "pad_d" 'o' "0", "pad_h" 'p' "0", "pad_w" 'q' "0", "pad_val" 'r' "0", "mode" 'm' "max",
        "pad_mode" 'z' "default", "dinput" 'D' "", "output" 'O' "", "in_h" 'H' "", "index_position" 'M' "",
        "index_type" 'I' "", "iter" 'i' "", "verify" 'V' "", "time" 't' "", "wall" 'w' "", "print" 'P' "",
        "in_data" 'j' "", "out_data" 'k' "", "dump_root" 'l' "",
    }
    "softmax" {
        "forw" 'F' "0", "batchsize" 'n' "100", "in_channels" 'c' "3", "in_h" 'H' "32", "in_w" 'W' "32",
        "alpha" 'A' "1", "beta" 'B' "0", "algorithm" 'a' "1", "mode" 'm' "1", "iter" 'i' "", "verify" 'V' "",
        "time" 't' "", "wall" 'w' "",
    }
    "layernorm" {
        "forw" 'F' "1", "input" 'X' "100x3x32x32", "eps" 'e' "0.00001", "normalized_dim" 'o' "3", "mode" 'm' "0",
        "iter" 'i' "", "verify" 'V' "", "time" 't' "", "wall" 'w' "",
    }
    "t5layernorm" {
        "forw" 'F' "0", "input" 'X' "100x3x32x32", "eps" 'e' "0.00001", "mode" 'm' "5", "iter" 'i' "",
        "verify" 'V' "", "time" 't' "", "wall" 'w' "",
    }
    "gemm" {
        "forw" 'F' "1", "batch_count" 'b' "1", "isColMajor" 'C' "0", "a_h" 'm' "256", "a_w" 'k' "256",
        "b_w" 'n' "256", "alpha" 'A' "1", "beta" 'B' "0", "transA" 'u' "0", "transB" 'v' "0", "iter" 'i' "",
        "verify" 'V' "", "time" 't' "",
    }
    "tensorop" {
        "forw" 'F' "1", "batchsize" 'n' "64", "in_channels" 'c' "3", "in_h" 'H' "32", "in_w" 'W' "32",
        "alpha1" 'A' "1", "alpha2" 'B' "1", "beta" 'G' "0", "tensor_op" 'o' "0", "tensor_val" 'v' "1", "iter" 'i' "",
        "verify" 'V' "", "time" 't' "", "wall" 'w' "",
    }
    "reduce" {
        "forw" 'F' "1", "DimLengths" 'D' "100,60,16,240", "DimsToReduce" 'R' "0,2", "ReduceOp" 'O' "0",
        "CompType" 'C' "1", "IndicesUsed" 'I' "0", "alpha" 'A' "1", "beta" 'B' "0", "NanPropagation" 'N' "0",
        "iter" 'i' "", "verify" 'V' "", "time" 't' "", "wall" 'w' "", "dump_output" 'o' "", "in_data" 'd' "",
    }
};

/// The values of the options on a command line.
pub(super) struct Options {
    declared: &'static [Declared],
    values: HashMap<&'static str, String>,
}

impl Options {
    /// Reads arguments, which are alternating options and values.
    pub(super) fn read(declared: &'static [Declared], arguments: &[String]) -> Made<Self> {
        let mut values = HashMap::new();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let letter = || {
                let mut letters = word.strip_prefix('-')?.chars();
                letters.next().filter(|_| letters.next().is_none())
            };
            let found = match word.strip_prefix("--") {
                Some(name) => declared.iter().find(|(long, ..)| *long == name),
                None => letter().and_then(|letter| declared.iter().find(|(_, short, _)| *short == letter)),
            };
            let Some((name, ..)) = found else {
                return Err(format!("the driver has no option {word}"));
            };
            let value = words.next().ok_or_else(|| format!("{word} has no value"))?;
            if !NO_MATTER.contains(name) {
                values.insert(*name, value.clone());
            }
        }
        Ok(Options { declared, values })
    }

    /// Returns true if the line sets an option.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the text of an option's value or default.
    pub(super) fn text(&self, name: &str) -> &str {
        let given = self.values.get(name).map(String::as_str);
        let usual = || {
            self.declared
                .iter()
                .find(|(long, ..)| *long == name)
                .map(|(.., usual)| *usual)
        };
        given.or_else(usual).unwrap_or_default()
    }

    /// Returns an option's value as a number.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Made<T> {
        let text = self.text(name);
        text.trim()
            .parse()
            .map_err(|_| format!("{name} is {text}, which is no such number"))
    }

    /// Returns an option's value as an extent, which is at least 1.
    pub(super) fn extent(&self, name: &str) -> Made<i64> {
        match self.number(name)? {
            extent @ 1.. => Ok(extent),
            other => Err(format!("{name} is {other}")),
        }
    }

    /// Checks that an option has the only value that a graph can express.
    pub(super) fn only(&self, name: &str, value: f64) -> Made<()> {
        let given: f64 = self.number(name)?;
        if given.to_bits() == value.to_bits() || given == value {
            Ok(())
        } else {
            Err(format!("{name} is {given}: a graph cannot say that"))
        }
    }

    /// Returns the extents of an option such as `100x3x32x32,NCHW`, and the layout, which is empty
    /// if missing.
    pub(super) fn tensor(&self, name: &str) -> Made<(Vec<i64>, String)> {
        let text = self.text(name);
        let (extents, layout) = text.split_once(',').unwrap_or((text, ""));
        let extents = extents.split('x').map(str::parse::<i64>).collect::<Result<Vec<_>, _>>();
        match extents {
            Ok(extents) if extents.iter().all(|&extent| extent > 0) => Ok((extents, layout.to_owned())),
            _ => Err(format!("{name} is {text}, which are no extents")),
        }
    }

    /// Returns an option's list of comma-separated numbers.
    pub(super) fn list(&self, name: &str) -> Made<Vec<i64>> {
        let text = self.text(name);
        let numbers = text.split(',').map(|part| part.trim().parse::<i64>());
        numbers
            .collect::<Result<_, _>>()
            .map_err(|_| format!("{name} is {text}, which are no numbers"))
    }
}
