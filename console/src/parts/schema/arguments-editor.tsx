/** The arguments of a call as a form or as JSON. A change between both loses nothing, whatever was typed. */
import { type ReactNode, useMemo } from 'react'
import { JsonEditor } from '../json-text/json-editor.tsx'
import type { Draft } from './draft.ts'
import { FormField, ObjectFields } from './field.tsx'
import { faultsOf } from './fit.ts'
import { shapeOf } from './shape.ts'
import { isObject, readText, Typed } from './typed.ts'

export interface ArgumentsEditorProps {
  readonly label: string
  readonly schema: unknown
  readonly draft: Draft
  readonly change: (draft: Draft) => void
  /** Whether fields that are required and empty are told: not before somebody tried to send them. */
  readonly strict: boolean
}

export function ArgumentsEditor({ label, schema, draft, change, strict }: ArgumentsEditorProps): ReactNode {
  const { mode, value, text } = draft
  const shape = useMemo(() => shapeOf(schema, schema), [schema])
  const faults = useMemo(() => {
    const all = faultsOf(value ?? {}, schema)
    return strict ? all : new Map([...all].filter(([, why]) => why !== 'This is required.'))
  }, [value, schema, strict])
  const set = (next: unknown) => change({ mode, value: next, text })
  if (mode === 'json') {
    return (
      <>
        <JsonEditor
          label={label}
          text={text}
          rows={8}
          optional
          change={typed => change({ mode, value: readText(typed), text: typed })}
        />
        {!(value instanceof Typed) && faults.size > 0 && (
          <ul aria-label="Where the arguments differ from the schema" className="text-danger">
            {[...faults].slice(0, 8).map(([path, why]) => (
              <li key={path}>
                <code>{path === '' ? 'arguments' : path}</code> {why}
              </li>
            ))}
          </ul>
        )}
      </>
    )
  }
  if (shape.kind === 'object' && (value === undefined || isObject(value))) {
    if (shape.fields.length === 0 && shape.others === false && !isObject(value))
      return <p className="text-muted">It takes no arguments.</p>
    return (
      <div className="space-y-3">
        <ObjectFields shape={shape} path="" root={schema} value={value ?? {}} change={set} faults={faults} />
      </div>
    )
  }
  return <FormField name={label} path="" schema={schema} root={schema} required value={value} change={set} faults={faults} />
}
