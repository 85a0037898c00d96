import { Plus, Trash2 } from 'lucide-react';
import type { Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { Field, Select, Textarea } from '../components/Field.tsx';
import { ModelOptions, Part, type PartProps } from './formParts.tsx';
import { CHECK_KINDS, type DraftCheck } from './replayDraft.ts';

const KIND_LABELS: Readonly<Record<DraftCheck['kind'], string>> = {
  equals: 'is this text',
  contains: 'contains this text',
  matches: 'matches this regular expression',
  json_schema: 'is JSON that matches this schema',
  judge: 'satisfies these criteria, as a model judges',
};

/** The checks of each replayed answer. */
export function ChecksPart({
  draft,
  problems,
  onChange,
  models,
}: PartProps & { models: readonly Schema<'Model'>[] }) {
  const change = (at: number, changes: Partial<DraftCheck>): void =>
    onChange({
      checks: draft.checks.map((check, index) => (index === at ? { ...check, ...changes } : check)),
    });
  return (
    <Part
      title="Checks"
      hint="Each replayed answer is checked, beside the comparison with the recorded one."
    >
      {draft.checks.map((check, at) => (
        <div key={at} className="grid gap-3 border-b pb-4 md:grid-cols-[16rem_minmax(0,1fr)_auto]">
          <div className="grid content-start gap-3">
            <Field label={`Check ${at + 1}: the answer`}>
              <Select
                value={check.kind}
                onChange={({ target }) => change(at, { kind: target.value as DraftCheck['kind'] })}
              >
                {CHECK_KINDS.map((kind) => (
                  <option key={kind} value={kind}>
                    {KIND_LABELS[kind]}
                  </option>
                ))}
              </Select>
            </Field>
            {check.kind === 'judge' && (
              <Field label={`Judge of check ${at + 1}`}>
                <Select
                  value={check.model}
                  onChange={({ target }) => change(at, { model: target.value })}
                >
                  <ModelOptions models={models} none="Choose a model" />
                </Select>
              </Field>
            )}
          </div>
          <Field label={`Text of check ${at + 1}`} error={problems[`checks.${at}`]}>
            <Textarea
              value={check.text}
              onChange={({ target }) => change(at, { text: target.value })}
            />
          </Field>
          <Button
            variant="ghost"
            size="icon"
            aria-label={`Remove check ${at + 1}`}
            className="self-start"
            onClick={() =>
              onChange({ checks: draft.checks.filter((_check, index) => index !== at) })
            }
          >
            <Trash2 aria-hidden />
          </Button>
        </div>
      ))}
      <Button
        variant="outline"
        size="small"
        className="justify-self-start"
        onClick={() =>
          onChange({ checks: [...draft.checks, { kind: 'contains', text: '', model: '' }] })
        }
      >
        <Plus aria-hidden /> Add a check
      </Button>
    </Part>
  );
}
