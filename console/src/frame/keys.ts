/**
 * Keys of the page. A screen declares what its letters do with `useKeys`; letters are ignored while a person types, while a dialog is open,
 * or where they were switched off.
 */
import { useEffect, useRef } from 'react'
import { preferences } from './preferences.ts'

/** What keys do: `a`, `Enter`, `ArrowDown`, or `g a` for two in a row. */
export type KeyMap = Readonly<Record<string, (event: KeyboardEvent) => void>>

/** The second key of a pair has to follow within this time. */
const pairMs = 1200

export function useKeys(keys: KeyMap): void {
  // Outlives a change of the map: a screen that is drawn anew between two keys does not lose the first.
  const begun = useRef<{ readonly key: string; readonly at: number }>(undefined)
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key.length === 1 && !preferences().letters) return
      if (belongsTo(event) || document.querySelector('dialog[open]') !== null) return
      const first = begun.current
      const pair = first !== undefined && event.timeStamp - first.at < pairMs ? `${first.key} ${event.key}` : event.key
      const act = keys[pair] ?? (pair === event.key ? undefined : keys[event.key])
      begun.current = Object.keys(keys).some(name => name.startsWith(`${event.key} `))
        ? { key: event.key, at: event.timeStamp }
        : undefined
      if (act === undefined) return
      begun.current = undefined
      event.preventDefault()
      act(event)
    }
    addEventListener('keydown', hear)
    return () => removeEventListener('keydown', hear)
  }, [keys])
}

/** Whether a key belongs to the element that has the focus: whatever is typed into a field, and what presses a button. */
function belongsTo({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false
  const presses = key === ' ' || key === 'Enter'
  if (target instanceof HTMLInputElement && /^(checkbox|radio)$/.test(target.type)) return presses || key.startsWith('Arrow')
  if (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return true
  return presses && /^(BUTTON|A|SUMMARY)$/.test(target.tagName)
}
