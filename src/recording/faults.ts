/**
 * What goes wrong on a line, on purpose: each rule names a fault, the methods that it strikes and how often. Chance comes from a seed, so
 * that what a test has seen it sees again.
 */
import { type Clock, realClock, seeded } from '../core/clock.ts'
import { type Duration, toMilliseconds } from '../core/duration.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import { clip } from '../jsonrpc/limits.ts'
import { failureFrame, type Id, isId, isRecord } from '../jsonrpc/message.ts'
import { jsonValue } from './format.ts'

const faultKinds = ['delay', 'drop', 'duplicate', 'reorder', 'cut', 'error', 'garbage'] as const
/** What can go wrong. */
export type FaultKind = (typeof faultKinds)[number]

/** A rule for what goes wrong. */
export interface InjectedFault {
  readonly kind: FaultKind
  /** The method whose answers, or which itself, it strikes; `*` at its end stands for any rest. Default: all. */
  readonly method?: string
  /** 0 … 1. Default 1. */
  readonly probability?: number
  /** `delay`: how long. Default 1 s. */
  readonly ms?: number
  /** `error`: its number. Default −32603. */
  readonly code?: number
}

/** Rules, as objects or as they are written on a command line. */
export type FaultsOption = readonly (InjectedFault | string)[]

const written = /^([a-z]+)(?:=([^@:]+))?(?:@([^:]+))?(?::([\d.]+))?$/

/** @example parseFault('delay=200ms@tools/call:0.5') */
function parseFault(text: string): InjectedFault {
  const [, kind, value, method, chance] = written.exec(text) ?? []
  const known = faultKinds.find(each => each === kind)
  const probability = chance === undefined ? 1 : Number(chance)
  if (known === undefined || !(probability >= 0 && probability <= 1))
    throw new TypeError(
      `The fault "${clip(text)}" cannot be read: write KIND[=VALUE][@METHOD][:PROBABILITY], where KIND is one of ${faultKinds.join(', ')}, as in delay=200ms@tools/call:0.5`,
    )
  return {
    kind: known,
    probability,
    ...(method !== undefined && { method }),
    ...(known === 'delay' && { ms: toMilliseconds((value ?? '1s') as Duration, 'delay') }),
    ...(known === 'error' && { code: codeOf(value) }),
  }
}

function codeOf(value = '-32603'): number {
  const code = Number(value)
  if (Number.isSafeInteger(code)) return code
  throw new TypeError(`The number of an error must be an integer, as in error=-32603, and "${clip(value)}" is none`)
}

/** Says which faults strike what is about to be sent. */
export type FaultPicker = (method: string) => readonly InjectedFault[]

/** Picks faults by rules and a seed. */
export function faultPicker(faults: FaultsOption = [], seed = 1): FaultPicker {
  const rules = faults.map(fault => (typeof fault === 'string' ? parseFault(fault) : fault))
  const random = seeded(seed)
  // Each rule draws each time, so that one rule more changes nothing about the others' luck.
  return method => rules.filter(({ method: wanted, probability = 1 }) => strikes(wanted, method) && random() < probability)
}

function strikes(wanted: string | undefined, method: string): boolean {
  if (wanted === undefined || wanted === method) return true
  return wanted.endsWith('*') && method.startsWith(wanted.slice(0, -1))
}

/** Begins as a message does, and is none. */
const garbage = '{"jsonrpc":"2.0",\u0000]]\u0007 not a message'

interface Frame {
  readonly text: string
  /** Whose answer it is. */
  readonly id: Id | undefined
}

/**
 * The same connection, on which things go wrong by rule: what is sent over it is held back, lost, doubled, overtaken or spoilt.
 * `methodOf` names the method that an answer answers.
 */
export function faultyConnection(
  connection: Connection,
  picker: FaultPicker,
  methodOf: (id: Id) => string | undefined,
  clock: Clock = realClock,
): Connection {
  let overtaken: Frame | undefined
  let ended = false
  const pass = (frame: Frame): void => {
    if (ended) return
    void Promise.resolve(connection.send(frame.text, frame.id === undefined ? {} : { id: frame.id })).catch(() => {})
    flush()
  }
  const flush = (): void => {
    const late = overtaken
    overtaken = undefined
    if (late !== undefined) pass(late)
  }
  const send = (text: string): void => {
    const { method, id } = aboutIn(text, methodOf)
    const faults = picker(method)
    const has = (kind: string) => faults.find(fault => fault.kind === kind)
    if (has('cut') !== undefined) {
      ended = true
      return void connection.close()
    }
    if (has('drop') !== undefined) return
    const error = has('error')
    const put =
      has('garbage') !== undefined ? garbage : error !== undefined && id !== undefined ? errorText(id, error.code) : text
    const frame: Frame = { text: put, id }
    const deliver = (): void => {
      if (has('reorder') !== undefined && overtaken === undefined) {
        overtaken = frame
        // What nothing overtakes comes all the same.
        clock.setTimeout(() => overtaken === frame && flush(), 100, true)
        return
      }
      pass(frame)
      if (has('duplicate') !== undefined) pass(frame)
    }
    const delay = has('delay')
    if (delay === undefined) deliver()
    else clock.setTimeout(deliver, delay.ms ?? 1_000, true)
  }
  return { carrier: connection.carrier, start: sink => connection.start(sink), send, close: () => connection.close() }
}

function errorText(id: Id, code = -32603): string {
  return failureFrame(id, { code, message: 'An error was asked for by a fault' })
}

function aboutIn(text: string, methodOf: (id: Id) => string | undefined): { method: string; id: Id | undefined } {
  const value = jsonValue(text)
  if (!isRecord(value)) return { method: '', id: undefined }
  if (typeof value['method'] === 'string') return { method: value['method'], id: undefined }
  const id = isId(value['id']) ? value['id'] : undefined
  return { method: (id === undefined ? undefined : methodOf(id)) ?? '', id }
}
