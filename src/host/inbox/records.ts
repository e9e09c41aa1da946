/**
 * What the inbox keeps, and where. An event that was accepted is known by its id until its time is over (`seen`), and lies in its
 * queue until it is done (`todo`); how often it was tried is beside it (`try`).
 */
import { hash } from 'node:crypto'
import { canonicalJson } from '../../core/digest.ts'
import type { Why } from '../../core/suggestion.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { SetAdmission } from '../../policy/feature-sets/set-consent.ts'

/** `held`: it could not run yet, and waits. */
type AttemptOutcome = 'running' | 'done' | 'failed' | 'interrupted' | 'held'

/** One try at an event. */
export interface Attempt {
  /** From 1. */
  readonly n: number
  readonly at: number
  /** The process that tried it. */
  readonly by: string
  readonly outcome: AttemptOutcome
  readonly error?: string
}

/** `waiting`: not yet done; `refused`: somebody said no before it ran; `dead`: given up after too many attempts. */
export type InboxState = 'waiting' | 'done' | 'refused' | 'dead'

/** What is known of an event by its id. */
export interface SeenEvent {
  readonly eventId: string
  readonly featureSet: string
  readonly inferenceId: string
  /** Of its body: another body under the same id is another event that nobody will see. */
  readonly digest: string
  readonly seq: string
  readonly at: number
  readonly state: InboxState
  /** The beginning of its text. */
  readonly preview?: string
  readonly attempts?: readonly Attempt[]
  readonly why?: Why
  /** It was held until this moment. */
  readonly notBefore?: number
  /** Of the program that sent it: what another one sends later under the name of its server is another event. */
  readonly identity?: string
}

/** An event in its queue. */
export interface Todo {
  readonly event: PushEvent
  readonly inferenceId: string
  readonly digest: string
  readonly at: number
  /** Events of one lane are done one after the other. */
  readonly lane: string
  /** Not before this moment. */
  readonly notBefore?: number
  /** Events with one inference become one run, once the window is over. */
  readonly group?: true
  /** How many events it is away from one that nothing of ours brought about; absent: it is one. */
  readonly depth?: number
  /** Other servers whose events began turns that it came of, or may have come of. */
  readonly through?: readonly string[]
  /** By what it was admitted; absent where there is no policy. */
  readonly admitted?: SetAdmission
  /** Somebody has to allow it first. */
  readonly asks?: true
}

/** One that was given up: all there is to try it again. */
export interface Dead extends Todo {
  readonly attempts: readonly Attempt[]
  readonly why: Why
}

/** All keys of the inbox begin with this. */
export const prefix = 'inbox/'
const most = 300

/** A part of a key, whatever was in it. */
export function part(text: string): string {
  const encoded = encodeURIComponent(text.toWellFormed())
  return encoded.length <= most && text.isWellFormed() ? encoded : `~${hash('sha256', JSON.stringify(text), 'base64url')}`
}

/** Where it is kept that an event was seen. */
export const seenKey = (server: string, eventId: string): string => `${prefix}seen/${part(server)}/${part(eventId)}`
/** Where an event waits. */
export const todoKey = (server: string, seq: string): string => `${prefix}todo/${part(server)}/${seq}`
/** Where the tries at an event are kept. */
export const tryKey = (server: string, seq: string): string => `${prefix}try/${part(server)}/${seq}`
/** Where an event is kept that was given up. */
export const deadKey = (server: string, seq: string): string => `${prefix}dead/${part(server)}/${seq}`
/** Where the events of a server are counted. */
export const countKey = (server: string): string => `${prefix}count/${part(server)}`
/** Where the process is named that works on the events of a server. */
export const inboxOwnerKey = (server: string): string => `${prefix}owner/${part(server)}`
/** Written by a process that accepted what another one runs. */
export const callKey = (server: string): string => `${prefix}call/${part(server)}`

const digits = 16

/**
 * A place in the order: a number that grows, and the process that gave it. No two are ever equal, so that whatever is written about
 * one is never about another.
 */
export function seqText(number: number, by: string): string {
  return `${String(number).padStart(digits, '0')}-${part(by)}`
}

/** The sequence number at the end of a key. */
export function seqOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}

/** The same as a number. */
export function numberOf(seq: string): number {
  return Number(seq.slice(0, digits))
}

/** The server that a key of `todo`, `call` or `dead` names. */
export function serverOfKey(key: string): string {
  return decodeURIComponent(key.split('/')[2] ?? '')
}

/** Of everything but the time: a server that sends again may stamp it anew. */
export function eventDigest({ featureSet, origin, content, tags, extra }: PushEvent): string {
  return hash('sha256', canonicalJson([featureSet, origin ?? null, content, tags ?? null, extra ?? null]) ?? '', 'base64url')
}

const previewLength = 160

/** The beginning of an event's text, for lists. */
export function previewOf({ content }: PushEvent): string {
  const [first] = content.filter(block => block.type === 'text')
  return first === undefined ? `[${content[0]?.type ?? 'empty'}]` : clip(first.text.replace(/\s+/g, ' ').trim(), previewLength)
}

/** Reads the record of an event that was seen. */
export function readSeen(text: string): SeenEvent {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value['inferenceId'] === 'string' && typeof value['digest'] === 'string')
    return value as unknown as SeenEvent
  throw unreadable()
}

/** Reads the record of an event that waits. */
export function readTodo(text: string): Todo {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && isRecord(value['event']) && typeof value['lane'] === 'string') return value as unknown as Todo
  throw unreadable()
}

/** Reads the record of an event that was given up. */
export function readDead(text: string): Dead {
  const value: unknown = readTodo(text)
  if (isRecord(value) && Array.isArray(value['attempts'])) return value as unknown as Dead
  throw unreadable()
}

/** Reads the tries at an event. */
export function readAttempts(text: string): readonly Attempt[] {
  const value: unknown = JSON.parse(text)
  if (Array.isArray(value)) return value
  throw unreadable()
}

function unreadable(): Error {
  return new Error('The inbox cannot be read: was it written by another program?')
}
