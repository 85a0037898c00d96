import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../../shared/limits.ts';
import { verifyReceipt } from '../../../../../shared/transparency/receipts/verifyReceipt.ts';

const refuse = (text: string) => expect(() => verifyReceipt(text, { vkey: '' } as never));

test('a receipt that is too long is refused unparsed', () => {
  const { receiptBytes } = LIMITS.proof;
  refuse(' '.repeat(receiptBytes)).toThrow('not JSON');
  refuse(' '.repeat(receiptBytes + 1)).toThrow(`more than ${receiptBytes} bytes`);
});
