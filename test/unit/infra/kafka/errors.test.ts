import { describe, expect, test } from '@jest/globals';
import { toPublisherError } from '../../../../infra/kafka/errors.ts';

/** As kafkajs throws it: the error of the protocol within one of its own. */
const failure = (type: string, retriable = false): Error =>
  new Error(type, {
    cause: Object.assign(new Error(type), { name: 'KafkaJSProtocolError', type, retriable }),
  });

const SUBJECT = { topic: 'events', transactionalId: 'relay', message: 'event e1, 5 bytes' };

describe('an error of Kafka', () => {
  test.each([
    ['TOPIC_AUTHORIZATION_FAILED', /right to use the topic events: grant it Describe/],
    ['TRANSACTIONAL_ID_AUTHORIZATION_FAILED', /transactional id relay: grant it/],
    ['GROUP_AUTHORIZATION_FAILED', /groups whose names begin with relay\.reader/],
    ['CLUSTER_AUTHORIZATION_FAILED', /right on the cluster: grant it Create/],
    ['INVALID_REPLICATION_FACTOR', /can't create the topic events: its default\.replication/],
  ])('that an operator has to mend says how: %s', (type, says) => {
    const error = toPublisherError(failure(type), SUBJECT);
    expect(error).toMatchObject({ code: 'configuration_invalid', retriable: false });
    expect(error.message).toMatch(says);
  });

  test.each([
    ['MESSAGE_TOO_LARGE', /too large for the topic events \(event e1, 5 bytes\)/],
    ['NOT_ENOUGH_REPLICAS', /replicas of the topic events are in sync/],
    ['GROUP_COORDINATOR_NOT_AVAILABLE', /transaction\.state\.log\.replication\.factor/],
    ['UNKNOWN_TOPIC_OR_PARTITION', /does not know the topic events/],
    ['SOMETHING_ELSE', /Kafka failed at the topic events: SOMETHING_ELSE/],
  ])('that may pass names what it is about: %s', (type, says) => {
    const error = toPublisherError(failure(type), SUBJECT);
    expect(error).toMatchObject({ code: 'publisher_unavailable', retriable: true });
    expect(error.message).toMatch(says);
  });

  test('of one of several topics is found among them', () => {
    const several = Object.assign(new Error('Topic creation errors'), {
      errors: [Object.assign(new Error('no'), { type: 'TOPIC_AUTHORIZATION_FAILED' })],
    });
    expect(toPublisherError(several).message).toMatch(/right to use one of the topics/);
  });
});
