/** Calls that a person keeps, in this browser. They belong to a target: another target has its own. */
import { useSyncExternalStore } from 'react'
import type { Offer } from '#contract'

export interface SavedCall {
  readonly target: string
  readonly server: string
  readonly kind: Offer['kind']
  readonly item: string
  readonly label: string
  /** The arguments as they were typed. */
  readonly text: string
  readonly revisions: readonly string[]
}

const place = 'vivarium-console-calls'
const mostSaved = 200
const watchers = new Set<() => void>()
let saved: readonly SavedCall[] = read()

function read(): readonly SavedCall[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(place) ?? '[]')
    return Array.isArray(stored) ? stored.filter(isSaved).slice(-mostSaved) : []
  } catch {
    return []
  }
}

/** Whoever writes into this storage by hand shall not break the page. */
function isSaved(each: unknown): each is SavedCall {
  if (typeof each !== 'object' || each === null) return false
  const call = each as Partial<Record<keyof SavedCall, unknown>>
  const texts = [call.target, call.server, call.kind, call.item, call.label, call.text]
  return texts.every(text => typeof text === 'string') && Array.isArray(call.revisions)
}

function write(next: readonly SavedCall[]): void {
  saved = next.slice(-mostSaved)
  try {
    localStorage.setItem(place, JSON.stringify(saved))
  } catch {
    // A private window, or a full storage: they last as long as the page.
  }
  for (const changed of watchers) changed()
}

const same = (a: SavedCall, b: SavedCall) =>
  a.target === b.target && a.server === b.server && a.kind === b.kind && a.item === b.item && a.label === b.label

/** Keeps a call; one of the same name is replaced. */
export function saveCall(call: SavedCall): void {
  write([...saved.filter(each => !same(each, call)), call])
}

export function forgetCall(call: SavedCall): void {
  write(saved.filter(each => !same(each, call)))
}

/** Whatever another tab saved is here, too. */
function subscribe(changed: () => void): () => void {
  const hear = ({ key }: StorageEvent) => {
    if (key !== place) return
    saved = read()
    changed()
  }
  watchers.add(changed)
  addEventListener('storage', hear)
  return () => {
    watchers.delete(changed)
    removeEventListener('storage', hear)
  }
}

export function useSavedCalls(): readonly SavedCall[] {
  return useSyncExternalStore(subscribe, () => saved)
}
