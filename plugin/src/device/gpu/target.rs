//! The compiler's target for a GPU, derived from the driver's description.

use rotini_emit::Target;

/// Architectures that rotini compiles for by default. Others may work: `ROTINI_TARGET` selects
/// them.
const ROCM_ARCHITECTURES: [&str; 1] = ["gfx942"];

/// Features that may follow an architecture's name. Code is compiled without specifying them, so it
/// runs with either value.
const ROCM_FEATURES: [&str; 2] = ["sramecc", "xnack"];

/// Products that the compiler knows by name: a substring of the device's name, the compiler's name,
/// the architecture, and the number of compute units that the compiler assumes.
const ROCM_PRODUCTS: [(&str, &str, &str, u32); 4] = [
    ("MI300X", "mi300x", "gfx942", 304),
    ("MI300A", "mi300a", "gfx942", 228),
    ("MI308X", "mi308x", "gfx942", 80),
    ("MI325X", "mi325x", "gfx942", 304),
];

/// `gcnArchName`: the architecture, then features that are on (`+`) or off (`-`), as in
/// `gfx942:sramecc+:xnack-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GcnArch<'a> {
    /// `gfx942`.
    pub(super) name: &'a str,
    /// `("sramecc", true)`.
    pub(super) features: Vec<(&'a str, bool)>,
}

impl<'a> GcnArch<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let is_name = name.strip_prefix("gfx").is_some_and(|digits| {
            digits.len() >= 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        });
        if !is_name {
            return Err(format!("'{text}' is no architecture"));
        }
        let features = parts
            .map(|part| {
                let feature = part
                    .strip_suffix('+')
                    .map(|name| (name, true))
                    .or_else(|| part.strip_suffix('-').map(|name| (name, false)));
                feature
                    .filter(|(name, _)| ROCM_FEATURES.contains(name))
                    .ok_or_else(|| format!("'{text}' has the feature '{part}', which is none that is known"))
            })
            .collect::<Result<_, _>>()?;
        Ok(GcnArch { name, features })
    }
}

/// Returns the target of an AMD GPU: the product if name, architecture and compute units match one,
/// so that the compiler can fill the GPU; else the architecture.
pub(super) fn rocm(name: &str, arch: &str, compute_units: u32) -> Result<Target, String> {
    let arch = GcnArch::parse(arch)?;
    if !ROCM_ARCHITECTURES.contains(&arch.name) {
        return Err(format!(
            "its architecture {} is none that rotini is proven on ({})",
            arch.name,
            ROCM_ARCHITECTURES.join(", ")
        ));
    }
    let product = ROCM_PRODUCTS.iter().find(|(part, _, product_arch, units)| {
        name.contains(part) && *product_arch == arch.name && *units == compute_units
    });
    Ok(Target::Rocm {
        arch: product.map_or(arch.name, |(_, product, ..)| product).to_owned(),
    })
}

/// Returns the target of an NVIDIA GPU with a compute capability. The code is PTX, which later GPUs
/// run too. IREE 3.13 knows no capability after 8.9. For the data-centre GPUs from 9.0 on, the
/// closest is 8.0, that of their predecessor, with its large shared memory.
#[cfg(feature = "cuda")]
pub(super) fn cuda(major: u32, minor: u32) -> Result<Target, String> {
    let arch = match (major, minor) {
        (8, 9) => "sm_89",
        (8, 6 | 7) => "sm_86",
        (8, 0) | (9.., _) => "sm_80",
        _ => return Err(format!("its compute capability {major}.{minor} is less than 8.0")),
    };
    Ok(Target::Cuda { arch: arch.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_parsed_with_their_features() {
        let arch = GcnArch::parse("gfx942:sramecc+:xnack-").unwrap();
        assert_eq!(arch.name, "gfx942");
        assert_eq!(arch.features, [("sramecc", true), ("xnack", false)]);
        assert_eq!(GcnArch::parse("gfx90a").unwrap().features, []);
        for wrong in [
            "",
            "gfx",
            "sm_80",
            "gfx942:",
            "gfx942:xnack",
            "gfx942:tgsplit+",
            "GFX942",
            "gfx9 2",
        ] {
            assert!(GcnArch::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn products_need_name_and_compute_units() {
        let target = |name, arch, units| rocm(name, arch, units).map(|target| target.to_string());
        let features = "gfx942:sramecc+:xnack-";
        assert_eq!(target("AMD Instinct MI300X", features, 304).as_deref(), Ok("mi300x"));
        assert_eq!(target("AMD Instinct MI300X VF", features, 304).as_deref(), Ok("mi300x"));
        assert_eq!(target("AMD Instinct MI300A", features, 228).as_deref(), Ok("mi300a"));
        assert_eq!(target("AMD Instinct MI308X", features, 80).as_deref(), Ok("mi308x"));
        assert_eq!(target("AMD Instinct MI325X", features, 304).as_deref(), Ok("mi325x"));
        // A partition of an MI300X, and a device without a name.
        assert_eq!(target("AMD Instinct MI300X", features, 38).as_deref(), Ok("gfx942"));
        assert_eq!(target("", features, 304).as_deref(), Ok("gfx942"));
        assert!(target("AMD Radeon RX 7900 XTX", "gfx1100", 96).is_err());
        assert!(target("AMD Instinct MI300X", "gfx1100", 304).is_err());
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn compute_capabilities_have_their_closest_target() {
        let target = |major, minor| cuda(major, minor).map(|target| target.to_string());
        assert_eq!(target(8, 0).as_deref(), Ok("sm_80"));
        assert_eq!(target(8, 6).as_deref(), Ok("sm_86"));
        assert_eq!(target(8, 9).as_deref(), Ok("sm_89"));
        assert_eq!(target(9, 0).as_deref(), Ok("sm_80"));
        assert_eq!(target(10, 0).as_deref(), Ok("sm_80"));
        assert!(target(7, 5).is_err());
    }
}
