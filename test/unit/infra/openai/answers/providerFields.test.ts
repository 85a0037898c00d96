import { expect, test } from '@jest/globals';
import { recordableJson } from '../../../../../infra/openai/answers/providerFields.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

const { callFieldsChars, callFieldsDepth } = LIMITS.model;

const isRecordable = (extra: object): boolean => recordableJson({ ...extra }) !== undefined;

/** Fields whose JSON has so many characters. */
const long = (chars: number) => ({ a: 'x'.repeat(chars - '{"a":""}'.length) });
const deep = (levels: number): object => (levels === 1 ? { a: 1 } : { a: deep(levels - 1) });

test('fields of a call are recorded up to a length and a depth, and as storable text', () => {
  expect([callFieldsChars, callFieldsChars + 1].map((chars) => isRecordable(long(chars)))).toEqual([
    true,
    false,
  ]);
  expect(
    [callFieldsDepth, callFieldsDepth + 1].map((levels) => isRecordable({ ...deep(levels) })),
  ).toEqual([true, false]);
  expect(['\0', '\ud83d', '\ue000😀'].map((text) => isRecordable({ text }))).toEqual([
    false,
    false,
    true,
  ]);
});
