//! A code object made by hand: one kernel that adds one to words, `to[i] = from[i] + 1`, in
//! workgroups of 64.

use rmpv::Value;

/// The kernel, as LLVM's assembler writes it for gfx942.
const TEXT: &[u8] = &[
    0x00, 0x01, 0x0a, 0xc0, 0x00, 0x00, 0x00, 0x00, // s_load_dwordx4 s[4:7], s[0:1], 0x0
    0x02, 0x86, 0x02, 0x8e, // s_lshl_b32 s2, s2, 6
    0x02, 0x00, 0x00, 0x68, // v_add_u32_e32 v0, s2, v0
    0x82, 0x00, 0x00, 0x24, // v_lshlrev_b32_e32 v0, 2, v0
    0x7f, 0xc0, 0x8c, 0xbf, // s_waitcnt lgkmcnt(0)
    0x00, 0x80, 0x50, 0xdc, 0x00, 0x00, 0x04, 0x01, // global_load_dword v1, v0, s[4:5]
    0x70, 0x0f, 0x8c, 0xbf, // s_waitcnt vmcnt(0)
    0x81, 0x02, 0x02, 0x68, // v_add_u32_e32 v1, 1, v1
    0x00, 0x80, 0x70, 0xdc, 0x00, 0x01, 0x06, 0x00, // global_store_dword v0, v1, s[6:7]
    0x00, 0x00, 0x81, 0xbf, // s_endpgm
];

const NAME: &str = "add_one";
const DESCRIPTOR: &str = "add_one.kd";

/// Where the parts lie in the image.
const RODATA: u64 = 0x1000;
const CODE: u64 = 0x2000;

fn map(pairs: Vec<(&str, Value)>) -> Value {
    Value::Map(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

fn note(target: &str) -> Vec<u8> {
    let argument = |offset: u32| {
        map(vec![
            (".offset", offset.into()),
            (".size", 8.into()),
            (".value_kind", "global_buffer".into()),
            (".address_space", "global".into()),
        ])
    };
    let kernel = map(vec![
        (".name", NAME.into()),
        (".symbol", DESCRIPTOR.into()),
        (".args", Value::Array(vec![argument(0), argument(8)])),
        (".kernarg_segment_size", 16.into()),
        (".kernarg_segment_align", 8.into()),
        (".group_segment_fixed_size", 0.into()),
        (".private_segment_fixed_size", 0.into()),
        (".vgpr_count", 2.into()),
        (".agpr_count", 0.into()),
        (".sgpr_count", 16.into()),
        (".max_flat_workgroup_size", 256.into()),
        (".wavefront_size", 64.into()),
    ]);
    let metadata = map(vec![
        ("amdhsa.version", Value::Array(vec![1.into(), 2.into()])),
        ("amdhsa.target", target.into()),
        ("amdhsa.kernels", Value::Array(vec![kernel])),
    ]);
    let mut description = Vec::new();
    rmpv::encode::write_value(&mut description, &metadata).unwrap();
    let mut note = Vec::new();
    for word in [7, description.len() as u32, 32] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"AMDGPU\0\0");
    note.extend(&description);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

fn descriptor() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[8..12].copy_from_slice(&16u32.to_le_bytes());
    bytes[16..24].copy_from_slice(&(CODE - RODATA).to_le_bytes());
    // MODE as compilers set it: denormals kept, DX10 clamping, IEEE.
    bytes[48..52].copy_from_slice(&(0xf0u32 << 12 | 1 << 21 | 1 << 23).to_le_bytes());
    // Two user SGPRs, the workgroup's x.
    bytes[52..56].copy_from_slice(&0x84u32.to_le_bytes());
    // The address of the arguments.
    bytes[56..58].copy_from_slice(&8u16.to_le_bytes());
    bytes
}

/// The image, for a target as `amdgcn-amd-amdhsa--gfx942`; the code is gfx942's whatever the
/// target.
pub(crate) fn add_one(target: &str) -> Vec<u8> {
    let strings = format!("\0{NAME}\0{DESCRIPTOR}\0");
    let names = "\0.note\0.rodata\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let name = |wanted: &str| names.find(&format!("\0{wanted}\0")).unwrap() as u32 + 1;
    let mut symbols = vec![0u8; 24];
    for (start, kind, section, address, size) in [
        (1u32, 0x12u8, 3u16, CODE, TEXT.len() as u64),
        (1 + NAME.len() as u32 + 1, 0x11, 2, RODATA, 64),
    ] {
        symbols.extend(start.to_le_bytes());
        symbols.extend([kind, 3]);
        symbols.extend(section.to_le_bytes());
        symbols.extend(address.to_le_bytes());
        symbols.extend(size.to_le_bytes());
    }
    // Name, type, flags, address; contents; link, info; alignment, entry size.
    let sections = [
        ((".note", 7u32, 2u64, 0x200u64), note(target), [0u32, 0], [4u64, 0]),
        ((".rodata", 1, 2, RODATA), descriptor(), [0, 0], [64, 0]),
        ((".text", 1, 6, CODE), TEXT.to_vec(), [0, 0], [256, 0]),
        ((".symtab", 2, 0, 0), symbols, [5, 1], [8, 24]),
        ((".strtab", 3, 0, 0), strings.into_bytes(), [0, 0], [1, 0]),
        ((".shstrtab", 3, 0, 0), names.as_bytes().to_vec(), [0, 0], [1, 0]),
    ];
    let mut image = vec![0u8; 64];
    let mut headers = vec![0u8; 64];
    for ((section, kind, flags, address), contents, links, layout) in sections {
        image.resize(image.len().next_multiple_of(64), 0);
        headers.extend(name(section).to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for word in [flags, address, image.len() as u64, contents.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(links.map(u32::to_le_bytes).as_flattened());
        headers.extend(layout.map(u64::to_le_bytes).as_flattened());
        image.extend(contents);
    }
    image.resize(image.len().next_multiple_of(64), 0);
    let start = image.len() as u64;
    image.extend(&headers);
    let mut header = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
    header.resize(16, 0);
    header.extend(3u16.to_le_bytes());
    header.extend(224u16.to_le_bytes());
    header.extend(1u32.to_le_bytes());
    header.extend([0; 16]);
    header.extend(start.to_le_bytes());
    // gfx942, any XNACK, any SRAM-ECC.
    header.extend(0x54cu32.to_le_bytes());
    for half in [64u16, 56, 0, 64, 7, 6] {
        header.extend(half.to_le_bytes());
    }
    image[..64].copy_from_slice(&header);
    image
}
