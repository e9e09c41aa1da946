/** The controls of single values: text, number, boolean, one of some values, and anything as JSON. */
import type { ReactNode } from 'react'
import { useState } from 'react'
import { JsonEditor } from '../json-text/json-editor.tsx'
import { spellOut } from '../text.tsx'
import { placeIn } from './fit.ts'
import type { Shape } from './shape.ts'
import { readText, Typed, writeText } from './typed.ts'

/** What every control takes. `undefined` is a value that is not set. */
export interface ControlProps {
  readonly id: string
  readonly label: string
  readonly value: unknown
  readonly change: (value: unknown) => void
  /** The id of what is said about the field. */
  readonly said: string
  readonly wrong: boolean
  readonly required: boolean
}

/** An area, not a line: a line would drop the line breaks of what is pasted. */
export function TextControl({
  id,
  label,
  value,
  change,
  said,
  wrong,
  required,
  format,
}: ControlProps & { readonly format?: string | undefined }): ReactNode {
  return (
    <textarea
      id={id}
      rows={1}
      aria-label={label}
      aria-required={required}
      aria-describedby={said}
      aria-invalid={wrong}
      spellCheck={false}
      placeholder={value === '' ? 'empty text' : (format ?? 'not set')}
      className="field-sizing-content max-h-64 w-full resize-none"
      value={typeof value === 'string' ? value : ''}
      onChange={event => change(event.target.value)}
    />
  )
}

/** Digits as they were typed stay in the field while they mean the same number. */
export function NumberControl({ id, label, value, change, said, wrong, required }: ControlProps): ReactNode {
  const [typed, setTyped] = useState(writeText(value))
  const shown = same(readText(typed), value) ? typed : writeText(value)
  return (
    <input
      id={id}
      inputMode="decimal"
      autoComplete="off"
      aria-label={label}
      aria-required={required}
      aria-describedby={said}
      aria-invalid={wrong}
      placeholder="not set"
      className="w-40 max-w-full tabular-nums"
      value={shown}
      onChange={event => {
        setTyped(event.target.value)
        change(numberOf(event.target.value))
      }}
    />
  )
}

function same(left: unknown, right: unknown): boolean {
  if (left instanceof Typed || right instanceof Typed)
    return left instanceof Typed && right instanceof Typed && left.text === right.text
  return left === right
}

function numberOf(text: string): unknown {
  const read = readText(text)
  if (read === undefined || typeof read === 'number') return read
  return new Typed(text, read instanceof Typed && /becomes/.test(read.why) ? read.why : `${text} is not a number.`)
}

/** A box to tick would not show the difference between false and not set. */
export function ChoiceControl({
  id,
  label,
  value,
  change,
  said,
  wrong,
  required,
  values,
}: ControlProps & { readonly values: readonly unknown[] }): ReactNode {
  return (
    <select
      id={id}
      aria-label={label}
      aria-required={required}
      aria-describedby={said}
      aria-invalid={wrong}
      className="max-w-full"
      value={String(placeIn(values, value))}
      onChange={event => change(values[Number(event.target.value)])}
    >
      <option value="-1">not set</option>
      {values.map((each, index) => (
        <option key={JSON.stringify(each)} value={String(index)}>
          {spellOut(typeof each === 'string' ? each : JSON.stringify(each)).slice(0, 200)}
        </option>
      ))}
    </select>
  )
}

export function JsonControl({ label, value, change }: ControlProps): ReactNode {
  const [typed, setTyped] = useState(writeText(value))
  const shown = writeText(readText(typed)) === writeText(value) ? typed : writeText(value)
  return (
    <JsonEditor
      label={`${label} as JSON`}
      text={shown}
      rows={2}
      optional
      change={text => {
        setTyped(text)
        change(readText(text))
      }}
    />
  )
}

/** The control of a shape that is a single value; undefined for those that contain others. */
export function controlOf(shape: Shape, props: ControlProps): ReactNode | undefined {
  switch (shape.kind) {
    case 'text':
      return <TextControl {...props} format={shape.format} />
    case 'number':
      return <NumberControl {...props} />
    case 'boolean':
      return <ChoiceControl {...props} values={[true, false]} />
    case 'values':
      return <ChoiceControl {...props} values={shape.values} />
    case 'json':
      return <JsonControl {...props} />
    default:
      return undefined
  }
}
