import {
  belongsIn,
  STREAM_KINDS,
  STREAM_PREFIXES,
  eventSchemas,
} from '../../../../shared/eventlog/eventTypes.ts';
import { expect, test } from '@jest/globals';

const types = eventSchemas.map((schema) => schema.properties.type.const);

test('every type of event belongs in streams of one kind, and every kind has its types', () => {
  const kindsOf = (type: string) => STREAM_KINDS.filter((kind) => belongsIn(`${kind}-1`, type));
  expect(new Set(types.map((type) => kindsOf(type).join()))).toEqual(new Set(STREAM_KINDS));
});

test('no prefix of a kind of stream begins another: whoever filters by them gets each stream once', () => {
  for (const prefix of STREAM_PREFIXES)
    expect(STREAM_PREFIXES.filter((other) => other.startsWith(prefix))).toEqual([prefix]);
});
