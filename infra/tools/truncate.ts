const MARK = '… (cut off)';

/**
 * The text itself, or its beginning and a mark when it is longer than `bytes` in UTF-8. Halves of
 * surrogate pairs and NUL, which can't be stored, become U+FFFD.
 */
export function truncate(text: string, bytes: number): string {
  const encoded = Buffer.from(text.replaceAll('\0', '\uFFFD'));
  if (encoded.length <= bytes) return encoded.toString();
  let end = bytes - Buffer.byteLength(MARK);
  // Don't cut within a character: its continuation bytes begin with the bits 10.
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return encoded.toString('utf8', 0, end) + MARK;
}
