/**
 * Answers while they are written. The words of a turn are gathered here from its beginning on; of a turn whose beginning this page has not
 * seen nothing is known here, and its text is read from the process.
 */
import { useSyncExternalStore } from 'react'
import type { TurnPart, TurnRow } from '#contract'

/** What a turn has said so far. */
export interface LiveText {
  /** What it said before its last call. */
  readonly before: readonly string[]
  readonly text: string
}

/** More turns than this never run at once. */
const mostTurns = 64
/** Longer texts are read from the process when they are whole. */
const longest = 400_000

const texts = new Map<string, LiveText>()
const watchers = new Set<() => void>()

const nothing: LiveText = { before: [], text: '' }

function keyOf(conversation: string, seq: number): string {
  return `${seq} ${conversation}`
}

function keep(key: string, text: LiveText | undefined): void {
  if (text === undefined) texts.delete(key)
  else texts.set(key, text)
  if (texts.size > mostTurns) texts.delete(texts.keys().next().value ?? '')
  for (const changed of watchers) changed()
}

/** Whether the words of this turn are gathered here. */
export function isGathered(conversation: string, seq: number): boolean {
  return texts.has(keyOf(conversation, seq))
}

/** A turn was accepted, began or ended. Only one that has asked no model yet is seen from its beginning. */
export function noticeTurn({ conversation, seq, status, cost }: TurnRow): void {
  const key = keyOf(conversation, seq)
  if (status !== 'waiting' && status !== 'running') {
    if (texts.has(key)) keep(key, undefined)
  } else if (!texts.has(key) && (status === 'waiting' || cost.inferences === 0)) keep(key, nothing)
}

/** A part of a turn arrived. */
export function noticePart(conversation: string, seq: number, part: TurnPart): void {
  const key = keyOf(conversation, seq)
  const known = texts.get(key)
  if (known === undefined) return
  if (part.type === 'text') keep(key, { ...known, text: (known.text + (part.text ?? '')).slice(0, longest) })
  else if (part.type === 'answer' && part.text !== undefined) keep(key, { ...known, text: part.text })
  else if (part.type === 'call' && known.text !== '') keep(key, { before: [...known.before, known.text], text: '' })
}

/** What was gathered has gaps now. */
export function forgetLiveTurns(): void {
  texts.clear()
  for (const changed of watchers) changed()
}

/** The words of a turn that runs; undefined where its beginning was not seen, or it has ended. */
export function useLiveText(conversation: string, seq: number): LiveText | undefined {
  return useSyncExternalStore(watch, () => texts.get(keyOf(conversation, seq)))
}

function watch(changed: () => void): () => void {
  watchers.add(changed)
  return () => watchers.delete(changed)
}
