import { Type } from 'typebox';

/** Options of webhooks. */
export const webhookOptions = {
  WEBHOOKS_ALLOW_PRIVATE: Type.Boolean({
    default: false,
    description:
      'Allow webhooks to private, loopback and link-local addresses and without TLS, if everyone with `webhooks:write` is trusted with that network',
  }),
};
