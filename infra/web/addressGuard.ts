import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

const { parse, IPv4, IPv6 } = ipaddr;
type IPv4 = ipaddr.IPv4;
type IPv6 = ipaddr.IPv6;

/** Public by its number, and yet the platform's own: Azure's metadata and DHCP. */
const OF_PLATFORMS = new Set(['168.63.129.16']);

/** What is routed as unicast on the internet: all else is for special ends, or not given out yet. */
const GLOBAL_UNICAST: [IPv6, number] = [IPv6.parse('2000::'), 3];
/** A NAT64 that everybody may use: an IPv4 address in its last four bytes (RFC 6052). */
const NAT64: [IPv6, number] = [IPv6.parse('64:ff9b::'), 96];

const within = (address: IPv6): IPv4 => new IPv4(address.toByteArray().slice(12));

/** The address that a packet ends at: that inside of an IPv4-mapped one, or of one for a NAT64. */
function unwrapped(text: string): IPv4 | IPv6 {
  const address = parse(text);
  if (address instanceof IPv4) return address;
  return address.isIPv4MappedAddress() || address.match(NAT64) ? within(address) : address;
}

/** Of this machine: what it serves to itself may be closed to everybody else. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((entries) =>
    (entries ?? []).map(({ address }) => address),
  );

/**
 * True for an IP address that anybody on the internet may reach: public unicast, and none of this
 * machine's own. Private, loopback, link-local, shared, multicast, reserved and metadata addresses
 * are not, however they are written or wrapped; neither is a text that is no address.
 */
export function isPublicAddress(text: string, own: readonly string[] = ownAddresses()): boolean {
  try {
    const address = unwrapped(text);
    if (address.range() !== 'unicast') return false;
    if (address instanceof IPv6 && !address.match(GLOBAL_UNICAST)) return false;
    const plain = address.toString();
    return !OF_PLATFORMS.has(plain) && !own.some((entry) => unwrapped(entry).toString() === plain);
  } catch {
    return false;
  }
}
