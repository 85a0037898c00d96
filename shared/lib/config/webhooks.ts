import { Type } from 'typebox';

/** Options of webhooks. */
export const webhookOptions = {
  WEBHOOKS_ALLOW_PRIVATE: Type.Boolean({
    default: false,
    description:
      'Let webhooks lead to private, loopback and link-local addresses, and go without TLS: for receivers in a network that is trusted, where every holder of the scope `webhooks:write` is, too',
  }),
};
