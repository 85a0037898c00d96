import { existsSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { mutations } from '../mutations/mutations.ts';
import { broken } from '../mutations/tree.ts';
import { root } from '../support/docs/projectFiles.ts';

test.each(mutations.map((mutation) => [mutation.name, mutation] as const))(
  'the mutation "%s" applies to the code as it is, and names suites that exist',
  (_, mutation) => {
    expect(broken(root, mutation)).toContain(mutation.to);
    expect(mutation.likely.filter((path) => !existsSync(`${root}/${path}`))).toEqual([]);
  },
);
