import type { ReactNode } from 'react';
import type { Schema } from '../api/client.ts';
import { Card } from '../components/layout.tsx';
import type { DraftProblems, ReplayDraft } from './replayDraft.ts';

/** A part of the form of a new replay. */
export interface PartProps {
  draft: ReplayDraft;
  problems: DraftProblems;
  onChange: (changes: Partial<ReplayDraft>) => void;
}

export const Part = ({
  title,
  hint,
  children,
}: {
  title: string;
  hint?: ReactNode;
  children: ReactNode;
}) => (
  <Card>
    <fieldset className="grid grid-cols-[minmax(0,1fr)] gap-4">
      <legend className="float-left mb-1 font-medium">{title}</legend>
      {hint && <p className="text-muted-foreground">{hint}</p>}
      {children}
    </fieldset>
  </Card>
);

interface ModelOptionsProps {
  models: readonly Schema<'Model'>[];
  /** Of the choice of no model. */
  none: string;
}

export const ModelOptions = ({ models, none }: ModelOptionsProps) => (
  <>
    <option value="">{none}</option>
    {models.map(({ id }) => (
      <option key={id} value={id}>
        {id}
      </option>
    ))}
  </>
);
