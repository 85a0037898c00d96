import { test } from '@jest/globals';
import { log } from '../../../../shared/restoredLogs/decider.ts';
import { specification } from '../../../support/builders/deciderSpecification.ts';
import { restoreAccepted, treeDeclared, treeReplaced } from '../../../support/builders/events.ts';

const given = specification(log);
const declare = (vkeys: string[], origin = 'turnlog/log_0') =>
  ({ type: 'declare_tree', origin, vkeys }) as const;

test('a tree is declared once, with its keys', () => {
  given()
    .when(declare(['a']))
    .then(treeDeclared('turnlog/log_0', ['a']));
  given(treeDeclared('turnlog/log_0', ['a']))
    .when(declare(['a']))
    .then();
});

test('a key that was added is declared beside those before, which still verify older checkpoints', () => {
  given(treeDeclared('turnlog/log_0', ['a']))
    .when(declare(['a', 'b']))
    .then(treeDeclared('turnlog/log_0', ['a', 'b']));
  given(treeDeclared('turnlog/log_0', ['a']), treeDeclared('turnlog/log_0', ['a', 'b']))
    .when(declare(['b']))
    .then();
});

test('a tree of another origin is declared for itself', () => {
  given(treeDeclared('turnlog/log_0', ['a']))
    .when(declare(['a'], 'turnlog/log_1'))
    .then(treeDeclared('turnlog/log_1', ['a']));
});

test('a tree that is declared anew names those that it replaces', () => {
  given(treeDeclared('turnlog/log_0', ['a']))
    .when({ type: 'replace_tree', reason: 'its files are lost' })
    .then(treeReplaced(['turnlog/log_0']));
});

test('a restore is declared whatever was declared before', () => {
  given(treeDeclared())
    .when({ type: 'accept_restore', replaces: ['log_0'], reason: 'a disk broke' })
    .then(restoreAccepted(['log_0']));
});
