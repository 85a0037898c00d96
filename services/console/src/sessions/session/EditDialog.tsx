import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Plus, X } from 'lucide-react';
import { useState, type FormEvent } from 'react';
import { api, dataOf, type Schema } from '../../api/client.ts';
import { Button } from '../../components/Button.tsx';
import { Dialog } from '../../components/Dialog.tsx';
import { Field, Input } from '../../components/Field.tsx';

interface EditDialogProps {
  session: Schema<'Transcript'>;
  onClose: () => void;
}

/** The changes that turn the labels `before` into `after`: a removed one is null. */
function labelChanges(
  before: Readonly<Record<string, string>>,
  after: readonly (readonly [string, string])[],
): Record<string, string | null> {
  const kept = Object.fromEntries(after.filter(([name]) => name !== ''));
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(kept, name));
  return Object.fromEntries([
    ...removed.map((name) => [name, null] as const),
    ...Object.entries(kept).filter(([name, value]) => before[name] !== value),
  ]);
}

/** Edits the title and the labels of a session. */
export function EditDialog({ session, onClose }: EditDialogProps) {
  const { session_id, title, labels } = session;
  const client = useQueryClient();
  const [newTitle, setTitle] = useState(title ?? '');
  const [rows, setRows] = useState<[string, string][]>(() => Object.entries(labels));
  const save = useMutation({
    mutationFn: () => {
      const changes = labelChanges(labels, rows);
      const body = {
        ...(newTitle !== (title ?? '') && { title: newTitle || null }),
        ...(Object.keys(changes).length > 0 && { labels: changes }),
      };
      return dataOf(
        api.PATCH('/v1/sessions/{sessionId}', {
          params: { path: { sessionId: session_id } },
          body,
        }),
      );
    },
    onSuccess: async () => {
      void client.invalidateQueries({ queryKey: ['sessions'] });
      await client.invalidateQueries({ queryKey: ['session', session_id] });
      onClose();
    },
  });
  const change = (at: number, row: [string, string]): void =>
    setRows(rows.map((each, index) => (index === at ? row : each)));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Dialog title="Title and labels" isOpen onClose={onClose}>
      <form onSubmit={submit} className="grid gap-4">
        <Field label="Title">
          <Input
            data-autofocus
            value={newTitle}
            onChange={(event) => setTitle(event.target.value)}
          />
        </Field>
        <fieldset className="grid gap-2">
          <legend className="mb-1.5 font-medium">Labels</legend>
          {rows.map(([name, value], at) => (
            <div key={at} className="flex gap-2">
              <Input
                aria-label={`Name of label ${at + 1}`}
                placeholder="customer"
                value={name}
                onChange={(event) => change(at, [event.target.value, value])}
              />
              <Input
                aria-label={`Value of label ${at + 1}`}
                placeholder="4711"
                value={value}
                onChange={(event) => change(at, [name, event.target.value])}
              />
              <Button
                variant="ghost"
                size="icon"
                className="shrink-0"
                aria-label={`Remove label ${at + 1}`}
                onClick={() => setRows(rows.filter((_, index) => index !== at))}
              >
                <X />
              </Button>
            </div>
          ))}
          <Button
            variant="outline"
            size="small"
            className="justify-self-start"
            onClick={() => setRows([...rows, ['', '']])}
          >
            <Plus aria-hidden /> Add a label
          </Button>
        </fieldset>
        {save.error && (
          <p role="alert" className="text-destructive">
            {save.error.message}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button variant="outline" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" disabled={save.isPending}>
            {save.isPending ? 'Saving…' : 'Save'}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
