import { Type } from '../../domain/jsonSchema.ts';

/** Options for the running service that a client command connects to. */
export const clientOptions = {
  TURNLOG_URL: Type.String({
    pattern: '^https?://[^\\s/]\\S*$',
    'x-rule': 'must be the address of a service, such as http://127.0.0.1:3000',
    examples: ['http://127.0.0.1:3000'],
    description: 'Address of the service (`https://turnlog.example.com`)',
  }),
  TURNLOG_API_KEY: Type.String({
    pattern: '^[!-~]+$',
    'x-rule': 'must be an API key: visible ASCII characters',
    examples: ['the key that `npm run cli -- keys issue` prints'],
    description: 'API key with the scopes that the command needs',
  }),
};
