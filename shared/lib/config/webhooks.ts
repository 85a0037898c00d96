import { Type } from '../../domain/jsonSchema.ts';

/** Options of webhooks. */
export const webhookOptions = {
  WEBHOOKS_ALLOW_PRIVATE: Type.Boolean({
    default: false,
    description:
      'Allow webhooks to private addresses and without TLS, if all keys with `webhooks:write` are trusted with that network',
  }),
};
