import { Type } from 'typebox';

/** What is told of the keys of texts. */
export const TextKeys = Type.Object(
  { reason: Type.String({ description: 'Why, and what to do' }) },
  {
    title: 'TextKeysHealth',
    description: 'Present while keys of texts that were erased may be back',
  },
);

export const Erasures = Type.Object(
  {
    count: Type.Integer({ minimum: 1, description: 'How many this process has tried in vain' }),
    reason: Type.String({ description: 'The stream of the first one, and why' }),
  },
  {
    title: 'ErasuresHealth',
    description: 'Present while erasures that were begun can’t be finished; they are tried again',
  },
);
