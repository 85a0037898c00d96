import { expect, test } from '@jest/globals';
import { isPublicAddress } from '../../../../infra/web/ssrfGuard.ts';

test.each([
  '93.184.216.34',
  '8.8.8.8',
  '2606:4700:4700::1111',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
])('%s is public', (address) => expect(isPublicAddress(address)).toBe(true));

test.each([
  ['this host', '0.0.0.0'],
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.254'],
  ['private', '10.1.2.3'],
  ['private', '172.31.0.1'],
  ['private', '192.168.1.1'],
  ['link-local, where clouds serve metadata', '169.254.169.254'],
  ['metadata of ECS', '169.254.170.2'],
  ['shared, where Alibaba serves metadata', '100.100.100.200'],
  ['metadata of Oracle', '192.0.0.192'],
  ['metadata of Azure', '168.63.129.16'],
  ['for documents', '192.0.2.1'],
  ['for benchmarks', '198.18.0.1'],
  ['multicast', '224.0.0.1'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['unspecified', '::'],
  ['loopback', '::1'],
  ['loopback, mapped', '::ffff:127.0.0.1'],
  ['metadata, mapped', '::ffff:a9fe:a9fe'],
  ['loopback, compatible', '::127.0.0.1'],
  ['private, translated', '64:ff9b::10.0.0.1'],
  ['a local NAT64', '64:ff9b:1::808:808'],
  ['translated (RFC 6145)', '::ffff:0:127.0.0.1'],
  ['6to4', '2002:7f00:1::'],
  ['6to4 of a public one', '2002:808:808::'],
  ['Teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ['unique local, where AWS serves metadata', 'fd00:ec2::254'],
  ['link-local', 'fe80::1'],
  ['link-local with a zone', 'fe80::1%eth0'],
  ['site-local', 'fec0::1'],
  ['multicast', 'ff02::1'],
  ['not given out', '4000::1'],
  ['for documents', '2001:db8::1'],
  ['no address', 'localhost'],
  ['no address', ''],
])('refused: %s (%s)', (_what, address) => expect(isPublicAddress(address)).toBe(false));

test('refuses a public address of this machine, however it is written', () => {
  const own = ['203.0.113.9', '8.8.4.4', '2606:4700::7', 'fe80::1%eth0'];
  expect(isPublicAddress('8.8.4.4', own)).toBe(false);
  expect(isPublicAddress('::ffff:808:404', own)).toBe(false);
  expect(isPublicAddress('2606:4700:0:0::7', own)).toBe(false);
  expect(isPublicAddress('8.8.8.8', own)).toBe(true);
});
