import { expect, test } from '@jest/globals';
import { recordableFields } from '../../../../../infra/openai/answers/providerFields.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

const { callFieldsChars, callFieldsDepth } = LIMITS.model;

/** Fields whose JSON has so many characters. */
const long = (chars: number): object => ({ a: 'x'.repeat(chars - '{"a":""}'.length) });
const deep = (levels: number): object => (levels === 1 ? { a: 1 } : { a: deep(levels - 1) });

test('fields of a call are recorded up to a length and a depth, and as storable text', () => {
  expect(
    [callFieldsChars, callFieldsChars + 1].map((chars) => recordableFields(long(chars))?.length),
  ).toEqual([callFieldsChars, undefined]);
  expect(
    [callFieldsDepth, callFieldsDepth + 1].map((levels) => recordableFields({ ...deep(levels) })),
  ).toEqual([JSON.stringify(deep(callFieldsDepth)), undefined]);
  expect(['\0', '\ud83d', '\ue000😀'].map((text) => recordableFields({ text } as object))).toEqual([
    undefined,
    undefined,
    '{"text":"\ue000😀"}',
  ]);
});
