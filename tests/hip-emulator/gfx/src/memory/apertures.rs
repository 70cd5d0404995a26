//! Owns the apertures of the flat address space: the windows of LDS and private memory.

use super::{ds, lanes_where, private};
use crate::{
    error::Trap,
    inst::{Action, Ds, Vmem},
    wave::{Context, Wave},
};

/// High halves of `src_shared_base` and `src_private_base`; no allocation has such an address.
pub(crate) const SHARED: u32 = 0x0001_0000;
pub(crate) const PRIVATE: u32 = 0x0002_0000;

/// A window of 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aperture {
    Shared,
    Private,
}

/// Returns the lanes of `mask` whose address lies in the window.
pub(crate) fn lanes(addresses: &[u64; 64], mask: u64, aperture: Aperture) -> u64 {
    let high = match aperture {
        Aperture::Shared => SHARED,
        Aperture::Private => PRIVATE,
    };
    lanes_where(mask, |lane| addresses[lane] >> 32 == u64::from(high))
}

/// Runs a flat access whose lanes all lie in one window.
pub(crate) fn access<const STRICT: bool>(
    wave: &mut Wave,
    context: &mut Context<'_>,
    inst: &Vmem,
    addresses: &[u64; 64],
    lanes: u64,
    aperture: Aperture,
) -> Result<(), Trap> {
    if aperture == Aperture::Private {
        let offsets = addresses.map(|address| i64::from(address as u32));
        return private::access::<STRICT>(wave, inst, &offsets, lanes);
    }
    let offsets = addresses.map(|address| address as u32);
    let inst = Ds {
        action: inst.action,
        access: inst.access,
        address: 0,
        offsets: [0; 2],
        pair: false,
        data: [inst.data; 2],
        compare: inst.compares.then(|| inst.data + inst.access.rows() as u16),
        target: match inst.action {
            Action::Load => inst.data,
            _ => inst.target,
        },
    };
    context.lds.inside(&offsets, 0, lanes, inst.access)?;
    // SAFETY: just checked.
    unsafe { ds::access::<STRICT>(wave, context, &inst, 0, &offsets, lanes) }
}
