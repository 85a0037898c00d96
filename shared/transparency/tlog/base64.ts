/** The bytes of standard base64 with its padding (RFC 4648 §4); undefined for anything else. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Node.js reads past what is wrong, and takes several texts for the same bytes.
  return bytes.toString('base64') === text ? bytes : undefined;
}
