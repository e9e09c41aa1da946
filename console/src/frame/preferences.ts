/** What a person chose for this page on this machine. Nothing of the process is kept here. */
import { useSyncExternalStore } from 'react'

export interface Preferences {
  readonly theme: 'system' | 'light' | 'dark'
  /** Single letters act. Who uses speech input switches them off (WCAG 2.1.4). */
  readonly letters: boolean
}

const name = 'vivarium-console'
const initial: Preferences = { theme: 'system', letters: true }
const watchers = new Set<() => void>()
let current = read()
show()

function read(): Preferences {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(name) ?? '{}')
    return { ...initial, ...(typeof stored === 'object' ? stored : {}) }
  } catch {
    return initial
  }
}

function show(): void {
  if (current.theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = current.theme
}

/** Changes some, and keeps them where the browser lets us. */
export function setPreferences(change: Partial<Preferences>): void {
  current = { ...current, ...change }
  show()
  try {
    localStorage.setItem(name, JSON.stringify(current))
  } catch {
    // A private window without storage: the choice lasts as long as the page.
  }
  for (const changed of watchers) changed()
}

export function preferences(): Preferences {
  return current
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(watch, preferences)
}

function watch(changed: () => void): () => void {
  watchers.add(changed)
  return () => watchers.delete(changed)
}
