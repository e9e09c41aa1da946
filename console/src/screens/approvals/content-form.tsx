/** What a yes carries where the server asks for input: the filled form, or, without a model, the words that a person writes in its place. */
import type { ReactNode } from 'react'
import type { Approval } from '#contract'
import { ArgumentsEditor } from '../../parts/schema/arguments-editor.tsx'
import { type Draft, draftOf, turned } from '../../parts/schema/draft.ts'
import { faultsOf } from '../../parts/schema/fit.ts'
import { startOf } from '../../parts/schema/start.ts'
import { isObject, isUnfinished } from '../../parts/schema/typed.ts'
import { Tabs } from '../../parts/tabs.tsx'

/** Whether a yes to it carries something. */
export function asksForContent({ kind, payload, refuseOnly }: Approval): boolean {
  return (
    refuseOnly === undefined && (kind === 'form' || (kind === 'sampling' && isObject(payload) && payload['stage'] === 'write'))
  )
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

/** The content of the answer; undefined while something of it is no value, or a form does not take it. */
export function contentOf(approval: Approval, { value = {} }: Draft): Readonly<Record<string, unknown>> | undefined {
  if (isUnfinished(value) || !isObject(value)) return undefined
  return approval.kind === 'form' && faultsOf(value, schemaOf(approval)).size > 0 ? undefined : value
}

export interface ContentFormProps {
  readonly approval: Approval
  readonly draft: Draft
  readonly change: (draft: Draft) => void
  /** Somebody tried to send it. */
  readonly strict: boolean
}

export function ContentForm({ approval, draft, change, strict }: ContentFormProps): ReactNode {
  const { kind } = approval
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
      <ArgumentsEditor label="Answer" schema={schemaOf(approval)} draft={draft} change={change} strict={strict} />
    </section>
  )
}
