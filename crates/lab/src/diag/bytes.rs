//! Reads numbers at an offset of a kernel message, in host byte order except [`u16_be_at`] (network byte order); `None`
//! if the message is too short.

pub(super) fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

pub(super) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_ne_bytes)
}

pub(super) fn u16_be_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_be_bytes)
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_ne_bytes)
}

pub(super) fn i32_at(bytes: &[u8], offset: usize) -> Option<i32> {
    array_at(bytes, offset).map(i32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_ne_bytes)
}

fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}
