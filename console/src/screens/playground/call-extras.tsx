/** What a call may carry beside its arguments: members of `_meta`, a time limit, the wish for a task. */
import type { ReactNode } from 'react'
import type { CallWish, Offer } from '#contract'
import { JsonEditor } from '../../parts/json-text/json-editor.tsx'
import { isObject, readText } from '../../parts/schema/typed.ts'

export interface CallExtras {
  readonly meta: string
  readonly seconds: string
  readonly task: boolean
  /** Something of it is no value. */
  readonly wrong: boolean
}

export const emptyExtras: CallExtras = { meta: '', seconds: '60', task: false, wrong: false }

const limits = { least: 0.1, most: 3600 }

function isWrong(meta: string, seconds: string): boolean {
  const value = readText(meta)
  const time = Number(seconds)
  return (value !== undefined && !isObject(value)) || !(time >= limits.least && time <= limits.most)
}

/** The members of the wish. */
export function extrasOf({ meta, seconds, task }: CallExtras, allowed: Offer['task']): Partial<CallWish> {
  const value = readText(meta)
  return {
    timeout: Math.round(Number(seconds) * 1000),
    ...(isObject(value) && { meta: value }),
    ...((task || allowed === 'required') && allowed !== undefined && allowed !== 'forbidden' && { task: true }),
  }
}

export interface ExtrasProps {
  readonly extras: CallExtras
  readonly change: (extras: CallExtras) => void
  /** What the server says about tasks, where it is a tool. */
  readonly task: Offer['task']
}

export function Extras({ extras, change, task }: ExtrasProps): ReactNode {
  const set = (next: Partial<CallExtras>) => {
    const whole = { ...extras, ...next }
    change({ ...whole, wrong: isWrong(whole.meta, whole.seconds) })
  }
  return (
    <details>
      <summary className="min-h-6 text-muted">Time limit, task, _meta</summary>
      <div className="mt-2 max-w-2xl space-y-2 border-l-2 border-line pl-3">
        <div className="flex flex-wrap items-center gap-4">
          <label className="flex items-center gap-2">
            seconds
            <input
              className="w-20 tabular-nums"
              inputMode="decimal"
              aria-invalid={!(Number(extras.seconds) >= limits.least)}
              value={extras.seconds}
              onChange={event => set({ seconds: event.target.value })}
            />
          </label>
          <label className="flex items-center gap-2">
            <input
              type="checkbox"
              disabled={task === undefined || task === 'forbidden'}
              checked={extras.task || task === 'required'}
              onChange={event => set({ task: event.target.checked })}
            />
            as a task
          </label>
        </div>
        <JsonEditor label="_meta" text={extras.meta} rows={2} optional change={meta => set({ meta })} />
      </div>
    </details>
  )
}
