/** What a yes carries where the server asks for input: the filled form, or, without a model, the words that a person writes in its place. */
import type { ReactNode } from 'react'
import type { Approval } from '#contract'
import { ArgumentsEditor } from '../../parts/schema/arguments-editor.tsx'
import { type Draft, draftOf, turned } from '../../parts/schema/draft.ts'
import { startOf } from '../../parts/schema/start.ts'
import { isObject, isUnfinished } from '../../parts/schema/typed.ts'
import { Tabs } from '../../parts/tabs.tsx'

/** Whether a yes to it carries something. */
export function asksForContent({ kind, refuseOnly }: Approval): boolean {
  return refuseOnly === undefined && (kind === 'form' || kind === 'sampling')
}

function schemaOf({ payload }: Approval): unknown {
  return isObject(payload) ? (payload['schema'] ?? payload['requestedSchema'] ?? {}) : {}
}

/** What the form begins with. */
export function firstContent(approval: Approval): Draft {
  if (approval.kind === 'sampling') return draftOf({ text: '' })
  const schema = schemaOf(approval)
  return draftOf(startOf(schema, schema) ?? {})
}

/** The content of the answer; undefined while something of it is no value. */
export function contentOf({ value }: Draft): Readonly<Record<string, unknown>> | undefined {
  if (isUnfinished(value)) return undefined
  return isObject(value) ? value : value === undefined ? {} : undefined
}

export interface ContentFormProps {
  readonly approval: Approval
  readonly draft: Draft
  readonly change: (draft: Draft) => void
  /** Somebody tried to send it. */
  readonly strict: boolean
}

export function ContentForm({ approval, draft, change, strict }: ContentFormProps): ReactNode {
  const { kind, payload } = approval
  if (kind === 'sampling') {
    const { text } = isObject(draft.value) ? draft.value : { text: '' }
    return (
      <label className="mb-3 block">
        <span className="label mb-1 block">The answer, in place of a model</span>
        <textarea
          className="block w-full"
          rows={4}
          value={typeof text === 'string' ? text : ''}
          onChange={event => change(draftOf({ text: event.target.value }))}
        />
      </label>
    )
  }
  const secrets =
    isObject(payload) && Array.isArray(payload['secrets']) ? payload['secrets'].filter(each => typeof each === 'string') : []
  return (
    <section aria-label="Form" className="mb-4 max-w-2xl">
      <div className="mb-2 flex items-center gap-3">
        <h3 className="font-semibold">What it asks for</h3>
        <Tabs
          label="How the answer is edited"
          names={['form', 'json']}
          chosen={draft.mode}
          choose={mode => mode !== draft.mode && change(turned(draft))}
        />
      </div>
      {secrets.length > 0 && (
        <p className="mb-2 rounded-lg border border-warn-line bg-warn-soft p-3 text-warn">
          {`It seems to ask for something secret (${secrets.slice(0, 5).join(', ').slice(0, 200)}). Servers shall not do that by a form.`}
        </p>
      )}
      <ArgumentsEditor label="Answer" schema={schemaOf(approval)} draft={draft} change={change} strict={strict} />
    </section>
  )
}
