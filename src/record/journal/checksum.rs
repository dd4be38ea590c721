//! The checksum that ends each line, so that a figure that changed in the file is seen.

/// The field's name. It is the last of its line.
pub(super) const FIELD: &str = "crc32";

/// What stands between the checksum and the bytes that it is of.
const SEPARATOR: &[u8] = b",\"crc32\":";

/// What a line's checksum says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The line is what was written.
    Fits,
    /// The line is not what was written.
    Differs,
    /// The field is somewhere else, or no checksum.
    Misplaced,
}

/// Ends an object, as it was serialized, with its checksum.
pub(super) fn seal(mut object: Vec<u8>) -> Vec<u8> {
    debug_assert_eq!(object.last(), Some(&b'}'));
    object.pop();
    let checksum = crc32fast::hash(&object);
    object.extend_from_slice(SEPARATOR);
    object.extend_from_slice(checksum.to_string().as_bytes());
    object.push(b'}');
    object
}

/// Checks a line, which is an object that has the field.
pub(super) fn check(line: &[u8]) -> Verdict {
    let Some((of, stated)) = split(line.trim_ascii_end()) else { return Verdict::Misplaced };
    match crc32fast::hash(of) == stated {
        true => Verdict::Fits,
        false => Verdict::Differs,
    }
}

/// The bytes before the field, and its number.
fn split(line: &[u8]) -> Option<(&[u8], u32)> {
    let line = line.strip_suffix(b"}")?;
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (head, digits) = line.split_at(line.len() - digits);
    let stated = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((head.strip_suffix(SEPARATOR)?, stated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_the_crc32_of_what_is_before() {
        // The check value of CRC-32/ISO-HDLC, which zlib, gzip and PNG use.
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
        // python3 -c 'import zlib; print(zlib.crc32(b"{\"type\":\"x\""))'
        let sealed = seal(b"{\"type\":\"x\"}".to_vec());
        assert_eq!(sealed, b"{\"type\":\"x\",\"crc32\":2062918947}");
        assert_eq!(check(&[&sealed[..], b"\r\n"].concat()), Verdict::Fits);
    }

    #[test]
    fn what_is_no_checksum_at_the_end_is_misplaced() {
        for line in [
            "{\"crc32\":1,\"type\":\"x\"}",
            "{\"type\":\"x\",\"crc32\":-1}",
            "{\"type\":\"x\",\"crc32\":4294967296}",
            "{\"type\":\"x\",\"crc32\":\"1\"}",
            "{\"type\":\"x\",\"crc32\": 1}",
        ] {
            assert_eq!(check(line.as_bytes()), Verdict::Misplaced, "{line}");
        }
        assert_eq!(check(b"{\"type\":\"x\",\"crc32\":1}"), Verdict::Differs);
    }
}
