import { Type } from 'typebox';

/** What is told of the keys of texts. */
export const TextKeys = Type.Object(
  { reason: Type.String({ description: 'Why, and what to do' }) },
  {
    title: 'TextKeysHealth',
    description: 'Present while keys of texts that were erased may be back',
  },
);
