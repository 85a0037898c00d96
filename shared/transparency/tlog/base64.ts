/** Decodes standard base64 with padding (RFC 4648 §4); undefined for any other text. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Node.js skips invalid characters and decodes several texts to the same bytes.
  return bytes.toString('base64') === text ? bytes : undefined;
}
